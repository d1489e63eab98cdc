//! `result`: log Z and the posterior from a store.

use anyhow::Result;
use batchquad::run::{peek, standing};

use crate::{
    cli::ResultArgs,
    exit::Exit,
    output::{note, print, print_json},
    report::{report, text},
};

pub fn result(args: &ResultArgs) -> Result<Exit> {
    let (args, strict) = (&args.of, args.strict);
    let (engine, _) = peek(&args.store)?;
    let stop = standing(&engine);
    let report = report(&engine, stop.as_ref(), &args.store)?.with_posterior(&engine);
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    if report.log_z.is_some() {
        return Ok(Exit::Done.strictly(strict, report.trust.as_ref()));
    }
    note(&format!("there is no log Z: {}", report.reason));
    Ok(Exit::Failed)
}
