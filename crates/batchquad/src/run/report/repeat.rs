//! Independent runs, one by one.

use serde::Serialize;

use super::{tally::Tally, words::plus_minus};
use crate::run::engine::{Believed, Engine};

/// What one of several independent runs says by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeat {
    /// Its number, counted from one.
    pub repeat: usize,
    /// Its seed: a run with this seed and no repeats asks for the same points.
    pub seed: u64,
    /// Its estimate of log Z; absent where it has none.
    pub log_z: Option<f64>,
    /// The standard deviation of that.
    pub log_z_sd: Option<f64>,
    /// How many of its evaluations are answered.
    pub evaluations: usize,
}

impl Repeat {
    /// All of them. What is not known already is worked out, or else as it is remembered, or as it was when the last batch was chosen.
    #[must_use]
    pub fn all(engine: &Engine, work_out: bool) -> Vec<Self> {
        let of = |(k, run): (usize, &Engine)| {
            let known = if work_out { run.current().ok().map(|c| &c.believed) } else { run.remembered() };
            let belief: Option<&Believed> = known.or(run.history().last().map(|round| &round.belief));
            Self {
                repeat: k + 1,
                seed: run.seed(),
                log_z: belief.and_then(|b| b.log_z),
                log_z_sd: belief.and_then(|b| b.log_z_sd),
                evaluations: Tally::of(run.ledger()).evaluations,
            }
        };
        engine.repeats().iter().enumerate().map(of).collect()
    }

    /// The run on one line; there are `all` of them.
    #[must_use]
    pub fn line(&self, all: usize) -> String {
        let log_z =
            self.log_z.zip(self.log_z_sd).map_or_else(|| "no log Z".into(), |(log_z, sd)| plus_minus(log_z, sd));
        format!("{} of {all}: {log_z} from {} evaluations", self.repeat, self.evaluations)
    }
}
