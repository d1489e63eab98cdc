//! Mixtures of Gaussian measures.

use crate::{
    belief::measure::{Gaussian, Jet},
    error::{Error, Result, require_positive},
    numeric::log_sum::log_sum_exp,
};

/// The probability measure `Σₐ ρₐ N(bₐ, Sₐ)`.
#[derive(Debug, Clone)]
pub struct Mixture {
    components: Vec<(f64, Gaussian)>,
}

impl From<Gaussian> for Mixture {
    fn from(gaussian: Gaussian) -> Self {
        Self { components: vec![(1.0, gaussian)] }
    }
}

impl Mixture {
    /// A mixture from weighted components; the weights are normalised to sum to one.
    ///
    /// # Errors
    /// [`Error::Length`] for no components or different dimensions, [`Error::Invalid`] for weights that are not
    /// positive.
    pub fn new(components: Vec<(f64, Gaussian)>) -> Result<Self> {
        let Some(dim) = components.first().map(|(_, g)| g.dim()) else {
            return Err(Error::length("list of mixture components", 1, 0));
        };
        for (weight, gaussian) in &components {
            require_positive("weight of a mixture component", *weight)?;
            if gaussian.dim() != dim {
                return Err(Error::length("dimension of a mixture component", dim, gaussian.dim()));
            }
        }
        // Dividing by the largest first keeps the sum of huge weights finite.
        let largest = components.iter().map(|(w, _)| *w).fold(0.0, f64::max);
        let total: f64 = components.iter().map(|(w, _)| w / largest).sum();
        Ok(Self { components: components.into_iter().map(|(w, g)| (w / largest / total, g)).collect() })
    }

    /// The components with their normalised weights.
    #[must_use]
    pub fn components(&self) -> &[(f64, Gaussian)] {
        &self.components
    }

    /// The dimension.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.components[0].1.dim()
    }

    /// `log Σₐ ρₐ N(x; bₐ, Sₐ)`, by log-sum-exp. Cost: `d²` per component.
    ///
    /// # Panics
    /// When `x` has another dimension.
    #[must_use]
    pub fn log_density(&self, x: &[f64]) -> f64 {
        let terms: Vec<f64> = self.components.iter().map(|(w, g)| w.ln() + g.log_density(x)).collect();
        log_sum_exp(&terms)
    }

    /// [`Mixture::log_density`] with gradient and Hessian:
    /// `∇ = Σ rₐ sₐ`, `∇² = Σ rₐ (sₐsₐᵀ − Sₐ⁻¹) − ∇∇ᵀ` with `sₐ = −Sₐ⁻¹(x − bₐ)` and responsibilities `rₐ`.
    ///
    /// # Panics
    /// When `x` has another dimension.
    #[must_use]
    pub fn log_density_jet(&self, x: &[f64]) -> Jet {
        if let [(_, only)] = &self.components[..] {
            return only.log_density_jet(x);
        }
        let jets: Vec<Jet> = self.components.iter().map(|(_, g)| g.log_density_jet(x)).collect();
        let terms: Vec<f64> = self.components.iter().zip(&jets).map(|((w, _), j)| w.ln() + j.value).collect();
        let value = log_sum_exp(&terms);
        let d = self.dim();
        let (mut gradient, mut hessian) = (vec![0.0; d], vec![0.0; d * d]);
        for (term, jet) in terms.iter().zip(&jets) {
            let r = (term - value).exp();
            for a in 0..d {
                gradient[a] += r * jet.gradient[a];
                for b in 0..d {
                    hessian[a * d + b] += r * (jet.gradient[a] * jet.gradient[b] + jet.hessian[a * d + b]);
                }
            }
        }
        for a in 0..d {
            for b in 0..d {
                hessian[a * d + b] -= gradient[a] * gradient[b];
            }
        }
        Jet { value, gradient, hessian }
    }
}
