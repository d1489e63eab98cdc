//! A run and where it is kept, together: what every shell around the library does with stores.

use std::{ops::ControlFlow, path::Path, time::Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    error::{Error, Result},
    journal::{Applied, Event, Header, Ledger, Lines, Replay, Store, Topic},
    prior::{Parameters, Prior},
    run::{
        drive::Losses,
        engine::{Believed, Engine, MOST_ASKED},
        record::{Record, Transcript},
        settings::Settings,
        stop::{self, Stop},
    },
    types::{Job, JobId},
};

/// Settings that a store keeps when they are left open.
const STAYING: [&str; 2] = ["start", "repeats"];

/// What a run is about.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The prior.
    pub prior: Prior,
    /// The prior in writing, as [`Parameters`] describe it: what a store is compared by.
    pub problem: Value,
    /// All choices.
    pub settings: Settings,
    /// The seed; if it is left open that of an existing store holds, or 0.
    pub seed: Option<u64>,
}

impl Plan {
    fn header(&self, stored: Option<&Header>) -> Result<Header> {
        let seed = self.seed.or(stored.map(Header::seed)).unwrap_or(0);
        Header::new(self.prior.names().to_vec(), seed, self.problem.clone(), self.settings.to_map()?)
    }
}

/// A run and its record, which is a [`Store`] or a [`Transcript`].
pub struct Session {
    /// Where events are kept.
    pub record: Box<dyn Record + Send>,
    /// The state.
    pub engine: Engine,
    /// Failures in a row since somebody began to drive the run.
    pub losses: Losses,
    /// The journal of a run that is kept in memory.
    pub transcript: Option<Transcript>,
}

impl Session {
    /// A run that is kept in memory, with its [`transcript`](Session::transcript).
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings out of range.
    pub fn in_memory(plan: &Plan) -> Result<Self> {
        let header = plan.header(None)?;
        let lines = Lines::new(&header)?;
        Ok(Self::transcribed(lines, Engine::from_ledger(plan.prior.clone(), Ledger::new(header))?))
    }

    /// Goes on in memory with a run whose journal was kept: as [`Session::open`], or with a plan as [`Session::resume`].
    ///
    /// # Errors
    /// As [`Lines::read`] and [`Parameters::prior`]; [`Error::StoreDiffers`] when it is the journal of another problem.
    pub fn recall(journal: Vec<u8>, plan: Option<&Plan>) -> Result<(Self, Replay)> {
        let (lines, replay) = Lines::read(journal)?;
        let Some(plan) = plan else { return Ok((Self::transcribed(lines, engine_of(&replay)?), replay)) };
        let ledger = replay.ledger()?;
        ledger.header().require_same(&plan.header(Some(ledger.header()))?)?;
        let engine = reminded(plan.prior.clone(), ledger)?;
        require_compatible(&plan.settings, engine.settings())?;
        let mut session = Self::transcribed(lines, engine);
        session.change(&plan.settings)?;
        Ok((session, replay))
    }

    fn transcribed(lines: Lines, engine: Engine) -> Self {
        let transcript = Transcript::new(lines);
        let record = Box::new(transcript.clone());
        Self { record, engine, losses: Losses::default(), transcript: Some(transcript) }
    }

    /// A new store for a plan.
    ///
    /// # Errors
    /// As [`Store::create`]; [`Error::Invalid`] for settings out of range.
    pub fn create(dir: &Path, plan: &Plan) -> Result<Self> {
        let header = plan.header(None)?;
        let store = Store::create(dir, &header)?;
        let engine = Engine::from_ledger(plan.prior.clone(), Ledger::new(header))?;
        Ok(Self { record: Box::new(store), engine, losses: Losses::default(), transcript: None })
    }

    /// Opens a store by itself: its header says what the problem is.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Parameters::prior`].
    pub fn open(dir: &Path) -> Result<(Self, Replay)> {
        let (store, replay) = Store::open(dir)?;
        let engine = engine_of(&replay)?;
        Ok((Self { record: Box::new(store), engine, losses: Losses::default(), transcript: None }, replay))
    }

    /// Opens the store of a plan; what the plan may change, and does, is recorded.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::StoreDiffers`] when it is the store of another problem.
    pub fn resume(dir: &Path, plan: &Plan) -> Result<(Self, Replay)> {
        let (store, replay) = Store::open(dir)?;
        let ledger = replay.ledger()?;
        ledger.header().require_same(&plan.header(Some(ledger.header()))?)?;
        let engine = reminded(plan.prior.clone(), ledger)?;
        require_compatible(&plan.settings, engine.settings())?;
        let mut session = Self { record: Box::new(store), engine, losses: Losses::default(), transcript: None };
        session.change(&plan.settings)?;
        Ok((session, replay))
    }

    /// Records an event and lets it count; what is known already is not recorded again.
    ///
    /// # Errors
    /// As [`Engine::keep`].
    pub fn keep(&mut self, event: &Event) -> Result<Applied> {
        self.engine.keep(self.record.as_mut(), event)
    }

    /// A reason to ask no more after the outcome of a job, which has been kept.
    ///
    /// # Errors
    /// [`Error::UnknownJob`].
    pub fn losing(&mut self, id: JobId) -> Result<Option<Stop>> {
        let answer = self.engine.ledger().entry(id)?.answer.as_ref();
        Ok(answer.and_then(|told| self.losses.told(&self.engine, id, &told.outcome)))
    }

    /// Records the settings that differ from those in force; one that is left open now is taken back. Points to begin with and the
    /// number of independent runs stay.
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings out of range; as [`Session::keep`].
    pub fn change(&mut self, settings: &Settings) -> Result<()> {
        let (old, new) = (self.engine.settings().to_map()?, settings.to_map()?);
        let gone = old
            .keys()
            .filter(|key| !STAYING.contains(&key.as_str()) && !new.contains_key(*key))
            .map(|key| (key.clone(), Value::Null));
        let mut changes: Map<String, Value> = gone.collect();
        changes.extend(new.into_iter().filter(|(key, value)| old.get(key) != Some(value)));
        if !changes.is_empty() {
            self.keep(&Event::Settings { changes })?;
        }
        Ok(())
    }

    /// Records a remark on a topic as JSON, unless it is the last one on it already. Remarks are no part of the state.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that JSON cannot hold; as [`Session::keep`].
    pub fn remark(&mut self, topic: Topic, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value)
            .map_err(|e| Error::invalid(format!("remark {topic:?}"), e.to_string(), "a value that JSON can hold"))?;
        if self.engine.ledger().remark(topic) != Some(&value) {
            self.keep(&Event::Remark { topic, value })?;
        }
        Ok(())
    }

    /// What is believed now and is not in the record yet: of each of several independent runs, and last of all values together. Cost: that of
    /// [`Engine::current`].
    ///
    /// # Errors
    /// As [`Engine::current`].
    pub fn new_beliefs(&self) -> Result<Vec<Value>> {
        let ledger = self.engine.ledger();
        let written = |belief: &Believed| {
            serde_json::to_value(belief)
                .map_err(|e| Error::invalid("belief", e.to_string(), "numbers that JSON can hold"))
        };
        let whole = written(&self.engine.current()?.believed)?;
        let mut beliefs = Vec::new();
        for run in self.engine.repeats().iter().filter_map(Engine::known) {
            let belief = written(&run.believed)?;
            if belief != whole && ledger.remarks(Topic::Belief).all(|known| *known != belief) {
                beliefs.push(belief);
            }
        }
        if !beliefs.is_empty() || ledger.remark(Topic::Belief) != Some(&whole) {
            beliefs.push(whole);
        }
        Ok(beliefs)
    }

    /// Leaves what is believed now for those who read the store: so that they need not work it out again.
    ///
    /// # Errors
    /// As [`Engine::current`] and [`Session::remark`].
    pub fn remember_belief(&mut self) -> Result<()> {
        for belief in self.new_beliefs()? {
            self.remark(Topic::Belief, &belief)?;
        }
        Ok(())
    }

    /// Chooses a batch of at most `n` points for one of the independent runs and records it, unless `given_up` says that nobody wants it any more.
    ///
    /// # Errors
    /// As [`Engine::ask`] and [`Session::keep`].
    pub fn ask_batch(&mut self, repeat: usize, n: usize, given_up: impl Fn() -> bool) -> Result<Vec<Job>> {
        let left = self.engine.repeat(repeat).left().max(1);
        let begin = Instant::now();
        let mut asked = self.engine.ask_for(repeat, n.min(left))?;
        asked.seconds = begin.elapsed().as_secs_f64();
        if given_up() {
            return Ok(Vec::new());
        }
        let jobs = asked.jobs.clone();
        self.keep(&Event::Asked(asked))?;
        Ok(jobs)
    }

    /// Points for somebody else to evaluate, as many as `wanted` unless a rule says stop.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `wanted = 0`; as [`Session::ask_batch`].
    pub fn ask(&mut self, wanted: usize, given_up: impl Fn() -> bool) -> Result<(Vec<Job>, Option<Stop>)> {
        if wanted == 0 {
            return Err(Error::invalid("number of points to ask", wanted, "at least 1"));
        }
        if wanted > MOST_ASKED {
            return Err(Error::invalid("number of points to ask", wanted, format!("at most {MOST_ASKED} at a time")));
        }
        let mut jobs = Vec::new();
        // More than one batch when the rest of the initial design, or of a run, is smaller than what is wanted.
        while jobs.len() < wanted && !given_up() {
            match stop::next_repeat(&self.engine, 0.0) {
                ControlFlow::Break(stop) => return Ok((jobs, Some(stop))),
                ControlFlow::Continue(repeat) => {
                    jobs.extend(self.ask_batch(repeat, wanted - jobs.len(), &given_up)?);
                }
            }
        }
        Ok((jobs, None))
    }
}

/// A run read from a store without locking it, also while another process writes.
///
/// # Errors
/// As [`peek_before_damage`]; [`Error::StoreDamaged`].
pub fn peek(dir: &Path) -> Result<(Engine, Replay)> {
    let (engine, replay) = peek_before_damage(dir)?;
    if let Some(damage) = &replay.damage {
        let (record, reason) = (damage.record, damage.reason.clone());
        return Err(Error::StoreDamaged { path: dir.into(), record, reason });
    }
    Ok((engine, replay))
}

/// As [`peek`], but of a damaged store the records that can be trusted: those before the damage, which the replay tells of.
///
/// # Errors
/// As [`Store::read`] and [`Parameters::prior`].
pub fn peek_before_damage(dir: &Path) -> Result<(Engine, Replay)> {
    let replay = Store::read(dir)?;
    Ok((engine_of(&replay)?, replay))
}

/// Points to begin with belong to a run's identity, and independent runs may become more but not fewer. What is left open is as in the store.
fn require_compatible(wanted: &Settings, stored: &Settings) -> Result<()> {
    let mut differences = Vec::new();
    if !wanted.start.is_empty() && wanted.start != stored.start {
        differences.push(format!("start is {}, the store has {}", json!(wanted.start), json!(stored.start)));
    }
    if let Some(repeats) = wanted.repeats.filter(|n| *n < stored.repeats()) {
        differences.push(format!("repeats is {repeats}, the store has {}", stored.repeats()));
    }
    if differences.is_empty() { Ok(()) } else { Err(Error::StoreDiffers { differences }) }
}

fn engine_of(replay: &Replay) -> Result<Engine> {
    let ledger = replay.ledger()?;
    reminded(Parameters::from_problem(ledger.header().problem())?.prior()?, ledger)
}

/// The run that a ledger adds up to, reminded of the belief it ended with.
fn reminded(prior: Prior, ledger: Ledger) -> Result<Engine> {
    // Of several independent runs each has left one, and all together another.
    let beliefs: Vec<Believed> =
        ledger.remarks(Topic::Belief).filter_map(|value| Believed::deserialize(value).ok()).collect();
    let mut engine = Engine::from_ledger(prior, ledger)?;
    let earlier = if engine.repeats().is_empty() { beliefs.len().saturating_sub(1) } else { 0 };
    for belief in beliefs.into_iter().skip(earlier) {
        engine.remind(belief);
    }
    Ok(engine)
}
