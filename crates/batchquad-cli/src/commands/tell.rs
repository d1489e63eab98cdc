//! `tell`: answers from somebody else.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::Result;
use batchquad::{
    Error,
    evaluate::{Reply, answer},
    journal::{Applied, Event, Told},
    run::Session,
    types::{FailureKind, Outcome},
};
use serde::Deserialize;

use crate::{
    exit::{BadInput, Exit},
    output::note,
    store::open,
};

/// What an answer may say beside its value.
#[derive(Default, Deserialize)]
struct Circumstances {
    #[serde(default)]
    seconds: f64,
    worker: Option<String>,
}

pub fn tell(store: &Path, file: Option<&Path>) -> Result<Exit> {
    let mut input: Box<dyn BufRead> = match file {
        Some(path) => {
            let file = File::open(path).map_err(|e| BadInput(format!("cannot open {}: {e}", path.display())))?;
            Box::new(BufReader::new(file))
        }
        None => Box::new(std::io::stdin().lock()),
    };
    let mut session = open(store)?;
    let (mut number, mut bad, mut counted, mut repeated) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match take(&mut session, &line) {
            Ok((_, Applied::Repeated)) => repeated += 1,
            Ok((told, applied)) => {
                counted += 1;
                remark(number, &told, applied);
            }
            // A store that takes no more records is the end; a line that cannot be used is not.
            Err(e) if !e.is_recoverable() => return Err(e.into()),
            Err(e) => {
                bad += 1;
                note(&format!("line {number}: {e}"));
            }
        }
    }
    let pending = session.engine.ledger().pending().count();
    note(&format!(
        "{counted} answers recorded, {repeated} known already, {bad} refused; {pending} evaluations are pending"
    ));
    Ok(if bad > 0 { Exit::BadInput } else { Exit::Done })
}

/// Records the answer on a line.
fn take(session: &mut Session, line: &[u8]) -> batchquad::Result<(Told, Applied)> {
    let said = answer(line)?;
    let id = said.id.ok_or_else(|| Error::invalid("id", "missing", "the id of a job, as in {\"id\": 3, …}"))?;
    let theta = session.engine.ledger().entry(id)?.job.theta.clone();
    let outcome = match said.reply {
        Reply::LogLikelihood(value) => Outcome::from_log_likelihood(&theta, value),
        Reply::Failed(message) => Outcome::Failed { kind: FailureKind::Exception, message },
    };
    let Circumstances { seconds, worker } = serde_json::from_slice(line).unwrap_or_default();
    let seconds = if seconds.is_finite() && seconds >= 0.0 { seconds } else { 0.0 };
    let told = Told { id, outcome, attempt: 1, seconds, worker };
    let event = Event::Told(told.clone());
    Ok((told, session.keep(&event)?))
}

fn remark(number: u64, told: &Told, applied: Applied) {
    let id = told.id;
    match (applied, &told.outcome) {
        (Applied::Conflict, _) => {
            note(&format!(
                "line {number}: evaluation {id} has another value already: this one is kept and flagged, the first counts"
            ));
        }
        (Applied::Replaced, _) => {
            note(&format!("line {number}: evaluation {id} had failed: from now on the value counts"))
        }
        (Applied::Kept, _) => {
            note(&format!("line {number}: evaluation {id} has its answer: the failure is kept beside it"))
        }
        (_, Outcome::Failed { kind, message }) => {
            note(&format!("line {number}: evaluation {id} failed ({kind}): {message}"))
        }
        _ => {}
    }
}
