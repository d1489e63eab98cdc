//! One file for each command.

mod ask;
mod check;
mod compare;
mod doctor;
mod draws;
mod export;
mod extras;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod fuzz;
mod import;
mod new;
mod report;
mod result;
mod run;
mod status;
mod tell;
mod watch;

use anyhow::Result;

use crate::{cli::Command, exit::Exit};

/// Carries out a command.
pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Check { problem } => check::check(&problem),
        Command::New(args) => new::new(&args),
        Command::Ask(args) => ask::ask(&args),
        Command::Tell { store, file } => tell::tell(&store, file.as_deref()),
        Command::Import { store, table } => import::import(&store, &table),
        Command::Status(args) => status::status(&args),
        Command::Watch { store, once } => watch::watch(&store, once),
        Command::Result(args) => result::result(&args),
        Command::Draws(args) => draws::draws(&args),
        Command::Export { store } => export::export(&store),
        Command::Compare { stores, json, html } => compare::compare(&stores, json, html.as_deref()),
        Command::Report(args) => report::report(&args),
        Command::Doctor { store, repair } => doctor::doctor(&store, repair.as_deref()),
        Command::Completions { shell } => extras::completions(shell),
        Command::Man { out } => extras::man(out.as_deref()),
    }
}
