//! How far a run is, what was believed on the way, and what it was given.

use serde_json::Value;

use super::{Engine, Round};
use crate::{
    error::{Error, Result},
    journal::Ledger,
    prior::Prior,
    run::settings::Settings,
};

impl Engine {
    /// What was believed after every batch, up to now; of several independent runs, one after the other. Cost: that of [`Engine::current`] of each.
    #[must_use]
    pub fn rounds(&self) -> Vec<Round> {
        if !self.repeats.is_empty() {
            return self.repeats.iter().flat_map(Self::rounds).collect();
        }
        let mut rounds = self.history.clone();
        if let Ok(current) = self.current() {
            let known = rounds.last().is_some_and(|r| r.belief.values == current.believed.values);
            if !known {
                let batches = self.ledger.batches().len();
                rounds.push(Round { batches, repeat: self.number, belief: current.believed.clone() });
            }
        }
        rounds
    }

    /// How many evaluations may still be asked for; of several independent runs, for all together.
    #[must_use]
    pub fn left(&self) -> usize {
        if !self.repeats.is_empty() {
            return self.repeats.iter().map(Self::left).sum();
        }
        let used = self.ledger.entries().len() + self.ledger.imported().len();
        self.settings.max_evaluations.saturating_sub(used)
    }

    /// How many points the next batch should have: the whole batch for an initial design, then no more than the share of the values
    /// known that [`Settings::growth`] allows.
    #[must_use]
    pub fn next_batch(&self) -> usize {
        if self.ledger.entries().len() < self.initial_size() {
            return self.settings.batch;
        }
        let values = self.ledger.values().count() + self.ledger.imported().len();
        self.settings.batch_after(values, self.prior.dim())
    }

    /// How many points a run begins with: those to start from, and an initial design, of which none are needed when values were imported.
    #[must_use]
    pub fn initial_size(&self) -> usize {
        let wanted = self.settings.design_size(self.prior.dim());
        self.starts.len() + wanted.saturating_sub(self.ledger.imported().len())
    }

    /// The seed of the run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.ledger.header().seed()
    }

    /// The prior.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All that has happened.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was believed each time a batch was chosen.
    #[must_use]
    pub fn history(&self) -> &[Round] {
        &self.history
    }

    /// How many points were space-filling because the acquisition had none to offer.
    #[must_use]
    pub fn fallbacks(&self) -> usize {
        self.fallbacks
    }
}

/// The settings in a journal, of this release or an earlier one.
pub(super) fn read_settings(map: &serde_json::Map<String, Value>, dim: usize) -> Result<Settings> {
    let mut map = map.clone();
    // Runs from before there was a choice integrated against the prior.
    map.entry("reference").or_insert_with(|| Value::from("prior"));
    let settings: Settings = serde_json::from_value(Value::Object(map))
        .map_err(|e| Error::invalid("settings", e.to_string(), "settings of this release"))?;
    settings.validate()?;
    match &settings.known_kernel {
        Some(known) if known.lengthscales.len() != dim => {
            Err(Error::length("known_kernel.lengthscales", dim, known.lengthscales.len()))
        }
        _ => Ok(settings),
    }
}
