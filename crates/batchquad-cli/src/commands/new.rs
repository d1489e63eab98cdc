//! `new`: an empty store.

use anyhow::Result;

use crate::{
    cli::NewArgs,
    commands::import,
    exit::Exit,
    output::note,
    problem::{Problem, default_store},
    store,
};

pub fn new(args: &NewArgs) -> Result<Exit> {
    let mut problem = Problem::read(&args.problem)?;
    problem.change(&args.changes)?;
    // Read before the store is made, so that a table with a mistake leaves nothing behind.
    let rows = args.import.as_deref().map(|table| import::read(table, &problem.prior)).transpose()?;
    let dir = args.store.clone().unwrap_or_else(|| default_store(&args.problem));
    let mut session = store::create(&dir, &problem)?;
    note(&format!("made the store {}", dir.display()));
    match rows {
        Some(rows) => import::record(&mut session, rows),
        None => Ok(Exit::Done),
    }
}
