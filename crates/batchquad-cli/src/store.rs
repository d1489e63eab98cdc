//! Stores as the commands use them.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Engine,
    evaluate::Bridge,
    journal::{Holder, Ledger, Replay, Topic},
    run::{Session, Status, Stop, aborted, report::Trust},
};

use serde::Deserialize;

use crate::{output::note, problem::Problem};

/// Opens a store by itself: its header says what the problem is.
pub fn open(dir: &Path) -> Result<Session> {
    let (session, replay) = Session::open(dir)?;
    tell_torn(&replay);
    Ok(session)
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
    if let Some(likelihood) = &problem.likelihood {
        session.remark(Topic::Likelihood, &likelihood.remark()?)?;
    }
    Ok(())
}

/// Leaves what was believed at the end of a run, and what the diagnostics make of it, for those who read the store.
pub fn remember_end(session: &mut Session, trust: &Trust) -> Result<()> {
    session.remember_belief()?;
    Ok(session.remark(Topic::Verdict, trust)?)
}

/// The command that evaluated, if one did: its words.
pub fn command(ledger: &Ledger) -> Option<Vec<String>> {
    Vec::deserialize(ledger.remark(Topic::Likelihood)?).ok()
}

/// The UM-Bridge servers that evaluated, if they did.
pub fn bridge(ledger: &Ledger) -> Option<Bridge> {
    Bridge::deserialize(ledger.remark(Topic::Likelihood)?.get("umbridge")?).ok()
}

/// How a run stands in one word, and who writes to it. The rules that look at the belief need a fit; `result` does that.
pub fn state(engine: &Engine, dir: &Path) -> (&'static str, Option<Holder>) {
    let ledger = engine.ledger();
    let writer = Holder::at_work(dir);
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

fn tell_torn(replay: &Replay) {
    if let Some(torn) = &replay.torn {
        let kept = torn.kept.as_ref().map(|path| format!(", kept aside in {}", path.display())).unwrap_or_default();
        note(&format!(
            "the store ended in the middle of a record ({} bytes{kept}), which nobody had been told of",
            torn.bytes
        ));
    }
}
