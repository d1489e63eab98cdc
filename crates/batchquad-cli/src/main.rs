//! The program `batchquad`: evidences of models whose likelihood is a command in any language.

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
mod signals;
mod store;
mod view;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Cli, exit::Exit};

fn main() -> ExitCode {
    let command = Cli::parse().command;
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
        exit
    });
    ExitCode::from(exit as u8)
}
