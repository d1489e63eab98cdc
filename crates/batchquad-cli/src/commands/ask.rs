//! `ask`: points for somebody else to evaluate.

use anyhow::Result;
use batchquad::{Settings, evaluate::request, run::peek, types::Job};

use crate::{
    cli::AskArgs,
    exit::{BadInput, Exit},
    output::{note, print_lines},
    store::open,
};

pub fn ask(args: &AskArgs) -> Result<Exit> {
    if args.pending {
        let (engine, _) = peek(&args.store)?;
        let jobs: Vec<Job> = engine.ledger().pending().cloned().collect();
        return show(engine.ledger().header().names(), &jobs);
    }
    let mut session = open(&args.store)?;
    if let Some(most) = args.max_evaluations {
        let settings = Settings { max_evaluations: most, ..session.engine.settings().clone() };
        settings.validate()?;
        session.change(&settings)?;
    }
    let wanted = args.n.unwrap_or(session.engine.settings().batch);
    if wanted == 0 {
        return Err(BadInput("-n is 0, expected at least 1".into()).into());
    }
    let (jobs, stop) = session.ask(wanted, || false)?;
    if let Some(stop) = stop {
        note(&format!("{} points instead of {wanted}: {} ({})", jobs.len(), stop.reason, stop.status.as_str()));
    }
    show(session.engine.ledger().header().names(), &jobs)
}

fn show(names: &[String], jobs: &[Job]) -> Result<Exit> {
    let lines = jobs.iter().map(|job| request(names, job)).collect::<batchquad::Result<Vec<_>>>()?;
    print_lines(&lines)?;
    Ok(Exit::Done)
}
