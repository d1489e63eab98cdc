//! The journal's promises: nothing lost, nothing altered, one writer, one state.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod assets;
mod common;
mod crash;
mod damage;
mod ledger;
mod places;
mod processes;
