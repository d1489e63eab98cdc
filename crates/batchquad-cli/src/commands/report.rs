//! `report`: a page about a run.

use std::{path::Path, process::Command};

use anyhow::Result;
use batchquad::run::peek_before_damage;

use crate::{
    cli::{ReportArgs, YesNo},
    exit::{BadInput, Exit},
    output::note,
    page,
};

pub fn report(args: &ReportArgs) -> Result<Exit> {
    if let Some(value) = args.known_log_z.filter(|value| !value.is_finite()) {
        return Err(BadInput(format!("--known-log-z is {value}, expected a finite number")).into());
    }
    let (engine, replay) = peek_before_damage(&args.store)?;
    let html = page::report(&engine, &replay, &args.store, args.known_log_z)?;
    let file = args.output.clone().unwrap_or_else(|| args.store.with_extension("html"));
    page::save(&html, &file)?;
    let to_a_file = file.as_os_str() != "-";
    if to_a_file {
        note(&format!("wrote {}", file.display()));
    }
    if to_a_file && args.open == YesNo::Yes {
        open(&file);
    }
    if let Some(damage) = &replay.damage {
        note(&format!("record {} and all after it are damaged and were left out: {}", damage.record, damage.reason));
        return Ok(Exit::Damaged);
    }
    Ok(Exit::Done)
}

/// Shows a file with whatever the system shows pages with.
fn open(file: &Path) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    if let Err(e) = Command::new(program).arg(file).spawn() {
        note(&format!("cannot show it with {program}: {e}"));
    }
}
