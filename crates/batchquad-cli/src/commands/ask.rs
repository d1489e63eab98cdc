//! `ask`: points for somebody else to evaluate.

use std::time::Instant;

use anyhow::Result;
use batchquad::{Settings, evaluate::request, journal::Event, stop, types::Job};

use crate::{
    cli::AskArgs,
    exit::{BadInput, Exit},
    output::{note, print_lines},
    store::{Session, peek},
};

pub fn ask(args: &AskArgs) -> Result<Exit> {
    if args.pending {
        let (engine, _) = peek(&args.store)?;
        let jobs: Vec<Job> = engine.ledger().pending().cloned().collect();
        return show(engine.ledger().header().names(), &jobs);
    }
    let mut session = Session::open(&args.store)?;
    if let Some(most) = args.max_evaluations {
        let settings = Settings { max_evaluations: most, ..session.engine.settings().clone() };
        settings.validate()?;
        session.change(&settings)?;
    }
    let wanted = args.n.unwrap_or(session.engine.settings().batch);
    if wanted == 0 {
        return Err(BadInput("-n is 0, expected at least 1".into()).into());
    }
    let mut jobs = Vec::new();
    // More than one batch when the rest of the initial design is smaller than what is wanted.
    while jobs.len() < wanted {
        let engine = &session.engine;
        if let Some(stop) = stop::check(engine, &batchquad::run::rounds(engine), 0.0) {
            note(&format!("{} points instead of {wanted}: {} ({})", jobs.len(), stop.reason, stop.status.as_str()));
            break;
        }
        let used = engine.ledger().entries().len() + engine.ledger().imported().len();
        let left = engine.settings().max_evaluations.saturating_sub(used).max(1);
        let begin = Instant::now();
        let mut asked = engine.ask((wanted - jobs.len()).min(left))?;
        asked.seconds = begin.elapsed().as_secs_f64();
        jobs.extend(asked.jobs.clone());
        session.record(&Event::Asked(asked))?;
    }
    show(session.engine.ledger().header().names(), &jobs)
}

fn show(names: &[String], jobs: &[Job]) -> Result<Exit> {
    let lines = jobs.iter().map(|job| request(names, job)).collect::<batchquad::Result<Vec<_>>>()?;
    print_lines(&lines)?;
    Ok(Exit::Done)
}
