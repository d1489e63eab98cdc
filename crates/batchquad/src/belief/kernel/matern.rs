//! Matérn kernels of half-integer smoothness, in product form.

use super::Kernel;
use crate::error::{Error, Result, require_positive};

/// The smoothness ν of a Matérn kernel: its sample paths are ⌈ν⌉ − 1 times differentiable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Smoothness {
    /// `ν = 1/2`: `κ(r) = e⁻ʳ`, the Ornstein–Uhlenbeck process.
    Half,
    /// `ν = 3/2`: `κ(r) = (1 + s) e⁻ˢ`, `s = √3 r`.
    ThreeHalves,
    /// `ν = 5/2`: `κ(r) = (1 + s + s²/3) e⁻ˢ`, `s = √5 r`.
    FiveHalves,
}

impl Smoothness {
    /// ν itself.
    #[must_use]
    pub fn nu(self) -> f64 {
        match self {
            Self::Half => 0.5,
            Self::ThreeHalves => 1.5,
            Self::FiveHalves => 2.5,
        }
    }

    /// `s = √(2ν) · distance / lengthscale`, dividing first so that a zero distance stays zero.
    pub(crate) fn scaled(self, distance: f64, lengthscale: f64) -> f64 {
        (2.0 * self.nu()).sqrt() * (distance / lengthscale)
    }

    /// κ as a function of the scaled distance `s ≥ 0`.
    fn correlation(self, s: f64) -> f64 {
        let decay = (-s).exp();
        if decay == 0.0 {
            // An infinite s would make the polynomial ∞ and the product NaN.
            return 0.0;
        }
        decay
            * match self {
                Self::Half => 1.0,
                Self::ThreeHalves => 1.0 + s,
                Self::FiveHalves => 1.0 + s + s * s / 3.0,
            }
    }
}

/// `k(x, y) = σ² Πⱼ κ_ν(|xⱼ − yⱼ| / λⱼ)`.
///
/// A product over coordinates, not a function of the Euclidean distance: in more than one dimension the two differ, and
/// only the product has closed-form integrals over a box.
///
/// ```
/// use batchquad::belief::{Kernel, Matern, Smoothness};
/// let kernel = Matern::new(Smoothness::ThreeHalves, 2.0, vec![0.5])?;
/// let s = 3_f64.sqrt() * 0.3 / 0.5;
/// assert!((kernel.value(&[0.1], &[0.4]) - 2.0 * (1.0 + s) * (-s).exp()).abs() < 1e-15);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Matern {
    smoothness: Smoothness,
    sigma2: f64,
    lengthscales: Vec<f64>,
}

impl Matern {
    /// A kernel from its smoothness, its variance σ² and one lengthscale λⱼ for each dimension.
    ///
    /// # Errors
    /// [`Error::Length`] without lengthscales; [`Error::Invalid`] when σ² or a lengthscale is not finite and positive.
    pub fn new(smoothness: Smoothness, sigma2: f64, lengthscales: Vec<f64>) -> Result<Self> {
        require_positive("variance of the Matérn kernel", sigma2)?;
        if lengthscales.is_empty() {
            return Err(Error::length("lengthscales of the Matérn kernel", 1, 0));
        }
        for (j, &lengthscale) in lengthscales.iter().enumerate() {
            require_positive(&format!("lengthscale {j} of the Matérn kernel"), lengthscale)?;
        }
        Ok(Self { smoothness, sigma2, lengthscales })
    }

    /// The smoothness ν.
    #[must_use]
    pub fn smoothness(&self) -> Smoothness {
        self.smoothness
    }

    /// The variance σ² = k(x, x).
    #[must_use]
    pub fn sigma2(&self) -> f64 {
        self.sigma2
    }

    /// The lengthscales λⱼ.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        &self.lengthscales
    }
}

impl Kernel for Matern {
    fn dim(&self) -> usize {
        self.lengthscales.len()
    }

    fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        let factor =
            |((x, y), l): ((&f64, &f64), &f64)| self.smoothness.correlation(self.smoothness.scaled((x - y).abs(), *l));
        self.sigma2 * x.iter().zip(y).zip(&self.lengthscales).map(factor).product::<f64>()
    }
}
