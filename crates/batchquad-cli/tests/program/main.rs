//! The program as its users meet it: commands, files, signals and exit codes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod assets;
mod by_hand;
mod commands;
mod common;
mod documentation;
mod endings;
mod examples;
mod first_hour;
mod hostile;
mod kills;
mod mistakes;
mod noise;
mod numbers;
mod places;
mod repeats;
mod reports;
mod signals;
mod slurm;
mod stopping;
