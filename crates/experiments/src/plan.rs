//! What every experiment is told.

use std::ops::Range;

use batchquad::{
    Settings,
    choose::Penalisation,
    run::{KernelChoice, Reference, SurrogateChoice},
};

/// Runs, seeds and settings, as given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Runs of each kind; by default the experiment's own number.
    pub runs: Option<u64>,
    /// The seed of the first run; the others follow.
    pub seed: u64,
    /// Evaluations of a run; by default the experiment's own number.
    pub budget: Option<usize>,
    /// Every other choice of the library.
    pub settings: Settings,
}

impl Plan {
    /// The seeds of the runs of an experiment that usually makes so many.
    #[must_use]
    pub fn seeds(&self, usual: u64) -> Range<u64> {
        self.seed..self.seed.saturating_add(self.runs.unwrap_or(usual))
    }

    /// The evaluations of a run that usually has so many.
    #[must_use]
    pub fn budget(&self, usual: usize) -> usize {
        self.budget.unwrap_or(usual)
    }

    /// The same with WSABI-L against the prior, with one lengthscale and with the paper's cones.
    #[must_use]
    pub fn as_in_the_paper(&self) -> Self {
        let surrogate = match self.settings.surrogate {
            SurrogateChoice::Auto => SurrogateChoice::WsabiL,
            chosen => chosen,
        };
        let settings = Settings {
            surrogate,
            reference: Reference::Prior,
            kernel: KernelChoice::Isotropic,
            penalisation: Penalisation::PAPER,
            ..self.settings.clone()
        };
        Self { settings, ..self.clone() }
    }
}
