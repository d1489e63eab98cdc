//! Whether to believe the number: `MATH.md` §14.
//!
//! [`diagnose`] looks at a run from several sides. Each [`Finding`] has a value, a plain sentence and a [`Level`]; the
//! verdict is the worst of them. How often the verdict is right was measured; the table is in `MATH.md`.
//!
//! ```
//! use batchquad::{Config, Prior, run::{Level, diagnose}, integrate, prior::Distribution};
//! let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0)?)])?;
//! let integral = integrate(|t| -0.5 * (t[0] - 1.0).powi(2) / 0.25, prior, Config::default())?;
//! let diagnosis = diagnose(&integral.engine)?;
//! assert!(diagnosis.verdict < Level::DoNotTrust, "{}", diagnosis.summary());
//! # Ok::<(), batchquad::Error>(())
//! ```

mod findings;
mod forecast;

use serde::{Deserialize, Serialize};

pub use self::forecast::Forecast;
use crate::{belief::residuals::Residual, error::Result, run::engine::Engine};

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing to worry about.
    Fine,
    /// Worth a look; the number may still be right.
    Look,
    /// The number or its error bar is probably wrong.
    DoNotTrust,
}

impl Level {
    /// The level in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Look => "look",
            Self::DoNotTrust => "do not trust",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A short name, the same in every run.
    pub name: &'static str,
    /// What was measured; its unit is in the sentence.
    pub value: f64,
    /// What it means, for a person.
    pub sentence: String,
    /// How much it matters.
    pub level: Level,
}

/// All that was found out about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The worst level of all findings.
    pub verdict: Level,
    /// What was looked at, in a fixed order.
    pub findings: Vec<Finding>,
    /// The leave-one-out residual of every node, in the order of the surrogate's nodes.
    pub residuals: Vec<Residual>,
    /// What was predicted for the points of batches before they were evaluated.
    pub forecasts: Vec<Forecast>,
    /// One in so many batches was predicted anew: every batch (1) unless there are very many values.
    pub forecast_stride: usize,
}

impl Diagnosis {
    /// The verdict in a sentence, with the findings that led to it.
    #[must_use]
    pub fn summary(&self) -> String {
        let head = match self.verdict {
            Level::Fine => return "nothing speaks against log Z and its error bar".into(),
            Level::Look => "worth a look",
            Level::DoNotTrust => "do not trust log Z or its error bar",
        };
        let worst = self.findings.iter().filter(|f| f.level == self.verdict).map(|f| f.sentence.as_str());
        format!("{head}: {}", worst.collect::<Vec<_>>().join("; "))
    }

    /// Standardised leave-one-out residuals, sorted, beside the normal quantiles that they would have if the model were
    /// right: on the diagonal of a plot, as `(expected, found)`.
    #[must_use]
    pub fn calibration(&self) -> Vec<(f64, f64)> {
        let mut sorted: Vec<f64> = self.residuals.iter().map(|r| r.standardised).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let expected = |i: usize| crate::numeric::normal::quantile_of_log_cdf(((i as f64 + 0.5) / n).ln());
        sorted.iter().enumerate().map(|(i, r)| (expected(i), *r)).collect()
    }
}

/// Looks at a run from all sides. Cost: about ten factorisations for the forecasts.
///
/// # Errors
/// As [`Engine::current`].
pub fn diagnose(engine: &Engine) -> Result<Diagnosis> {
    let current = engine.current()?;
    let (forecasts, forecast_stride) = forecast::forecasts(engine)?;
    let findings = findings::all(engine, current, &forecasts)?;
    let verdict = findings.iter().map(|f| f.level).max().unwrap_or(Level::Fine);
    Ok(Diagnosis { verdict, findings, residuals: current.residuals.clone(), forecasts, forecast_stride })
}
