//! Acquisition functions: where another value of the integrand would tell most. `MATH.md` §4.
//!
//! All of them are handled as logarithms, with gradients and Hessians, at many points at once.

use serde::{Deserialize, Serialize};

use crate::{
    embed::{Embed, EmbedProducts, kernel_sums, mean_jets, product_sums},
    error::Result,
    gp::{Order, Prediction},
    jets::{Jets, run},
    points::Points,
    surrogate::Surrogate,
    warp::Model,
};

/// The power with which the measure's density enters uncertainty sampling.
///
/// The acquisition is the variance of the integrand *including* the density, `Var[f π] = π² Var[f]`, hence two.
pub const DENSITY_POWER: f64 = 2.0;

/// A non-negative function whose maximum is the point to evaluate next.
pub trait Acquisition: Sync {
    /// Its logarithm at each point, with derivatives up to `order`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for points of another dimension.
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets>;
}

/// Which acquisition is maximised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcquisitionKind {
    /// [`Uncertainty`], as in the paper.
    #[default]
    Uncertainty,
    /// [`VarianceReduction`].
    VarianceReduction,
}

impl AcquisitionKind {
    /// The acquisition for a belief.
    ///
    /// # Errors
    /// As [`VarianceReduction::new`].
    pub fn of<'a>(self, belief: &'a Surrogate) -> Result<Box<dyn Acquisition + 'a>> {
        Ok(match self {
            Self::Uncertainty => Box::new(Uncertainty::new(belief)),
            Self::VarianceReduction => Box::new(VarianceReduction::new(belief)?),
        })
    }
}

/// Uncertainty sampling, `a = π² Var[f]`: the pointwise variance of the integrand.
///
/// `Var[f]` is `C` (plain), `m²C` (WSABI-L) or `m²C + ½C²` (WSABI-M).
#[derive(Debug, Clone, Copy)]
pub struct Uncertainty<'a> {
    belief: &'a Surrogate,
}

impl<'a> Uncertainty<'a> {
    /// The acquisition for a belief.
    #[must_use]
    pub fn new(belief: &'a Surrogate) -> Self {
        Self { belief }
    }
}

impl Acquisition for Uncertainty<'_> {
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let p = self.belief.gp().predict(x, order)?;
        let mut jets = log_density_jets(self.belief, x, order, DENSITY_POWER);
        for at in 0..x.len() {
            add_log_variance(self.belief.model(), &p, at, &mut jets);
        }
        Ok(jets)
    }
}

/// The logarithm of the integrand's posterior mean times the density, `log(π E[f])`; the belief must be warped or positive.
#[derive(Debug, Clone, Copy)]
pub struct MeanIntegrand<'a> {
    belief: &'a Surrogate,
}

impl<'a> MeanIntegrand<'a> {
    /// The integrand as a belief expects it.
    #[must_use]
    pub fn new(belief: &'a Surrogate) -> Self {
        Self { belief }
    }
}

impl Acquisition for MeanIntegrand<'_> {
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let p = self.belief.gp().predict(x, order)?;
        let mut jets = log_density_jets(self.belief, x, order, 1.0);
        for at in 0..x.len() {
            let (value, gradient, hessian) = mean_of_integrand(self.belief, &p, at);
            jets.add_log(at, 1.0, value, &gradient, &hessian);
        }
        Ok(jets)
    }
}

/// `power · log π` at each point.
fn log_density_jets(belief: &Surrogate, x: &Points, order: Order, power: f64) -> Jets {
    let d = x.dim();
    let mut jets = Jets::zeros(x.len(), d, order);
    for (at, row) in x.rows().enumerate() {
        let density = belief.measure().log_density_jet(row);
        jets.value[at] = power * density.value;
        let places = jets.gradient.iter_mut().skip(at * d).zip(&density.gradient);
        places.for_each(|(o, v)| *o = power * v);
        let places = jets.hessian.iter_mut().skip(at * d * d).zip(&density.hessian);
        places.for_each(|(o, v)| *o = power * v);
    }
    jets
}

/// Adds `log Var[f]` at point `at`.
fn add_log_variance(model: Model, p: &Prediction, at: usize, jets: &mut Jets) {
    let d = p.mean_gradient.len() / p.mean.len();
    let (gm, gc) = (run(&p.mean_gradient, at, d), run(&p.variance_gradient, at, d));
    let (hm, hc) = (run(&p.mean_hessian, at, d * d), run(&p.variance_hessian, at, d * d));
    let (m, c) = (p.mean[at], p.variance[at]);
    jets.add_log(at, 1.0, c, gc, hc);
    match model {
        Model::Plain => {}
        // log m² through |m|, whose derivatives have the sign of m: a square would underflow far from the data.
        Model::WsabiL if m < 0.0 => jets.add_log(at, 2.0, -m, &negated(gm), &negated(hm)),
        Model::WsabiL => jets.add_log(at, 2.0, m, gm, hm),
        Model::WsabiM => {
            let value = m * m + 0.5 * c;
            let gradient: Vec<f64> = gm.iter().zip(gc).map(|(gm, gc)| 2.0 * m * gm + 0.5 * gc).collect();
            let hessian: Vec<f64> =
                (0..hm.len()).map(|i| 2.0 * gm[i / d] * gm[i % d] + 2.0 * m * hm[i] + 0.5 * hc[i]).collect();
            jets.add_log(at, 1.0, value, &gradient, &hessian);
        }
    }
}

/// `E[f]` at point `at` with derivatives: `m`, `α + ½m²` or `α + ½(m² + C)`.
fn mean_of_integrand(belief: &Surrogate, p: &Prediction, at: usize) -> (f64, Vec<f64>, Vec<f64>) {
    let d = p.mean_gradient.len() / p.mean.len();
    let (gm, gc) = (run(&p.mean_gradient, at, d), run(&p.variance_gradient, at, d));
    let (hm, hc) = (run(&p.mean_hessian, at, d * d), run(&p.variance_hessian, at, d * d));
    let m = p.mean[at];
    let (squared, spread) = match belief.model() {
        Model::Plain => return (m, gm.to_vec(), hm.to_vec()),
        Model::WsabiL => (0.5 * m * m, 0.0),
        Model::WsabiM => (0.5 * m * m, 0.5),
    };
    let value = belief.alpha() + squared + spread * p.variance[at];
    let gradient = gm.iter().zip(gc).map(|(gm, gc)| m * gm + spread * gc).collect();
    let hessian = (0..hm.len()).map(|i| gm[i / d] * gm[i % d] + m * hm[i] + spread * hc[i]).collect();
    (value, gradient, hessian)
}

/// `E[f]` and `Var[f]` of the integrand at each point, in units of `e^scale` and without the density.
///
/// # Errors
/// [`crate::Error::Length`] for points of another dimension.
pub fn integrand_moments(belief: &Surrogate, x: &Points) -> Result<Vec<(f64, f64)>> {
    let p = belief.gp().predict(x, Order::Value)?;
    let alpha = belief.alpha();
    let moments = p.mean.iter().zip(&p.variance).map(|(&m, &c)| match belief.model() {
        Model::Plain => (m, c),
        Model::WsabiL => (alpha + 0.5 * m * m, m * m * c),
        Model::WsabiM => (alpha + 0.5 * (m * m + c), m * m * c + 0.5 * c * c),
    });
    Ok(moments.collect())
}

/// Greedy reduction of the integral's variance, `a = (∫ Cov[g(x), f(x')] dμ(x'))² / Var[g(x)]`.
///
/// For the linearised square-root model the covariance of `g(x)` with the integral is
/// `q(x) = ∫ C(x, x') m(x') dμ(x') = P(x, X) w − k(x, X) K⁻¹ P w`, for the plain one `q(x) = z(x) − k(x, X) K⁻¹ z`; a value at `x`
/// lowers the integral's variance by `q²/C`. WSABI-M uses the linearised form too: its further term has no simple update.
pub struct VarianceReduction<'a> {
    belief: &'a Surrogate,
    /// `K⁻¹ P w` or `K⁻¹ z`.
    correction: Vec<f64>,
}

impl<'a> VarianceReduction<'a> {
    /// The acquisition for a belief. Cost: `n²` exponentials.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`].
    pub fn new(belief: &'a Surrogate) -> Result<Self> {
        let gp = belief.gp();
        let covariance = match belief.model() {
            Model::Plain => gp.kernel().mean(belief.measure(), gp.nodes())?,
            _ => gp.kernel().product(belief.measure(), gp.nodes(), gp.nodes())?.mul_vec(gp.weights()),
        };
        Ok(Self { belief, correction: gp.factor().solve_vec(&covariance) })
    }
}

impl Acquisition for VarianceReduction<'_> {
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let (belief, gp) = (self.belief, self.belief.gp());
        let d = x.dim();
        let p = gp.predict(x, order)?;
        let correction = kernel_sums(gp.kernel(), x, gp.nodes(), &self.correction, order)?;
        let prior = match belief.model() {
            Model::Plain => mean_jets(gp.kernel(), belief.measure(), x, order)?,
            _ => product_sums(gp.kernel(), belief.measure(), x, (gp.nodes(), gp.weights()), order)?,
        };
        let mut jets = Jets::zeros(x.len(), d, order);
        for at in 0..x.len() {
            let less = |a: &[f64], b: &[f64], n: usize| -> Vec<f64> {
                run(a, at, n).iter().zip(run(b, at, n)).map(|(a, b)| a - b).collect()
            };
            let q = prior.value[at] - correction.value[at];
            let gradient = less(&prior.gradient, &correction.gradient, d);
            let hessian = less(&prior.hessian, &correction.hessian, d * d);
            if q < 0.0 {
                jets.add_log(at, 2.0, -q, &negated(&gradient), &negated(&hessian));
            } else {
                jets.add_log(at, 2.0, q, &gradient, &hessian);
            }
            let (gc, hc) = (run(&p.variance_gradient, at, d), run(&p.variance_hessian, at, d * d));
            jets.add_log(at, -1.0, p.variance[at], gc, hc);
        }
        Ok(jets)
    }
}

fn negated(v: &[f64]) -> Vec<f64> {
    v.iter().map(|x| -x).collect()
}
