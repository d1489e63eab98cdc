//! `doctor`: what ails a store.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Error,
    journal::{Holder, Salvage, inspect, salvage},
};

use crate::{
    exit::Exit,
    output::{facts, note, print},
};

pub fn doctor(store: &Path, repair: Option<&Path>) -> Result<Exit> {
    let found = inspect(store)?;
    let mut rows = vec![("store", store.display().to_string()), ("journal", format!("{} bytes", found.bytes))];
    let damaged = match &found.replay {
        Ok(replay) => {
            rows.push(("records", (replay.records.len() + 1).to_string()));
            rows.push(("written by", replay.header.written_by().to_owned()));
            if let Some(torn) = &replay.torn {
                rows.push((
                    "torn end",
                    format!("{} bytes, cut off and kept aside when the store is next written to", torn.bytes),
                ));
            }
            replay.damage.as_ref().map(|d| format!("record {}: {}", d.record, d.reason))
        }
        Err(Error::StoreDamaged { record, reason, .. }) => Some(format!("record {record}: {reason}")),
        Err(e) => return Err(e.clone().into()),
    };
    rows.extend(found.torn.iter().map(|path| ("kept aside", path.display().to_string())));
    rows.extend(found.exposed.iter().map(|path| ("readable by others", path.display().to_string())));
    if let Some(holder) = &found.holder {
        let state = match Holder::at_work(store) {
            Some(_) => "is writing",
            None => "was killed while writing; nothing to do",
        };
        rows.push(("writer", format!("process {} on {} {state}", holder.pid, holder.host)));
    }
    rows.push(("damage", damaged.clone().unwrap_or_else(|| "none".into())));
    if let Some(saved) = &found.salvage {
        rows.push((
            "can be saved",
            match saved {
                Ok(saved) => describe(saved),
                Err(e) => format!("nothing: {e}"),
            },
        ));
    }
    print(&facts(&rows))?;
    if let Some(new) = repair {
        let saved = salvage(store, new)?;
        note(&format!("wrote {}: {}", new.display(), describe(&saved)));
        return Ok(Exit::Done);
    }
    if damaged.is_some() {
        note("save what can be saved with --repair NEW; nothing is written to this store");
        return Ok(Exit::Damaged);
    }
    Ok(Exit::Done)
}

fn describe(saved: &Salvage) -> String {
    let mut text = format!("{} records", saved.kept);
    if !saved.mended.is_empty() {
        text.push_str(&format!(", lines {:?} put right", saved.mended));
    }
    for lost in &saved.lost {
        text.push_str(&format!("; line {} is lost ({})", lost.record, lost.reason));
    }
    text
}
