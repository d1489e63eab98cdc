//! `status`: how far a run is.

use std::collections::BTreeMap;

use anyhow::Result;
use batchquad::{run::peek, types::Outcome};
use serde_json::json;

use crate::{
    cli::StoreArgs,
    exit::Exit,
    output::{facts, plus_minus, print, print_json},
    store::{command, state, verdict},
};

pub fn status(args: &StoreArgs) -> Result<Exit> {
    let (engine, replay) = peek(&args.store)?;
    let ledger = engine.ledger();
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for entry in ledger.entries() {
        if let Some(Outcome::Failed { kind, .. }) = entry.answer.as_ref().map(|told| &told.outcome) {
            *failures.entry(kind.to_string()).or_default() += 1;
        }
    }
    let pending = ledger.pending().count();
    let asked = ledger.entries().len();
    let last = engine.history().last().map(|round| &round.belief);
    let (log_z, log_z_sd) = (last.and_then(|b| b.log_z), last.and_then(|b| b.log_z_sd));
    let trust = verdict(ledger);
    let (state, writer) = state(&engine, &args.store);
    if args.json {
        print_json(&json!({
            "state": state, "evaluations": asked - pending, "pending": pending, "imported": ledger.imported().len(),
            "max_evaluations": engine.settings().max_evaluations, "batches": ledger.batches().len(),
            "failures": failures.values().sum::<usize>(), "failures_by_kind": failures,
            "conflicts": ledger.conflicts().map(|e| e.job.id.0).collect::<Vec<_>>(),
            "log_z": log_z, "log_z_sd": log_z_sd, "verdict": trust, "seed": engine.seed(),
            "writer": writer.map(|h| json!({"pid": h.pid, "host": h.host})),
            "torn_bytes": replay.torn.map(|t| t.bytes), "written_by": ledger.header().written_by(),
        }))?;
        return Ok(Exit::Done);
    }
    let kinds: Vec<String> = failures.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    let mut rows = vec![
        ("state", writer.map_or(state.to_owned(), |h| format!("{state}: process {} on {}", h.pid, h.host))),
        ("evaluations", format!("{} of {}, {pending} pending", asked - pending, engine.settings().max_evaluations)),
        ("batches", ledger.batches().len().to_string()),
        ("failed", if kinds.is_empty() { "none".into() } else { kinds.join(", ") }),
        ("parameters", ledger.header().names().join(", ")),
    ];
    if let (Some(log_z), Some(sd)) = (log_z, log_z_sd) {
        rows.insert(2, ("log Z", format!("{} when the last batch was chosen", plus_minus(log_z, sd))));
    }
    if let Some(trust) = &trust {
        let after_log_z = rows.iter().position(|(label, _)| *label == "log Z").map_or(rows.len(), |i| i + 1);
        rows.insert(after_log_z, ("verdict", trust.line_at(ledger)));
    }
    if !ledger.imported().is_empty() {
        rows.push(("imported", ledger.imported().len().to_string()));
    }
    for entry in ledger.conflicts() {
        rows.push((
            "conflict",
            format!("different values were told for evaluation {}; the first counts", entry.job.id),
        ));
    }
    if let Some(torn) = replay.torn {
        rows.push(("torn end", format!("{} bytes, cut off when the store is next written to", torn.bytes)));
    }
    rows.extend(command(ledger).map(|words| ("likelihood", words.join(" "))));
    print(&facts(&rows))?;
    Ok(Exit::Done)
}
