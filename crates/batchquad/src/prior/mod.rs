//! The user's prior and its map to latent coordinates `u ~ N(0, I)`: [`MATH.md` §10](crate::math).
//!
//! Each one-dimensional family goes through its quantile function, `θ = F⁻¹(Φ(u))`, a multivariate normal through an
//! affine map. Probabilities are handled as the logarithms of *both* tails, so that a small tail is never the rounded
//! complement of a large one. (For shapes near 0.001 a tail of 0.01 is; that costs two digits of sixteen.)
//!
//! # How accurate
//!
//! `u → θ → u` comes back to `1e-12 (1 + |u|) + 4 ulp(θ)/|dθ/du|`. The second term is what a double can hold at all:
//! for Uniform(0, 1) at `u = 8`, `θ = 1 − 6e-16` is five spacings of doubles below 1, and nothing computed from it can
//! know `u` to better than 0.01. It matters near an end of the support other than 0 (a parametrisation that puts the
//! interesting end at 0 keeps everything), for a location that is large against the scale, and for shapes so large that
//! the distribution is a needle.
//!
//! Where the exact θ underflows or overflows, θ is the nearest finite normal double inside the open support, and `u` is
//! not recovered.
//!
//! # Why the quantiles are computed here
//!
//! None of the permissively licensed crates that were measured has quantiles at `|u| = 8` in both tails; `DESIGN.md`
//! has the table. A quantile function that takes `p` cannot be right in the upper tail, none of theirs takes a
//! logarithm, and the ports of R's functions, which do, are under the GPL. So both directions go through one quadrature
//! and one root finder for log-concave densities, on top of `erf`, `erfc` and `lgamma` of libm. They serve the whole of
//! [`SHAPE_RANGE`] without special regions and without a number of terms that grows with the shape. In a build with
//! `opt-level = 1` on a busy machine, `u → θ` takes 15 to 40 µs for beta, gamma, inverse gamma and Student's t, 1 to 5
//! µs for a truncated normal and below 0.5 µs for the others.

mod cube;
mod distribution;
mod family;
mod logconcave;
mod multivariate;
#[cfg(feature = "run")]
mod parameters;
mod shapes;
mod truncated;

use std::collections::HashSet;

#[cfg(feature = "run")]
pub use self::parameters::{JointPrior, Parameter, Parameters, Probes, require_name};
pub use self::{
    cube::UnitCubeMap,
    distribution::Distribution,
    family::{Family, SHAPE_RANGE},
    multivariate::MultivariateNormal,
};
use crate::{
    belief::log::Scale,
    error::{Error, Result},
    numeric::normal,
};

/// A prior over named parameters: independent blocks, each with its own map to latent coordinates.
///
/// ```
/// use batchquad::prior::{Distribution, Prior};
/// let prior = Prior::independent([("slope", Distribution::normal(0.0, 2.0)?), ("noise", Distribution::half_normal(1.0)?)])?;
/// let theta = prior.to_theta(&[1.0, -0.5])?;
/// assert_eq!(theta[0], 2.0);
/// assert!(theta[1] > 0.0);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Prior {
    names: Vec<String>,
    blocks: Vec<Block>,
}

/// Parameters that are mapped together.
#[derive(Debug, Clone)]
enum Block {
    Scalar(Distribution),
    Normal(MultivariateNormal),
    Cube { dim: usize, map: UnitCubeMap },
}

impl Block {
    fn dim(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Normal(normal) => normal.dim(),
            Self::Cube { dim, .. } => *dim,
        }
    }
}

/// How one parameter depends on the latent coordinates.
#[derive(Debug)]
pub(crate) enum Axis<'a> {
    /// An increasing function of the latent coordinate with the parameter's own number.
    Scalar(&'a Distribution),
    /// `shift + row·u`.
    Affine {
        /// One factor for each latent coordinate.
        row: Vec<f64>,
        /// The parameter at `u = 0`.
        shift: f64,
    },
    /// Some function of several latent coordinates.
    Coupled,
}

impl Prior {
    /// Independent parameters, each with its own distribution.
    ///
    /// # Errors
    /// [`Error::Length`] without any parameter, [`Error::Invalid`] for a name that is empty or used twice.
    pub fn independent<N: Into<String>>(parameters: impl IntoIterator<Item = (N, Distribution)>) -> Result<Self> {
        let (names, blocks) = parameters.into_iter().map(|(name, d)| (name.into(), Block::Scalar(d))).unzip();
        Self::new(names, blocks)
    }

    /// Parameters that are jointly normal, with the rows of their covariance.
    ///
    /// # Errors
    /// As [`MultivariateNormal::new`] and [`Prior::independent`]; [`Error::Length`] when there are more or fewer names
    /// than dimensions.
    pub fn multivariate_normal<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        mean: Vec<f64>,
        covariance: Vec<Vec<f64>>,
    ) -> Result<Self> {
        let block = Block::Normal(MultivariateNormal::new(mean, covariance)?);
        Self::new(names.into_iter().map(Into::into).collect(), vec![block])
    }

    /// Parameters that a function makes of a point uniform in the open unit cube of as many dimensions.
    ///
    /// A closure `|v: &[f64]| -> Vec<f64>` is enough; a [`UnitCubeMap`] can carry the inverse and the log-density too.
    ///
    /// # Errors
    /// As [`Prior::independent`].
    pub fn from_unit_cube<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        map: impl Into<UnitCubeMap>,
    ) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let block = Block::Cube { dim: names.len(), map: map.into() };
        Self::new(names, vec![block])
    }

    /// The product of independent priors, their parameters in order.
    ///
    /// # Errors
    /// As [`Prior::independent`].
    pub fn product(priors: impl IntoIterator<Item = Self>) -> Result<Self> {
        let (mut names, mut blocks) = (Vec::new(), Vec::new());
        for prior in priors {
            names.extend(prior.names);
            blocks.extend(prior.blocks);
        }
        Self::new(names, blocks)
    }

    fn new(names: Vec<String>, blocks: Vec<Block>) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::length("list of parameters", 1, 0));
        }
        let mut seen = HashSet::new();
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(Error::invalid(format!("name of parameter {i}"), name, "a name that is not empty"));
            }
            if !seen.insert(name) {
                return Err(Error::invalid(format!("name of parameter {i}"), name, "a name not used before"));
            }
        }
        let dim = blocks.iter().map(Block::dim).sum();
        if names.len() != dim {
            return Err(Error::length("list of parameter names", dim, names.len()));
        }
        Ok(Self { names, blocks })
    }

    /// The number of parameters, at least 1.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.names.len()
    }

    /// The names of the parameters, in order, all different.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// θ at the latent `u`, finite and inside the open support.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Invalid`] for a latent coordinate that is not finite; what the user's own map gives
    /// wrong.
    pub fn to_theta(&self, u: &[f64]) -> Result<Vec<f64>> {
        self.require_latent(u)?;
        let mut theta = Vec::with_capacity(self.dim());
        for (block, names, u) in self.split(u) {
            match block {
                Block::Scalar(distribution) => theta.push(distribution.to_theta(u[0])?),
                Block::Normal(normal) => theta.extend(normal.theta(u)),
                Block::Cube { map, .. } => theta.extend(map.theta(names, u)?),
            }
        }
        Ok(theta)
    }

    /// The latent `u` at θ.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::OutsideSupport`] naming the parameter and its value; [`Error::Invalid`] when a
    /// unit-cube map has no inverse; [`Error::Numerical`] for θ so far out that `u` is not finite.
    pub fn to_latent(&self, theta: &[f64]) -> Result<Vec<f64>> {
        self.require_len("theta", theta)?;
        if let Some(i) = theta.iter().position(|value| !value.is_finite()) {
            return Err(outside(&self.names[i], theta[i], "(-inf, inf)".into()));
        }
        let mut latent = Vec::with_capacity(self.dim());
        for (block, names, theta) in self.split(theta) {
            match block {
                Block::Scalar(distribution) => latent.push(distribution.to_latent(theta[0]).map_err(|e| match e {
                    Error::OutsideSupport { value, support, .. } => outside(&names[0], value, support),
                    other => other,
                })?),
                Block::Normal(normal) => latent.extend(normal.latent(theta)),
                Block::Cube { map, .. } => latent.extend(map.latent(names, theta)?),
            }
        }
        match latent.iter().position(|u| !u.is_finite()) {
            Some(i) => Err(Error::Numerical {
                what: format!("mapping parameter {:?} at {:?} to its latent coordinate", self.names[i], theta[i]),
                reason: format!("the coordinate is {}", latent[i]),
            }),
            None => Ok(latent),
        }
    }

    /// `log π(θ)`, −∞ outside the open support.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Invalid`] when a unit-cube map has no log-density or gives NaN or +∞.
    pub fn log_density(&self, theta: &[f64]) -> Result<f64> {
        self.require_len("theta", theta)?;
        let mut sum = 0.0;
        for (block, names, theta) in self.split(theta) {
            sum += match block {
                Block::Scalar(distribution) => distribution.log_density(theta[0]),
                Block::Normal(normal) => normal.log_density(theta),
                Block::Cube { map, .. } => map.log_density(names, theta)?,
            };
        }
        Ok(sum)
    }

    /// `log |det dθ/du|` at the latent `u`, which is `log φ(u) − log π(θ(u))`.
    ///
    /// # Errors
    /// As [`Prior::to_theta`] and [`Prior::log_density`].
    pub fn log_abs_det_jacobian(&self, u: &[f64]) -> Result<f64> {
        self.require_latent(u)?;
        let mut sum = 0.0;
        for (block, names, u) in self.split(u) {
            sum += match block {
                Block::Scalar(distribution) => distribution.log_jacobian(u[0])?,
                Block::Normal(normal) => normal.log_jacobian(),
                Block::Cube { map, .. } => {
                    let theta = map.theta(names, u)?;
                    u.iter().map(|u| normal::log_density(*u)).sum::<f64>() - map.log_density(names, &theta)?
                }
            };
        }
        Ok(sum)
    }

    /// What the parameters are as functions of their latent coordinates. What is mapped from a cube is taken to be uniform there.
    pub(crate) fn scales(&self) -> Vec<Scale> {
        let scale = |k: usize| match self.axis(k) {
            Axis::Scalar(distribution) => distribution.scale(),
            Axis::Affine { .. } => Scale::Latent,
            Axis::Coupled => Scale::Flat,
        };
        (0..self.dim()).map(scale).collect()
    }

    /// The numbers of the periodic parameters, each with the lower end and the length of its circle.
    #[must_use]
    pub fn circles(&self) -> Vec<(usize, f64, f64)> {
        let scalar = |k: usize| match self.axis(k) {
            Axis::Scalar(distribution) => distribution.circle().map(|(low, length)| (k, low, length)),
            _ => None,
        };
        (0..self.dim()).filter_map(scalar).collect()
    }

    /// The same prior with the circles of periodic parameters cut elsewhere: each begins at a share of its length after its lower end, so that
    /// a posterior across the old ends is in one piece. Without cuts it is the prior itself. [`MATH.md` §10](crate::math).
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one share per circle; [`Error::Invalid`] for one that is not in `[0, 1)`.
    pub fn cut_at(&self, shares: &[f64]) -> Result<Self> {
        if shares.is_empty() {
            return Ok(self.clone());
        }
        let circles = self.circles();
        if circles.len() != shares.len() {
            return Err(Error::length("cuts of periodic parameters", circles.len(), shares.len()));
        }
        let mut cut = self.clone();
        for ((k, low, length), share) in circles.into_iter().zip(shares) {
            if !(0.0..1.0).contains(share) {
                return Err(Error::invalid("cut of a periodic parameter", share, "a share of its circle, in [0, 1)"));
            }
            let mut first = 0;
            for block in &mut cut.blocks {
                if first == k {
                    let begin = low + share * length;
                    *block = Block::Scalar(Distribution::uniform(begin, begin + length)?.periodic()?);
                    break;
                }
                first += block.dim();
            }
        }
        Ok(cut)
    }

    /// θ with every periodic parameter taken round its circle until it lies between its ends; what lies inside stays as it is.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn wrapped(&self, theta: &[f64]) -> Result<Vec<f64>> {
        self.require_len("theta", theta)?;
        let one = |(k, value): (usize, &f64)| match self.axis(k) {
            Axis::Scalar(distribution) => distribution.wrapped(*value),
            _ => *value,
        };
        Ok(theta.iter().enumerate().map(one).collect())
    }

    /// How parameter `k` depends on the latent coordinates.
    pub(crate) fn axis(&self, k: usize) -> Axis<'_> {
        let mut first = 0;
        for block in &self.blocks {
            let d = block.dim();
            if k < first + d {
                return match block {
                    Block::Scalar(distribution) => Axis::Scalar(distribution),
                    Block::Normal(normal) => {
                        let mut row = vec![0.0; self.dim()];
                        row[first..first + d].copy_from_slice(&normal.row(k - first));
                        Axis::Affine { row, shift: normal.mean()[k - first] }
                    }
                    Block::Cube { .. } => Axis::Coupled,
                };
            }
            first += d;
        }
        Axis::Coupled
    }

    /// The blocks with their names and their part of a vector.
    fn split<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = (&'a Block, &'a [String], &'a [f64])> {
        let mut start = 0;
        self.blocks.iter().map(move |block| {
            let range = start..start + block.dim();
            start = range.end;
            (block, &self.names[range.clone()], &values[range])
        })
    }

    fn require_len(&self, what: &str, values: &[f64]) -> Result<()> {
        if values.len() == self.dim() { Ok(()) } else { Err(Error::length(what, self.dim(), values.len())) }
    }

    fn require_latent(&self, u: &[f64]) -> Result<()> {
        self.require_len("latent point", u)?;
        match u.iter().position(|u| !u.is_finite()) {
            Some(i) => {
                let what = format!("latent coordinate of parameter {:?}", self.names[i]);
                Err(Error::invalid(what, u[i], "a finite number"))
            }
            None => Ok(()),
        }
    }
}

fn outside(name: &str, value: f64, support: String) -> Error {
    Error::OutsideSupport { what: format!("parameter {name:?}"), value, support }
}
