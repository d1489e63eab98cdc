//! `status`: how far a run is.

use anyhow::Result;
use batchquad::run::{
    Outlook, peek,
    report::{Repeat, Tally, Trust},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::StoreArgs,
    exit::Exit,
    output::{facts, plus_minus, print, print_json},
    store::{bridge, command, last_log_z, state},
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeats: Vec<Repeat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outlook: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluations_needed: Option<usize>,
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
    let last = last_log_z(&engine);
    let repeats = Repeat::all(&engine, false);
    let (outlook, sentence) = Outlook::of(&engine, false).unzip();
    let evaluations_needed = outlook.and_then(|outlook| outlook.needed());
    let most = engine.settings().most_evaluations();
    let trust = Trust::recorded(ledger);
    let (state, writer) = state(&engine, &args.store);
    if args.json {
        print_json(&Shown {
            state,
            tally,
            max_evaluations: most,
            log_z: last.as_ref().map(|l| l.0),
            log_z_sd: last.as_ref().map(|l| l.1),
            repeats,
            outlook: sentence,
            evaluations_needed,
            trust,
            seed: engine.seed(),
            writer: writer.map(|h| json!({"pid": h.pid, "host": h.host})),
            torn_bytes: replay.torn.map(|t| t.bytes),
            written_by: ledger.header().written_by(),
        })?;
        return Ok(Exit::Done);
    }
    let kinds = tally.kinds();
    let counts = format!("{} of {}, {} pending", tally.evaluations, most, tally.pending);
    let mut rows = vec![
        ("state", writer.map_or(state.to_owned(), |h| format!("{state}: process {} on {}", h.pid, h.host))),
        ("evaluations", counts),
        ("batches", tally.batches.to_string()),
        ("failed", if kinds.is_empty() { "none".into() } else { kinds }),
        ("parameters", ledger.header().names().join(", ")),
    ];
    let mut found: Vec<(&str, String)> = Vec::new();
    found.extend(last.map(|(log_z, sd, of)| ("log Z", format!("{} {of}", plus_minus(log_z, sd)))));
    found.extend(repeats.iter().map(|repeat| ("repeat", repeat.line(repeats.len()))));
    found.extend(trust.map(|trust| ("verdict", trust.line_at(ledger))));
    found.extend(sentence.map(|sentence| ("outlook", sentence)));
    rows.splice(2..2, found);
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
