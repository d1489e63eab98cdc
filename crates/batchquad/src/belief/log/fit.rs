//! Hyperparameters of the process by marginal likelihood, with weak log-normal priors. `MATH.md` §15.

use super::process::{Data, Hyper, Process, log_marginal};
use crate::{
    belief::nodes::enough,
    error::{Error, Result},
    interrupt::Heeded,
    numeric::{
        optim::{Ascent, Bounds, maximise},
        parallel::each,
    },
};

/// The noise below which nothing that matters to an evidence can be told.
const LEAST_NOISE: f64 = 1e-4;

/// The least noise relative to the range of the values: keeps the matrix well conditioned when they are exactly quadratic.
const RELATIVE_NOISE: f64 = 3e-7;

/// Standard deviations of the log-normal priors: `σ`, `b`, `η`, `λ`.
const LOG_SD: [f64; 4] = [2.5, 2.5, 2.5, 0.7];

/// The median of the prior of the noise.
const NOISE_MEDIAN: f64 = 1e-3;

/// What hyperparameters may be at the most and at the least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The noise at the most, as far as values that are close to each other tell.
    pub(crate) noise_cap: f64,
    /// The size of the quadratic's coefficients at the least.
    pub(crate) least_quadratic: f64,
}

impl Limits {
    pub(crate) fn of_noise(noise_cap: f64) -> Self {
        Self { noise_cap, least_quadratic: 0.0 }
    }
}

/// The process at the best hyperparameters found.
pub(crate) struct Fitted {
    pub(crate) process: Process,
    /// The log marginal likelihood of the values that the search was made with, plus the log prior of the hyperparameters.
    pub(crate) objective: f64,
    /// The share of all values that these are.
    pub(crate) share: f64,
}

struct Scale {
    spread: f64,
    /// The size of the quadratic's coefficients that gives values of this spread at the nodes.
    bend: f64,
    range: f64,
    floor: f64,
    length: f64,
}

impl Scale {
    fn new(data: &Data) -> Self {
        let n = data.targets.len() as f64;
        let mean = data.targets.iter().sum::<f64>() / n;
        let spread = (data.targets.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n).sqrt().max(0.3);
        let low = data.targets.iter().copied().fold(f64::INFINITY, f64::min);
        let high = data.targets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = (high - low).max(1.0);
        let mut squares: Vec<f64> =
            data.straighten(&data.nodes).0.rows().map(|x| x.iter().map(|v| v * v).sum()).collect();
        squares.sort_by(f64::total_cmp);
        let bend = spread / (1.0 + squares[squares.len() / 2]);
        let length = 1.5 * (data.nodes.dim() as f64).sqrt();
        Self { spread, bend, range, floor: LEAST_NOISE.max(RELATIVE_NOISE * range), length }
    }

    fn hyper(&self, log: &[f64]) -> Hyper {
        Hyper {
            sigma: log[0].exp(),
            quadratic: log[1].exp(),
            noise: log[2].exp(),
            lengthscales: log[3..].iter().map(|l| l.exp()).collect(),
            constant: 3.0 * self.range.max(3.0),
        }
    }

    fn median(&self, k: usize) -> f64 {
        match k {
            0 => self.spread.ln(),
            1 => self.bend.ln(),
            2 => NOISE_MEDIAN.max(self.floor).ln(),
            _ => self.length.ln(),
        }
    }

    fn sd(k: usize) -> f64 {
        LOG_SD[k.min(3)]
    }
}

fn to_log(hyper: &Hyper) -> Vec<f64> {
    let mut log = vec![hyper.sigma.ln(), hyper.quadratic.ln(), hyper.noise.ln()];
    log.extend(hyper.lengthscales.iter().map(|l| l.ln()));
    log
}

/// The process with hyperparameters of the highest marginal likelihood, where there are many values that of [`enough`] of them; `warm` alone makes a
/// refit cheap.
pub(crate) fn fit(data: &Data, warm: Option<&Hyper>, thorough: bool, limits: Limits) -> Result<Fitted> {
    let Limits { noise_cap, least_quadratic } = limits;
    let d = data.nodes.dim();
    let scale = Scale::new(data);
    let heeded = Heeded::here();
    let fewer = enough(data.targets.len()).map(|some| data.select(&some));
    let told = fewer.as_ref().unwrap_or(data);
    let evaluate = |log: &[f64]| -> Result<(f64, Vec<f64>)> {
        heeded.check()?;
        let (mut value, mut gradient) = match log_marginal(&scale.hyper(log), told) {
            Ok(found) => found,
            // Too far for the factorisation: the step is shortened.
            Err(Error::NotPositiveDefinite { .. } | Error::Numerical { .. }) => {
                return Ok((f64::NEG_INFINITY, vec![0.0; log.len()]));
            }
            Err(other) => return Err(other),
        };
        for (k, l) in log.iter().enumerate() {
            let z = (l - scale.median(k)) / Scale::sd(k);
            value -= 0.5 * z * z;
            gradient[k] -= z / Scale::sd(k);
        }
        Ok((value, gradient))
    };
    let mut starts = Vec::new();
    if let Some(hyper) = warm {
        starts.push(to_log(hyper));
    }
    if thorough || starts.is_empty() {
        let start = |sigma: f64, b: f64, noise: f64, length: f64| {
            let mut s = vec![sigma.ln(), b.ln(), noise.ln()];
            s.extend(std::iter::repeat_n(length.ln(), d));
            s
        };
        let (s, b) = (scale.spread, scale.bend);
        starts.push(start(s, b, 10.0 * scale.floor, scale.length));
        starts.push(start(0.02 * s, 2.0 * b, 3.0 * scale.floor, scale.length));
        starts.push(start(s, b, 0.1 * s, 0.5 * scale.length));
    }
    let mut low = vec![(1e-5 * scale.spread).ln(), least_quadratic.max(1e-4 * scale.bend).ln(), scale.floor.ln()];
    let mut high = vec![
        (1e2 * scale.spread).ln(),
        (1e2 * scale.bend).max(2.0 * least_quadratic).ln(),
        (3.0 * scale.spread).min(noise_cap.max(2.0 * scale.floor)).ln(),
    ];
    low.extend(std::iter::repeat_n((0.03 * scale.length).ln(), d));
    high.extend(std::iter::repeat_n((20.0 * scale.length).ln(), d));
    let bounds = Bounds::new(low, high).map_err(|_| Error::Numerical {
        what: "search for hyperparameters".into(),
        reason: format!("log-likelihoods that differ by {:e} leave no room for it", scale.range),
    })?;
    let ascent = Ascent { max_evaluations: 40, gradient_tolerance: 2e-2, value_tolerance: 1e-3, max_step: 2.0 };
    let summits =
        maximise(&starts, &bounds, ascent, |trials| each(trials, told.targets.len().pow(3), |log| evaluate(log)))?;
    let best = summits.iter().reduce(|a, b| if b.value > a.value { b } else { a });
    let Some(best) = best.filter(|b| b.value.is_finite()) else {
        return Err(Error::Numerical {
            what: "search for hyperparameters".into(),
            reason: "no start had a finite value".into(),
        });
    };
    let share = told.targets.len() as f64 / data.targets.len() as f64;
    Ok(Fitted { process: Process::new(scale.hyper(&best.x), data.clone())?, objective: best.value, share })
}
