//! The program `batchquad`: evidences of models whose likelihood is a command in any language.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(batchquad_cli::program(std::env::args_os()))
}
