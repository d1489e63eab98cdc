//! `tell`: answers from somebody else.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use anyhow::{Context, Result};
use batchquad::{
    Error,
    evaluate::{Reply, answer},
    journal::{Applied, Event, Told},
    run::{Session, peek},
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

/// The longest line: no answer has more to say.
const LONGEST: usize = 1 << 20;

pub fn tell(store: &Path, file: Option<&Path>, replace: bool) -> Result<Exit> {
    let mut lines = match file {
        Some(path) => {
            let file = File::open(path).map_err(|e| BadInput(format!("cannot open {}: {e}", path.display())))?;
            let waits = !file.metadata().is_ok_and(|metadata| metadata.is_file());
            Lines::new(Box::new(file), waits)
        }
        None => Lines::new(Box::new(std::io::stdin()), true),
    };
    let mut open_store = Some(open(store)?);
    let (mut number, mut bad, mut counted, mut repeated) = (0_u64, 0_u64, 0_u64, 0_u64);
    loop {
        // The store is not locked while the answers are still being typed or piped in.
        if lines.may_wait() {
            open_store = None;
        }
        let Some(line) = lines.next()? else { break };
        number += 1;
        let Some(line) = line else {
            bad += 1;
            note(&format!("line {number}: it has more than {LONGEST} bytes, expected an answer"));
            continue;
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let session = match &mut open_store {
            Some(session) => session,
            None => open_store.insert(open(store).with_context(|| format!("line {number} was not recorded"))?),
        };
        match take(session, &line, replace) {
            Ok((_, Applied::Repeated)) => repeated += 1,
            Ok((told, applied)) => {
                counted += 1;
                remark(number, &told, applied, replace);
            }
            // A store that takes no more records is the end; a line that cannot be used is not.
            Err(e) if !e.is_recoverable() => return Err(e.into()),
            Err(e) => {
                bad += 1;
                note(&format!("line {number}: {e}"));
            }
        }
    }
    drop(open_store);
    let pending = peek(store)?.0.ledger().pending().count();
    note(&format!(
        "{counted} answers recorded, {repeated} known already, {bad} refused; {pending} evaluations are pending"
    ));
    Ok(if bad > 0 { Exit::BadInput } else { Exit::Done })
}

/// Lines of bounded length.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    waits: bool,
}

impl Lines {
    fn new(input: Box<dyn Read>, waits: bool) -> Self {
        Self { input: BufReader::new(input), waits }
    }

    /// Whether the next line may be a long time coming.
    fn may_wait(&self) -> bool {
        self.waits && !self.input.buffer().contains(&b'\n')
    }

    /// The next line; inside, `None` for one that is too long, which is passed over.
    fn next(&mut self) -> Result<Option<Option<Vec<u8>>>> {
        let mut line = Vec::new();
        if self.input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() <= LONGEST {
            return Ok(Some(Some(line)));
        }
        while line.last() != Some(&b'\n') {
            line.clear();
            if self.input.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line)? == 0 {
                break;
            }
        }
        Ok(Some(None))
    }
}

/// Records the answer on a line; with `replace` in the place of the one that counts.
pub fn take(session: &mut Session, line: &[u8], replace: bool) -> batchquad::Result<(Told, Applied)> {
    let said = answer(line)?;
    let id = said.id.ok_or_else(|| Error::invalid("id", "missing", "the id of a job, as in {\"id\": 3, …}"))?;
    let theta = session.engine.ledger().entry(id)?.job.theta.clone();
    let outcome = match said.reply {
        Reply::LogLikelihood(value) => Outcome::from_log_likelihood(&theta, value),
        Reply::Failed(message) => Outcome::Failed { kind: FailureKind::Exception, message },
    };
    let (outcome, sd) = outcome.with_sd(&theta, said.sd);
    let Circumstances { seconds, worker } = serde_json::from_slice(line).unwrap_or_default();
    let seconds = if seconds.is_finite() && seconds >= 0.0 { seconds } else { 0.0 };
    let told = Told { id, outcome, sd, attempt: 1, seconds, worker };
    let event = if replace { Event::Replaced(told.clone()) } else { Event::Told(told.clone()) };
    Ok((told, session.keep(&event)?))
}

fn remark(number: u64, told: &Told, applied: Applied, replace: bool) {
    let id = told.id;
    match (applied, &told.outcome) {
        (Applied::Conflict, _) => {
            note(&format!(
                "line {number}: evaluation {id} has another value already: this one is kept and flagged, the first counts (`--replace` lets this one count)"
            ));
        }
        (Applied::Averaged, _) => {
            note(&format!("line {number}: evaluation {id} has another value already: both count, by their precision"))
        }
        (Applied::Replaced, Outcome::Value(value)) if replace => {
            let noise = told.sd.map(|sd| format!(" ± {sd}")).unwrap_or_default();
            note(&format!(
                "line {number}: from now on {value}{noise} counts for evaluation {id}; the answer before is kept"
            ))
        }
        (Applied::Replaced, Outcome::Failed { .. }) => {
            note(&format!("line {number}: evaluation {id} has no value any more; the answer before is kept"))
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
