//! Stores as the commands use them.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    journal::{Event, Replay},
    session::Session,
};

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
    remember_command(&mut session, problem)?;
    Ok(session)
}

/// Opens the store of a problem; what the problem file has changed since, and may change, is recorded.
pub fn resume(dir: &Path, problem: &Problem) -> Result<Session> {
    let (mut session, replay) = Session::resume(dir, &problem.plan()?)?;
    tell_torn(&replay);
    remember_command(&mut session, problem)?;
    Ok(session)
}

/// A remark of who evaluated: no part of the problem's identity, because a script that was moved is the same likelihood.
fn remember_command(session: &mut Session, problem: &Problem) -> Result<()> {
    let Some(spec) = &problem.likelihood else { return Ok(()) };
    let text = format!("likelihood: {}", serde_json::to_string(&spec.command)?);
    let known = session.engine.ledger().notes().iter().rfind(|n| n.starts_with("likelihood: "));
    if known != Some(&text) {
        session.keep(&Event::Note { text })?;
    }
    Ok(())
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
