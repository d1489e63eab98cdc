//! `status`: how far a run is.

use anyhow::Result;
use batchquad::run::{
    peek,
    report::{Tally, Trust},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::StoreArgs,
    exit::Exit,
    output::{facts, plus_minus, print, print_json},
    store::{bridge, command, state},
};

/// How far a run is, in the words of `result`.
#[derive(Serialize)]
struct Shown<'a> {
    state: &'a str,
    #[serde(flatten)]
    tally: Tally,
    max_evaluations: usize,
    log_z: Option<f64>,
    log_z_sd: Option<f64>,
    #[serde(flatten)]
    trust: Option<Trust>,
    seed: u64,
    writer: Option<Value>,
    torn_bytes: Option<u64>,
    written_by: &'a str,
}

pub fn status(args: &StoreArgs) -> Result<Exit> {
    let (engine, replay) = peek(&args.store)?;
    let ledger = engine.ledger();
    let tally = Tally::of(ledger);
    let last = engine.history().last().map(|round| &round.belief);
    let (log_z, log_z_sd) = (last.and_then(|b| b.log_z), last.and_then(|b| b.log_z_sd));
    let trust = Trust::recorded(ledger);
    let (state, writer) = state(&engine, &args.store);
    if args.json {
        print_json(&Shown {
            state,
            tally,
            max_evaluations: engine.settings().max_evaluations,
            log_z,
            log_z_sd,
            trust,
            seed: engine.seed(),
            writer: writer.map(|h| json!({"pid": h.pid, "host": h.host})),
            torn_bytes: replay.torn.map(|t| t.bytes),
            written_by: ledger.header().written_by(),
        })?;
        return Ok(Exit::Done);
    }
    let kinds = tally.kinds();
    let counts = format!("{} of {}, {} pending", tally.evaluations, engine.settings().max_evaluations, tally.pending);
    let mut rows = vec![
        ("state", writer.map_or(state.to_owned(), |h| format!("{state}: process {} on {}", h.pid, h.host))),
        ("evaluations", counts),
        ("batches", tally.batches.to_string()),
        ("failed", if kinds.is_empty() { "none".into() } else { kinds }),
        ("parameters", ledger.header().names().join(", ")),
    ];
    if let (Some(log_z), Some(sd)) = (log_z, log_z_sd) {
        rows.insert(2, ("log Z", format!("{} when the last batch was chosen", plus_minus(log_z, sd))));
    }
    if let Some(trust) = &trust {
        let after_log_z = rows.iter().position(|(label, _)| *label == "log Z").map_or(rows.len(), |i| i + 1);
        rows.insert(after_log_z, ("verdict", trust.line_at(ledger)));
    }
    if tally.imported > 0 {
        rows.push(("imported", tally.imported.to_string()));
    }
    for id in &tally.conflicts {
        rows.push(("conflict", format!("different values were told for evaluation {id}; the first counts")));
    }
    if let Some(torn) = replay.torn {
        rows.push(("torn end", format!("{} bytes, cut off when the store is next written to", torn.bytes)));
    }
    rows.extend(command(ledger).map(|words| ("likelihood", words.join(" "))));
    rows.extend(bridge(ledger).map(|bridge| ("likelihood", format!("{} at {}", bridge.model, bridge.url.join(", ")))));
    print(&facts(&rows))?;
    Ok(Exit::Done)
}
