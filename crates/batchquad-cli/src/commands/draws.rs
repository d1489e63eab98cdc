//! `draws`: points from the posterior.

use std::io::Write;

use anyhow::{Context, Result};
use batchquad::{
    evaluate::clean,
    run::{peek, report::ByName},
};

use crate::{
    cli::{DrawsArgs, DrawsFormat},
    exit::{BadInput, Exit},
    output::note,
};

/// So many importance draws are made for each that is wanted with equal weight, so that few come twice.
const FOR_EACH: usize = 8;

/// The fewest and the most importance draws behind equally weighted ones.
const PROPOSED: (usize, usize) = (4096, 1 << 18);

/// Weighted draws are written as they were made, and a proposal cannot be fitted to fewer.
const FEWEST_WEIGHTED: usize = 64;

/// The most draws that are written.
const MOST: usize = 1 << 20;

pub fn draws(args: &DrawsArgs) -> Result<Exit> {
    let fewest = if args.weighted { FEWEST_WEIGHTED } else { 1 };
    if args.n < fewest || args.n > MOST {
        let why = if args.weighted { ": with --weighted, fewer cannot be fitted to the posterior" } else { "" };
        return Err(BadInput(format!("-n is {}, expected a number from {fewest} to {MOST}{why}", args.n)).into());
    }
    let (engine, _) = peek(&args.store)?;
    let posterior = engine.posterior().with_context(|| format!("{} has no posterior", args.store.display()))?;
    // Of weighted draws there may come fewer: those without any weight are left out.
    let proposed = if args.weighted { args.n } else { (FOR_EACH * args.n).clamp(PROPOSED.0, PROPOSED.1) };
    let draws = posterior.draws(proposed, args.seed.unwrap_or(engine.seed()))?;
    let chosen = if args.weighted { (0..draws.len()).collect() } else { draws.resample(args.n)? };
    let rows = chosen.iter().map(|&s| {
        let weight = args.weighted.then(|| draws.log_weights()[s]);
        draws.theta().row(s).iter().copied().chain(weight)
    });
    let mut names: Vec<String> = engine.ledger().header().names().to_vec();
    names.extend(args.weighted.then(|| "log_weight".to_owned()));
    let out = std::io::stdout().lock();
    match args.format {
        DrawsFormat::Csv => {
            let mut out = csv::Writer::from_writer(out);
            out.write_record(names.iter().map(|name| clean(name)))?;
            for row in rows {
                out.write_record(row.map(|v| v.to_string()))?;
            }
            out.flush()?;
        }
        DrawsFormat::Jsonl => {
            let mut out = std::io::BufWriter::new(out);
            for row in rows {
                writeln!(out, "{}", serde_json::to_string(&ByName(names.iter().cloned().zip(row).collect()))?)?;
            }
            out.flush()?;
        }
    }
    let negative = match draws.negative() {
        0 => String::new(),
        n => format!("; {n} points at which the belief is negative were left out"),
    };
    note(&format!("from {} importance draws worth {:.0} independent ones{negative}", draws.len(), draws.effective()));
    Ok(Exit::Done)
}
