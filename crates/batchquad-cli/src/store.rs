//! Stores as the commands use them.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Engine, Error, Settings,
    journal::{Applied, Event, Holder, Ledger, Replay, Store},
    settings::OnFailure,
    stop::{self, Status, Stop},
    types::Outcome,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    output::note,
    problem::{Parameters, Problem},
    trust::Trust,
};

/// A store open for writing and the run that it adds up to.
pub struct Session {
    pub store: Store,
    pub engine: Engine,
}

impl Session {
    /// Opens a store by itself: its header says what the problem is.
    pub fn open(dir: &Path) -> Result<Self> {
        let (store, replay) = Store::open(dir)?;
        tell_torn(&replay);
        Ok(Self { store, engine: engine(replay.ledger()?)? })
    }

    /// A new store for a problem.
    pub fn create(dir: &Path, problem: &Problem) -> Result<Self> {
        let header = problem.header(None)?;
        let store = Store::create(dir, &header)?;
        let mut session = Self { store, engine: Engine::from_ledger(problem.prior.clone(), Ledger::new(header))? };
        session.remember(problem)?;
        Ok(session)
    }

    /// Opens the store of a problem; what the problem file has changed since, and may change, is recorded.
    pub fn resume(dir: &Path, problem: &Problem) -> Result<Self> {
        let (store, replay) = Store::open(dir)?;
        tell_torn(&replay);
        let ledger = replay.ledger()?;
        ledger.header().require_same(&problem.header(Some(ledger.header()))?)?;
        let mut session = Self { store, engine: engine(ledger)? };
        session.change(&problem.settings)?;
        session.remember(problem)?;
        Ok(session)
    }

    /// Records the settings that differ from those in force.
    pub fn change(&mut self, settings: &Settings) -> Result<()> {
        let old = settings_map(self.engine.settings())?;
        let changes: Map<String, Value> =
            settings_map(settings)?.into_iter().filter(|(key, value)| old.get(key) != Some(value)).collect();
        if !changes.is_empty() {
            self.record(&Event::Settings { changes })?;
        }
        Ok(())
    }

    /// Records an event and lets it count; what is known already is not recorded again.
    pub fn record(&mut self, event: &Event) -> Result<Applied> {
        if self.engine.ledger().judge(event)? == Applied::Repeated {
            return Ok(Applied::Repeated);
        }
        self.store.append(event)?;
        Ok(self.engine.apply(event)?)
    }

    /// Remarks on who evaluated and which answer is known: no parts of the problem's identity, because a script that was moved is the
    /// same likelihood.
    fn remember(&mut self, problem: &Problem) -> Result<()> {
        if let Some(value) = problem.known_log_z {
            self.remark(KNOWN, &value)?;
        }
        match &problem.likelihood {
            Some(spec) => self.remark(COMMAND, &spec.command),
            None => Ok(()),
        }
    }

    /// Leaves what was believed at the end of a run, and what the diagnostics make of it, for those who read the store: so that they
    /// need not work it out again.
    pub fn remember_end(&mut self, trust: &Trust) -> Result<()> {
        let believed = self.engine.current()?.believed.clone();
        self.remark(BELIEF, &believed)?;
        self.remark(VERDICT, trust)
    }

    /// Records a remark on a topic, unless it is the last one on it already.
    fn remark(&mut self, topic: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value)?;
        if remark(self.engine.ledger(), topic) != Some(&text) {
            self.record(&Event::Note { text: format!("{topic}{text}") })?;
        }
        Ok(())
    }
}

/// What remarks on the likelihood's command begin with.
const COMMAND: &str = "likelihood: ";
/// … and those on a known answer.
const KNOWN: &str = "known log Z: ";

/// … those on the belief at the end of a run,
const BELIEF: &str = "belief: ";
/// … and those on what the diagnostics say.
const VERDICT: &str = "verdict: ";

/// The last remark on a topic.
fn remark<'a>(ledger: &'a Ledger, topic: &str) -> Option<&'a str> {
    ledger.notes().iter().rev().find_map(|note| note.strip_prefix(topic))
}

/// Whether a remark is one that only programs read.
pub fn is_internal(note: &str) -> bool {
    [BELIEF, VERDICT].iter().any(|topic| note.starts_with(topic))
}

/// The command that evaluated, if one did: its words.
pub fn command(ledger: &Ledger) -> Option<Vec<String>> {
    serde_json::from_str(remark(ledger, COMMAND)?).ok()
}

/// The known answer, where the problem file had one.
pub fn known_log_z(ledger: &Ledger) -> Option<f64> {
    serde_json::from_str(remark(ledger, KNOWN)?).ok().filter(|value: &f64| value.is_finite())
}

/// The last verdict of the diagnostics, where a run has left one.
pub fn verdict(ledger: &Ledger) -> Option<Trust> {
    serde_json::from_str(remark(ledger, VERDICT)?).ok()
}

/// A run read from a store without locking it, also while another process writes.
pub fn peek(dir: &Path) -> Result<(Engine, Replay)> {
    let (engine, replay) = peek_before_damage(dir)?;
    if let Some(damage) = &replay.damage {
        let (record, reason) = (damage.record, damage.reason.clone());
        return Err(Error::StoreDamaged { path: dir.into(), record, reason }.into());
    }
    Ok((engine, replay))
}

/// As [`peek`], but of a damaged store the records that can be trusted: those before the damage, which the replay tells of.
pub fn peek_before_damage(dir: &Path) -> Result<(Engine, Replay)> {
    let replay = Store::read(dir)?;
    Ok((engine(replay.ledger()?)?, replay))
}

/// The run that a ledger adds up to, reminded of the belief it ended with.
fn engine(ledger: Ledger) -> Result<Engine> {
    let prior = Parameters::of_header(ledger.header())?.prior()?;
    let belief = remark(&ledger, BELIEF).and_then(|text| serde_json::from_str(text).ok());
    let mut engine = Engine::from_ledger(prior, ledger)?;
    if let Some(belief) = belief {
        engine.remind(belief);
    }
    Ok(engine)
}

/// How a run stands, judged by its store alone; `None` when there is more to do.
pub fn standing(engine: &Engine) -> Option<Stop> {
    if let Some(stop) = aborted(engine) {
        return Some(stop);
    }
    if engine.ledger().pending().next().is_some() {
        return None;
    }
    let stop = stop::check(engine, &batchquad::run::rounds(engine), 0.0)?;
    match engine.current() {
        Ok(_) => Some(stop),
        Err(e) => Some(Stop { status: Status::Failed, reason: format!("{}; {e}", stop.reason) }),
    }
}

/// How a run stands in one word, and who writes to it. The rules that look at the belief need a fit; `result` does that.
pub fn state(engine: &Engine, dir: &Path) -> (&'static str, Option<Holder>) {
    let ledger = engine.ledger();
    let writer = Holder::of(dir).filter(|holder| holder.is_alive() != Some(false));
    let asked = ledger.entries().len() + ledger.imported().len();
    let used_up = ledger.pending().next().is_none() && asked >= engine.settings().max_evaluations;
    let word = match (&writer, aborted(engine)) {
        (Some(_), _) => "running",
        (None, Some(Stop { status: Status::Failed, .. })) => "failed",
        (None, _) if used_up => "budget",
        _ => "unfinished",
    };
    (word, writer)
}

/// The failure that ended a run whose failures are to end it.
pub fn aborted(engine: &Engine) -> Option<Stop> {
    if engine.settings().on_failure != OnFailure::Abort {
        return None;
    }
    engine.ledger().entries().find_map(|entry| match &entry.answer.as_ref()?.outcome {
        Outcome::Failed { kind, message } => {
            let reason = format!("evaluation {} failed ({kind}): {message}", entry.job.id);
            Some(Stop { status: Status::Failed, reason })
        }
        Outcome::Value(_) => None,
    })
}

/// Settings as they stand in a header.
pub fn settings_map(settings: &Settings) -> Result<Map<String, Value>> {
    match serde_json::to_value(settings)? {
        Value::Object(map) => Ok(map),
        other => anyhow::bail!("the settings are {other}, expected a table"),
    }
}

fn tell_torn(replay: &Replay) {
    if let Some(torn) = &replay.torn {
        let kept = torn.kept.as_ref().map(|path| format!(", kept aside in {}", path.display())).unwrap_or_default();
        note(&format!(
            "the store ended in the middle of a record ({} bytes{kept}); nothing that counted is lost",
            torn.bytes
        ));
    }
}
