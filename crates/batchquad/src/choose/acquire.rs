//! Acquisition functions: where another value of the integrand would tell most. [`MATH.md` §4](crate::math).
//!
//! All of them are handled as logarithms, with gradients and Hessians, at many points at once.

use serde::{Deserialize, Serialize};

use crate::{
    belief::surrogate::{Reduction, Surrogate},
    error::Result,
    numeric::jets::{Jets, Order},
    points::Points,
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

/// Makes an acquisition for a belief: what a batch rule is given, because beliefs change while a batch is chosen.
///
/// Your own acquisition works with every rule:
///
/// ```
/// use batchquad::{
///     Points, Result,
///     belief::{FitOptions, Gaussian, Model, Surrogate},
///     choose::{Acquisition, BatchRule, Criterion, Search},
///     numeric::{Jets, Order},
/// };
///
/// /// Where the integrand is least known, wherever the measure is.
/// struct Unweighted<'a>(&'a Surrogate);
///
/// impl Acquisition for Unweighted<'_> {
///     fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
///         self.0.log_variance_jets(x, order, Jets::zeros(x.len(), x.dim(), order))
///     }
/// }
///
/// struct Curious;
///
/// impl Criterion for Curious {
///     fn of<'a>(&self, belief: &'a Surrogate) -> Result<Box<dyn Acquisition + 'a>> {
///         Ok(Box::new(Unweighted(belief)))
///     }
/// }
///
/// let nodes = Points::new(1, vec![-1.0, 0.0, 1.0])?;
/// let measure = Gaussian::standard(1)?.into();
/// let belief = Surrogate::fit(Model::WsabiL, measure, &nodes, &[-1.0, 0.0, -1.0], &FitOptions::default(), None)?;
/// let search = Search { criterion: &Curious, ..Search::default() };
/// let batch = BatchRule::KrigingBeliever.select(&belief, &Points::new(1, vec![])?, 2, search)?;
/// assert_eq!(batch.points.len(), 2);
/// # Ok::<(), batchquad::Error>(())
/// ```
pub trait Criterion: Sync {
    /// The acquisition for a belief.
    ///
    /// # Errors
    /// When the belief has none, or it cannot be computed.
    fn of<'a>(&self, belief: &'a Surrogate) -> Result<Box<dyn Acquisition + 'a>>;
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

impl Criterion for AcquisitionKind {
    fn of<'a>(&self, belief: &'a Surrogate) -> Result<Box<dyn Acquisition + 'a>> {
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
        self.belief.log_variance_jets(x, order, log_density_jets(self.belief, x, order, DENSITY_POWER))
    }
}

/// The logarithm of the integrand's posterior mean times the density, `log(π E[f])`; the belief must be warped or
/// positive.
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
        self.belief.log_mean_jets(x, order, log_density_jets(self.belief, x, order, 1.0))
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

/// Greedy reduction of the integral's variance, `a = (∫ Cov[g(x), f(x')] dμ(x'))² / Var[g(x)]`.
///
/// For the linearised square-root model the covariance of `g(x)` with the integral is
/// `q(x) = ∫ C(x, x') m(x') dμ(x') = P(x, X) w − k(x, X) K⁻¹ P w`, for the plain one `q(x) = z(x) − k(x, X) K⁻¹ z`; a
/// value at `x` lowers the integral's variance by `q²/C`. WSABI-M uses the linearised form too: its further term has no
/// simple update.
#[derive(Debug, Clone)]
pub struct VarianceReduction<'a>(Reduction<'a>);

impl<'a> VarianceReduction<'a> {
    /// The acquisition for a belief. Cost: `n²` exponentials.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`].
    pub fn new(belief: &'a Surrogate) -> Result<Self> {
        belief.reduction().map(Self)
    }
}

impl Acquisition for VarianceReduction<'_> {
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        self.0.log_jets(x, order)
    }
}
