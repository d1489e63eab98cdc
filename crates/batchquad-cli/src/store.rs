//! Stores as the commands use them.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use batchquad::{
    Engine, Error,
    evaluate::Bridge,
    journal::{Holder, Ledger, Replay, Topic},
    run::{Session, Status, Stop, aborted, report::Trust},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    output::note,
    problem::{Problem, default_store},
};

/// Opens a store by itself: its header says what the problem is.
pub fn open(dir: &Path) -> Result<Session> {
    let (session, replay) = Session::open(dir)?;
    tell_torn(&replay);
    Ok(session)
}

/// What to do when a problem file was given where its store was meant.
pub fn meant(error: &anyhow::Error) -> Option<String> {
    let Some(Error::NotAStore { path, .. }) = error.downcast_ref() else { return None };
    if !path.is_file() || path.extension().is_none_or(|e| e != "toml") {
        return None;
    }
    let store = default_store(path);
    let there = if store.is_dir() { "" } else { ", once `batchquad new` or `batchquad run` has made it" };
    Some(format!("the store of that problem is {}{there}", store.display()))
}

/// A new store for a problem.
pub fn create(dir: &Path, problem: &Problem) -> Result<Session> {
    let mut session = Session::create(dir, &problem.plan()?)?;
    remember(&mut session, problem)?;
    Ok(session)
}

/// Opens the store of a problem; what the problem file has changed since, and may change, is recorded.
pub fn resume(dir: &Path, problem: &Problem) -> Result<Session> {
    let (mut session, replay) = Session::resume(dir, &problem.plan()?)?;
    tell_torn(&replay);
    remember(&mut session, problem)?;
    Ok(session)
}

/// Remarks on who evaluated and which answer is known: no parts of the problem's identity, because a script that was moved is the same
/// likelihood.
fn remember(session: &mut Session, problem: &Problem) -> Result<()> {
    if let Some(value) = problem.known_log_z {
        session.remark(Topic::KnownLogZ, &value)?;
    }
    if !problem.labels.is_empty() {
        let labels: BTreeMap<&String, &String> = problem.labels.iter().map(|(name, label)| (name, label)).collect();
        session.remark(Topic::Labels, &labels)?;
    }
    if let Some(likelihood) = &problem.likelihood {
        let mut how: Map<String, Value> = serde_json::from_value(serde_json::to_value(&problem.written)?)?;
        let (key, value) = likelihood.key()?;
        how.insert(key.into(), value);
        if let Some(workers) = problem.workers {
            how.insert(WORKERS.into(), workers.into());
        }
        session.remark(Topic::Likelihood, &how)?;
    }
    Ok(())
}

/// Leaves what was believed at the end of a run, and what the diagnostics make of it, for those who read the store.
pub fn remember_end(session: &mut Session, trust: &Trust) -> Result<()> {
    session.remember_belief()?;
    Ok(session.remark(Topic::Verdict, trust)?)
}

/// The number of workers beside the keys of `[likelihood]`.
pub const WORKERS: &str = "workers";

/// The command that evaluated, if one did: its words.
pub fn command(ledger: &Ledger) -> Option<Vec<String>> {
    Vec::deserialize(evaluated_by(ledger)?.get("command")?).ok()
}

/// How it was evaluated, if by a command or by servers: the keys of `[likelihood]` and the number of workers, where they were given.
pub fn evaluated_by(ledger: &Ledger) -> Option<Map<String, Value>> {
    match ledger.remark(Topic::Likelihood)? {
        Value::Object(keys) => Some(keys.clone()),
        // Early stores have the words of the command alone.
        words => Some(Map::from_iter([("command".to_owned(), words.clone())])),
    }
}

/// The UM-Bridge servers that evaluated, if they did.
pub fn bridge(ledger: &Ledger) -> Option<Bridge> {
    Bridge::deserialize(evaluated_by(ledger)?.get("umbridge")?).ok()
}

/// log Z and its standard deviation as they are known without working anything out, and of what.
pub fn last_log_z(engine: &Engine) -> Option<(f64, f64, String)> {
    let several = !engine.repeats().is_empty();
    if several && let Some(whole) = engine.remembered() {
        return Some((whole.log_z?, whole.log_z_sd?, "from the values of all repeats".into()));
    }
    let last = engine.history().last()?;
    let of = if several { format!("in repeat {} ", last.repeat + 1) } else { String::new() };
    Some((last.belief.log_z?, last.belief.log_z_sd?, format!("{of}when the last batch was chosen")))
}

/// How a run stands in one word, and who writes to it. The rules that look at the belief need a fit; `result` does that.
pub fn state(engine: &Engine, dir: &Path) -> (&'static str, Option<Holder>) {
    let ledger = engine.ledger();
    let writer = Holder::at_work(dir);
    let used_up = ledger.pending().next().is_none() && engine.left() == 0;
    let word = match (&writer, aborted(engine)) {
        (Some(_), _) => "running",
        (None, Some(Stop { status: Status::Failed, .. })) => "failed",
        (None, _) if used_up => "budget",
        _ => "unfinished",
    };
    (word, writer)
}

fn tell_torn(replay: &Replay) {
    if let Some(torn) = &replay.torn {
        let kept = torn.kept.as_ref().map(|path| format!(", kept aside in {}", path.display())).unwrap_or_default();
        note(&format!("the store ended in the middle of a record ({} bytes{kept}), which had not counted", torn.bytes));
    }
}
