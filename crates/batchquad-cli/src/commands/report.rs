//! `report`: a page about a run.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use batchquad::run::peek_before_damage;

use crate::{
    cli::{ReportArgs, YesNo},
    exit::{BadInput, Exit},
    output::note,
    page,
    problem::STORE_EXTENSION,
};

pub fn report(args: &ReportArgs) -> Result<Exit> {
    if let Some(value) = args.known_log_z.filter(|value| !value.is_finite()) {
        return Err(BadInput(format!("--known-log-z is {value}, expected a finite number")).into());
    }
    let (engine, replay) = peek_before_damage(&args.store)?;
    let html = page::report(&engine, &replay, &args.store, args.known_log_z)?;
    let (file, named) = match &args.output {
        Some(file) => (file.clone(), page::Named::ByUser),
        None => (page_beside(&args.store), page::Named::ByUs),
    };
    page::save(&html, &file, named)?;
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

/// Where the page of a store goes: the extension of a store is left out, and nothing else, because `model.1` and `model.2` are
/// two names.
fn page_beside(store: &Path) -> PathBuf {
    if store.extension().is_some_and(|extension| extension == STORE_EXTENSION) {
        return store.with_extension("html");
    }
    // "." and ".." have no name of their own.
    let store = if store.file_name().is_none() { store.canonicalize().unwrap_or(store.into()) } else { store.into() };
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".html");
    store.with_file_name(name)
}

/// Shows a file with whatever the system shows pages with.
pub fn open(file: &Path) {
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
