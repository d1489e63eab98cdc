//! Completions and man pages, from the same definitions as the help.

use std::{io::Write, path::Path};

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::{cli::Cli, exit::Exit};

pub fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "batchquad", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}

pub fn man(out: Option<&Path>) -> Result<Exit> {
    match out {
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            clap_mangen::generate_to(Cli::command(), dir)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            std::io::stdout().lock().write_all(&page)?;
        }
    }
    Ok(Exit::Done)
}
