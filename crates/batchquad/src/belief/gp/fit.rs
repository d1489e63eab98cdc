//! Hyperparameters: the marginal likelihood, its gradient, and the search for its maximum. [`MATH.md` §8](crate::math).

use std::f64::consts::TAU;

use rayon::prelude::*;

use crate::{
    belief::{
        gp::{Gp, require_targets},
        kernel::{Kernel, SquaredExponential},
        nodes::enough,
    },
    error::{Error, Result, require_positive},
    interrupt::Heeded,
    numeric::{
        linalg::{Factor, Jitter},
        optim::{Ascent, Bounds, maximise},
        pairs::Columns,
        simd::dot,
    },
    points::Points,
};

/// The log marginal likelihood and its gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct MarginalLikelihood {
    /// `log p(g | X, σ², λ)`.
    pub value: f64,
    /// `∂/∂ log σ²`.
    pub log_sigma2_gradient: f64,
    /// `∂/∂ log λₐ`, one per dimension (their sum is the derivative of an isotropic kernel).
    pub log_lengthscale_gradient: Vec<f64>,
}

/// `log p(g) = −½ gᵀK⁻¹g − ½ log|K| − ½ n log 2π` with its gradient `½ tr((wwᵀ − K⁻¹) ∂K)`.
///
/// The jitter counts as part of the kernel and scales with σ². Cost: `n³`, and `2n²` numbers of memory.
///
/// # Errors
/// As [`Gp::new`].
pub fn log_marginal_likelihood(
    kernel: &SquaredExponential,
    nodes: &Points,
    targets: &[f64],
    jitter: Jitter,
) -> Result<MarginalLikelihood> {
    require_targets(nodes, targets)?;
    let unit = Unit::new(kernel.lengthscales(), nodes, targets, jitter)?;
    let (n, sigma2) = (targets.len() as f64, kernel.sigma2());
    Ok(MarginalLikelihood {
        value: -0.5 * (unit.energy / sigma2 + unit.factor.log_det() + n * (TAU * sigma2).ln()),
        log_sigma2_gradient: 0.5 * (unit.energy / sigma2 - n),
        log_lengthscale_gradient: unit.lengthscale_gradient(sigma2),
    })
}

/// Everything about the kernel matrix at unit variance.
struct Unit {
    kernel: SquaredExponential,
    white: Columns,
    factor: Factor,
    weights: Vec<f64>,
    /// `gᵀR⁻¹g`.
    energy: f64,
}

impl Unit {
    fn new(lengthscales: &[f64], nodes: &Points, targets: &[f64], jitter: Jitter) -> Result<Self> {
        let kernel = SquaredExponential::new(1.0, lengthscales.to_vec())?;
        nodes.require_dim("lengthscales", kernel.dim())?;
        let white = kernel.whiten(nodes);
        let factor = Factor::new(|| kernel.form(&white, &white).lower(), 1.0, jitter)?;
        let weights = factor.solve_vec(targets);
        let energy = dot(&weights, targets);
        Ok(Self { kernel, white, factor, weights, energy })
    }

    /// The variance of the highest likelihood, with its weak prior: `σ² = (gᵀR⁻¹g + 1)/(n + 1)`.
    fn best_sigma2(&self) -> f64 {
        (self.energy + SIGMA2_PRIOR) / (self.weights.len() as f64 + SIGMA2_PRIOR)
    }

    /// The posterior with that variance.
    fn posterior(self, nodes: &Points, targets: &[f64]) -> Result<Gp> {
        let sigma2 = self.best_sigma2();
        let kernel = SquaredExponential::new(sigma2, self.kernel.lengthscales().to_vec())?;
        Ok(Gp::assemble(kernel, nodes.clone(), targets.to_vec(), self.white, self.factor.scaled(sigma2)))
    }

    /// `½ Σᵢⱼ (wᵢwⱼ/σ² − R⁻¹ᵢⱼ) Rᵢⱼ (xᵢₐ − xⱼₐ)²/λₐ²` for each dimension `a`; here `w = R⁻¹g`.
    fn lengthscale_gradient(self, sigma2: f64) -> Vec<f64> {
        let inverse = self.factor.into_inverse_lower();
        let scaled: Vec<f64> = self.weights.iter().map(|w| w / sigma2).collect();
        let mut gradient = vec![0.0; self.kernel.dim()];
        self.kernel.form(&self.white, &self.white).slopes(&self.weights, &scaled, &inverse, &mut gradient);
        // Both triangles, times the 2 by which whitened squares are smaller: ½·2·2.
        gradient.iter().map(|g| 2.0 * g).collect()
    }
}

/// How hyperparameters are found.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// One lengthscale per dimension, or one for all (as in the paper).
    pub ard: bool,
    /// The median of the log-normal prior on each lengthscale, in the coordinates of the nodes.
    pub lengthscale_median: f64,
    /// Its standard deviation in the logarithm: weak, but enough that no lengthscale runs away when the data are
    /// silent.
    pub lengthscale_log_sd: f64,
    /// Lengthscales are searched between these.
    pub lengthscale_bounds: (f64, f64),
    /// Lengthscales (the same in all dimensions) from which the search starts, besides a warm start. None of them and a
    /// warm start make a refit cheap.
    pub starts: Vec<f64>,
    /// Jitter of the kernel matrix.
    pub jitter: Jitter,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            ard: false,
            lengthscale_median: 1.0,
            lengthscale_log_sd: 1.0,
            // Twenty prior widths: anything longer is a constant as far as the integral can tell.
            lengthscale_bounds: (1e-3, 20.0),
            starts: vec![0.05, 0.2, 0.7, 2.5],
            jitter: Jitter::default(),
        }
    }
}

impl FitOptions {
    fn validate(&self) -> Result<()> {
        require_positive("median of the lengthscale prior", self.lengthscale_median)?;
        require_positive("log sd of the lengthscale prior", self.lengthscale_log_sd)?;
        require_positive("lower lengthscale bound", self.lengthscale_bounds.0)?;
        require_positive("upper lengthscale bound", self.lengthscale_bounds.1)?;
        for &s in &self.starts {
            require_positive("start of the lengthscale search", s)?;
        }
        Ok(())
    }
}

/// The outcome of a search for hyperparameters.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The posterior at the best hyperparameters found.
    pub gp: Gp,
    /// The log marginal likelihood of the values that the search was made with, plus the log prior of the hyperparameters there.
    pub objective: f64,
    /// How many evaluations of the marginal likelihood the search took.
    pub evaluations: usize,
    /// Whether a lengthscale ended at a bound of the search.
    pub at_bound: bool,
}

/// Pseudo-observations behind σ²: an inverse-gamma prior worth one value of size one, so that σ² is never zero.
const SIGMA2_PRIOR: f64 = 1.0;

/// A value this many standard deviations from what those before it say calls for a new search.
const SURPRISING: f64 = 3.0;

/// The posterior with the lengthscales of an earlier search, `σ²` at its own maximum; none if one of the last `new` values surprises. Cost: `n³/3`.
///
/// With `g = Lv`, `vᵢ²` is the squared distance of `gᵢ` from what the values before it say, in units of the variance that they leave.
///
/// # Errors
/// As [`Gp::new`].
pub(crate) fn kept(
    nodes: &Points,
    targets: &[f64],
    (lengthscales, jitter): (&[f64], Jitter),
    new: usize,
) -> Result<Option<Gp>> {
    require_targets(nodes, targets)?;
    let unit = Unit::new(lengthscales, nodes, targets, jitter)?;
    let limit = SURPRISING * unit.best_sigma2().sqrt();
    let distances = unit.factor.half_solve_vec(targets);
    if distances.iter().rev().take(new).any(|v| v.abs() > limit) {
        return Ok(None);
    }
    unit.posterior(nodes, targets).map(Some)
}

/// Maximises the marginal likelihood times weak priors over the lengthscales, with σ² at its own maximum in closed
/// form.
///
/// `σ²(λ) = (gᵀR⁻¹g + 1)/(n + 1)` maximises the likelihood with a weak inverse-gamma prior, so only the lengthscales
/// are searched, in the logarithm, by bounded quasi-Newton steps from several starts. A `warm` start joins those of the
/// options. Starts are independent and run in parallel; the result does not depend on the number of threads. From more than 500 values, lengthscales are
/// searched with 500 of them, and `σ²` is then that of all.
///
/// # Errors
/// As [`Gp::new`]; [`Error::Invalid`] for bad options.
pub fn fit(nodes: &Points, targets: &[f64], options: &FitOptions, warm: Option<&SquaredExponential>) -> Result<Fit> {
    options.validate()?;
    require_targets(nodes, targets)?;
    if nodes.is_empty() {
        return Err(Error::length("list of nodes", 1, 0));
    }
    let d = nodes.dim();
    let size = if options.ard { d } else { 1 };
    let spread = |log: &[f64]| -> Vec<f64> { (0..d).map(|a| log[a % size].exp()).collect() };
    let fewer =
        enough(targets.len()).map(|some| (nodes.select(&some), some.iter().map(|&i| targets[i]).collect::<Vec<f64>>()));
    let (told, values) = fewer.as_ref().map_or((nodes, targets), |(nodes, targets)| (nodes, targets));
    let n = values.len() as f64;
    let heeded = Heeded::here();
    let evaluate = |log: &[f64]| -> Result<(f64, Vec<f64>)> {
        heeded.check()?;
        let unit = Unit::new(&spread(log), told, values, options.jitter)?;
        let sigma2 = unit.best_sigma2();
        let mut value = -0.5
            * (n * (TAU * sigma2).ln()
                + unit.factor.log_det()
                + unit.energy / sigma2
                + SIGMA2_PRIOR * (sigma2.ln() + 1.0 / sigma2));
        heeded.check()?;
        let full = unit.lengthscale_gradient(sigma2);
        let mut gradient: Vec<f64> = if options.ard { full } else { vec![full.iter().sum()] };
        for (g, l) in gradient.iter_mut().zip(log) {
            let z = (l - options.lengthscale_median.ln()) / options.lengthscale_log_sd;
            value -= 0.5 * z * z;
            *g -= z / options.lengthscale_log_sd;
        }
        Ok((value, gradient))
    };
    let mut starts: Vec<Vec<f64>> = options.starts.iter().map(|s| vec![s.ln(); size]).collect();
    if let Some(kernel) = warm {
        nodes.require_dim("warm start", kernel.dim())?;
        let log: Vec<f64> = kernel.lengthscales().iter().map(|l| l.ln()).collect();
        starts.push(if options.ard { log } else { vec![log.iter().sum::<f64>() / d as f64] });
    }
    if starts.is_empty() {
        return Err(Error::length("starts of the lengthscale search", 1, 0));
    }
    let (low, high) = options.lengthscale_bounds;
    let bounds = Bounds::cube(size, low.ln(), high.ln())?;
    // A hundredth of a nat of evidence is far less than the data can tell. A warm start is near the summit.
    let max_step = if options.starts.is_empty() { 0.5 } else { 2.0 };
    let ascent = Ascent { max_evaluations: 60, gradient_tolerance: 1e-2, value_tolerance: 1e-4, max_step };
    let summits = maximise(&starts, &bounds, ascent, |trials| trials.par_iter().map(|log| evaluate(log)).collect())?;
    let evaluations = summits.iter().map(|s| s.evaluations).sum();
    let best = summits.iter().reduce(|a, b| if b.value > a.value { b } else { a });
    let Some(best) = best.filter(|b| b.value.is_finite()) else {
        return Err(Error::Numerical {
            what: "search for hyperparameters".into(),
            reason: "no start had a finite value".into(),
        });
    };
    let gp = Unit::new(&spread(&best.x), nodes, targets, options.jitter)?.posterior(nodes, targets)?;
    let at_bound = best.x.iter().any(|l| *l <= low.ln() || *l >= high.ln());
    Ok(Fit { gp, objective: best.value, evaluations, at_bound })
}
