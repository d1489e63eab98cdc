//! One file for each command.

mod ask;
mod check;
mod compare;
mod demo;
mod doctor;
mod draws;
mod export;
mod extras;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod fuzz;
mod import;
mod init;
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
        Command::Demo(args) => demo::demo(&args),
        Command::Init(args) => init::init(&args),
        Command::Run(args) => run::run(&args),
        Command::Check { problem } => check::check(&problem),
        Command::New(args) => new::new(&args),
        Command::Ask(args) => ask::ask(&args),
        Command::Tell { store, file, replace } => tell::tell(&store, file.as_deref(), replace),
        Command::Import { store, table } => import::import(&store, &table),
        Command::Status(args) => status::status(&args),
        Command::Watch { store, html: true, open, .. } => watch::page(&store, open),
        Command::Watch { store, once, .. } => watch::watch(&store, once),
        Command::Result(args) => result::result(&args),
        Command::Draws(args) => draws::draws(&args),
        Command::Export { store } => export::export(&store),
        Command::Compare { stores, json, html, strict } => compare::compare(&stores, json, html.as_deref(), strict),
        Command::Report(args) => report::report(&args),
        Command::Doctor { store, repair } => doctor::doctor(&store, repair.as_deref()),
        Command::Completions { shell } => extras::completions(shell),
        Command::Man { out } => extras::man(out.as_deref()),
    }
}
