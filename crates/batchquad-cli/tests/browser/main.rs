//! Pages as a real browser shows them. Needs Chromium: `scripts/test` installs it; without it the tests say so and pass, unless
//! `BATCHQUAD_BROWSER` is set, which names the program to use.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chromium;
#[path = "../program/common.rs"]
#[allow(dead_code)]
mod common;
mod hostile;
mod live;
mod pages;
