//! The run as a fold of its events: pure asking, resuming after every event, any order of answers, honest endings.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod common;
mod endings;
mod fold;
