//! The belief about the evidence: `MATH.md` §3.

use serde::{Deserialize, Serialize};

use crate::{
    embed::{Embed, EmbedProducts, chain_quadratic, product_mul},
    error::Result,
    gp::Gp,
    linalg::Matrix,
    measure::Mixture,
    simd::dot,
};

/// Mean and variance of the evidence `Z`, in units of `e^scale`, and what they say about `log Z`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// `scale + log E[Z]`; −∞ when the mean is not positive (a plain Gaussian process may say so).
    pub log_z: f64,
    /// `√log(1 + V/E²)`: the standard deviation of `log Z` if `Z` is log-normal with these moments; +∞ when the mean is not
    /// positive.
    pub log_z_sd: f64,
    /// `c`, the largest log-likelihood seen.
    pub scale: f64,
    /// `E[Z]/eᶜ`.
    pub mean: f64,
    /// `V[Z]/e²ᶜ`, not below the square of the mean's own rounding error.
    pub variance: f64,
    /// Whether the variance had to be raised to that.
    pub clamped: bool,
}

impl Estimate {
    /// From moments in units of `e^scale`; `rounding` estimates the error of the mean's own summation.
    #[must_use]
    pub fn new(scale: f64, mean: f64, variance: f64, rounding: f64) -> Self {
        let floor = rounding * rounding;
        let clamped = variance < floor;
        let variance = variance.max(floor);
        let (log_z, log_z_sd) = if mean > 0.0 {
            // As a ratio: the squares of a tiny mean and of its rounding error may both underflow.
            let relative = (variance.sqrt() / mean).max(rounding / mean);
            (scale + mean.ln(), (relative * relative).ln_1p().sqrt())
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        Self { log_z, log_z_sd, scale, mean, variance, clamped }
    }

    /// The same with a further standard deviation of the mean, in units of `e^scale`, that is independent of the variance so far.
    #[must_use]
    pub fn widened(self, further: f64) -> Self {
        if self.log_z_sd.is_infinite() {
            return self;
        }
        // `V/E²` again, without squares of a mean that may underflow.
        let relative = self.log_z_sd.powi(2).exp_m1() + (further / self.mean).powi(2);
        Self { log_z_sd: relative.ln_1p().sqrt(), variance: self.variance + further * further, ..self }
    }
}

/// Plain: `E = zᵀw`, `V = ∬k − zᵀK⁻¹z`. Cost: `n²`.
pub(crate) fn plain(gp: &Gp, measure: &Mixture, scale: f64) -> Result<Estimate> {
    let z = gp.kernel().mean(measure, gp.nodes())?;
    let half = gp.factor().half_solve_vec(&z);
    let variance = gp.kernel().variance(measure)? - dot(&half, &half);
    let rounding = f64::EPSILON * absolute(&z).zip(absolute(gp.weights())).map(|(z, w)| z * w).sum::<f64>();
    Ok(Estimate::new(scale, dot(&z, gp.weights()), variance, rounding))
}

/// The moments of WSABI-L, in units of `e^scale`, and a bound on the rounding error of the mean.
struct Linearised {
    mean: f64,
    variance: f64,
    rounding: f64,
}

impl Linearised {
    fn new(gp: &Gp, measure: &Mixture, alpha: f64) -> Result<Self> {
        let (kernel, nodes, w) = (gp.kernel(), gp.nodes(), gp.weights());
        let (pw, sizes) = product_mul(kernel, measure, nodes, w)?;
        let half = gp.factor().half_solve_vec(&pw);
        Ok(Self {
            mean: alpha + 0.5 * dot(w, &pw),
            variance: chain_quadratic(kernel, measure, nodes, w)? - dot(&half, &half),
            rounding: 0.5 * f64::EPSILON * sizes,
        })
    }
}

/// WSABI-L: `E = α + ½ wᵀPw`, `V = wᵀDw − (Pw)ᵀK⁻¹(Pw)`. Cost: `n²` exponentials, and no matrix besides the factor.
pub(crate) fn wsabi_l(gp: &Gp, measure: &Mixture, alpha: f64, scale: f64) -> Result<Estimate> {
    let l = Linearised::new(gp, measure, alpha)?;
    Ok(Estimate::new(scale, l.mean, l.variance, l.rounding))
}

/// The exact moments of `α + ½ g²`: `E = E_L + ½(σ² − tr K⁻¹P)`, `V = V_L + ½(∬k² − 2 tr K⁻¹D + tr K⁻¹PK⁻¹P)`.
/// Cost: `3n³`, and `3n²` numbers of memory besides the factor.
pub(crate) fn wsabi_m(gp: &Gp, measure: &Mixture, alpha: f64, scale: f64) -> Result<Estimate> {
    let Linearised { mean, variance, rounding } = Linearised::new(gp, measure, alpha)?;
    let (kernel, nodes, n) = (gp.kernel(), gp.nodes(), gp.nodes().len());
    // Q = L⁻¹ P L⁻ᵀ is symmetric with tr Q = tr K⁻¹P and ‖Q‖² = tr K⁻¹PK⁻¹P.
    let mut half = kernel.product(measure, nodes, nodes)?;
    gp.factor().half_solve(&mut half);
    let mut q = Matrix::from_fn(n, n, |i, j| half.get(j, i));
    drop(half);
    gp.factor().half_solve(&mut q);
    let trace: f64 = (0..n).map(|i| q.get(i, i)).sum();
    let squares: f64 = (0..n).map(|j| dot(q.col(j), q.col(j))).sum();
    drop(q);
    let inverse = gp.factor().inverse_lower();
    let chain = kernel.chain_lower(measure, nodes)?;
    let chain_trace: f64 =
        (0..n).map(|j| 2.0 * dot(&inverse.col(j)[j..], &chain.col(j)[j..]) - inverse.get(j, j) * chain.get(j, j)).sum();
    let extra = 0.5 * (kernel.squared(measure)? - 2.0 * chain_trace + squares);
    // The exact value of `extra` is a variance: what rounding takes below zero is rounding.
    Ok(Estimate::new(scale, mean + 0.5 * (kernel.sigma2() - trace).max(0.0), variance + extra.max(0.0), rounding))
}

fn absolute(v: &[f64]) -> impl Iterator<Item = f64> {
    v.iter().map(|x| x.abs())
}
