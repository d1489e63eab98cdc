//! The program `batchquad`: evidences of models whose likelihood is a command in any language.
//!
//! The library serves packages that include the program, such as the Python package: [`program`] is the whole program, and [`report_page`]
//! writes its page about a run.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod evaluations;
mod exit;
mod machine;
mod output;
mod page;
mod problem;
mod progress;
mod reading;
mod report;
mod screen;
mod serve;
mod signals;
mod store;
mod view;

use std::{ffi::OsString, path::Path, sync::OnceLock};

use batchquad::{Engine, journal::Replay};
use clap::Parser;

use crate::{cli::Cli, exit::Exit};

/// The words that the program was called with.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the program with the words of a command line, beginning with the program's own name, and returns its exit code.
///
/// It listens to signals and may end the process: call it once, from a process that has nothing else to do.
#[must_use]
pub fn program(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: &[OsString] = WORDS.get_or_init(|| words.into_iter().collect());
    let command = match Cli::try_parse_from(words) {
        Ok(cli) => cli.command,
        Err(e) => {
            // Help and version are errors too; if they cannot be printed, nobody is there to be told.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(Exit::BadInput as u8);
        }
    };
    machine::outlive_limits();
    let _threads = machine::threads();
    let exit = machine::require_memory().and_then(|()| commands::run(command)).unwrap_or_else(|error| {
        if exit::is_broken_pipe(&error) {
            return Exit::Done;
        }
        output::note(&format!("{error:#}"));
        let exit = Exit::of_error(&error);
        if exit == Exit::Damaged {
            output::note("look at it with `batchquad doctor STORE`, save it with `--repair NEW`");
        }
        if let Some(advice) = store::meant(&error) {
            output::note(&advice);
        }
        exit
    });
    exit as u8
}

/// The report of a run as one page of HTML that stands alone; `name` is what the model is called.
///
/// # Errors
/// What the library refuses, in words.
pub fn report_page(engine: &Engine, replay: &Replay, name: &str, known_log_z: Option<f64>) -> Result<String, String> {
    // A name may have a dot in it, which is not the beginning of an extension.
    let name = format!("{name}.{}", problem::STORE_EXTENSION);
    page::report(engine, replay, Path::new(&name), known_log_z).map_err(|e| format!("{e:#}"))
}
