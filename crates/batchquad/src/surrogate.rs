//! Warp, Gaussian process and measure together: a belief about the integrand. `MATH.md` §3.

use crate::{
    error::Result,
    estimate::{self, Estimate},
    frame::Frame,
    gp::{self, FitOptions, Gp},
    kernel::SquaredExponential,
    linalg::Jitter,
    measure::Mixture,
    points::Points,
    warp::{Model, Warped},
};

/// What is believed about a non-negative integrand `f` and its integral against a measure, given some of its values.
///
/// ```
/// use batchquad::{Points, gp::FitOptions, measure::Gaussian, surrogate::Surrogate, warp::Model};
/// // ∫ exp(−x²/2) N(x; 0, 1) dx = 1/√2
/// let nodes = Points::new(1, (-8..=8).map(|i| f64::from(i) * 0.5).collect())?;
/// let log_values: Vec<f64> = nodes.rows().map(|x| -0.5 * x[0] * x[0]).collect();
/// let measure = Gaussian::standard(1)?;
/// let belief = Surrogate::fit(Model::WsabiL, measure.into(), &nodes, &log_values, &FitOptions::default(), None)?;
/// let estimate = belief.estimate()?;
/// assert!((estimate.log_z + 0.5 * 2.0_f64.ln()).abs() < 1e-3);
/// assert!(estimate.log_z_sd < 1e-2);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Surrogate {
    model: Model,
    frame: Frame,
    scale: f64,
    alpha: f64,
    gp: Gp,
    at_bound: bool,
}

impl Surrogate {
    /// The belief with hyperparameters of the highest marginal likelihood; `warm` makes a refit cheap.
    ///
    /// Nodes are in the coordinates of the frame, and `log_values` are logarithms of the integrand with respect to its measure.
    ///
    /// # Errors
    /// As [`Warped::new`] and [`gp::fit`].
    pub fn fit(
        model: Model,
        frame: Frame,
        nodes: &Points,
        log_values: &[f64],
        options: &FitOptions,
        warm: Option<&SquaredExponential>,
    ) -> Result<Self> {
        nodes.require_dim("measure", frame.measure().dim())?;
        let Warped { scale, alpha, targets } = Warped::new(model, nodes, log_values)?;
        let found = gp::fit(nodes, &targets, options, warm)?;
        Ok(Self { model, frame, scale, alpha, gp: found.gp, at_bound: found.at_bound })
    }

    /// The belief with a given kernel.
    ///
    /// # Errors
    /// As [`Warped::new`] and [`Gp::new`].
    pub fn with_kernel(
        model: Model,
        frame: Frame,
        nodes: &Points,
        log_values: &[f64],
        kernel: SquaredExponential,
        jitter: Jitter,
    ) -> Result<Self> {
        nodes.require_dim("measure", frame.measure().dim())?;
        let Warped { scale, alpha, targets } = Warped::new(model, nodes, log_values)?;
        let gp = Gp::new(kernel, nodes.clone(), targets, jitter)?;
        Ok(Self { model, frame, scale, alpha, gp, at_bound: false })
    }

    /// The belief after `g` took the given values at further points; scale, `α` and hyperparameters stay. Cost: `n²q`.
    ///
    /// # Errors
    /// As [`Gp::condition`].
    pub fn condition(&self, nodes: &Points, targets: &[f64]) -> Result<Self> {
        let gp = self.gp.condition(nodes, targets)?;
        Ok(Self { gp, frame: self.frame.clone(), ..*self })
    }

    /// The belief about the evidence.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if an integral's covariance cannot be factorised, which finite input excludes.
    pub fn estimate(&self) -> Result<Estimate> {
        self.estimate_as(self.model)
    }

    /// The belief about the evidence under another reading of the same Gaussian process: WSABI-L or WSABI-M when this is one of
    /// them.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`]; [`crate::Error::Invalid`] for a reading that does not fit the warp.
    pub fn estimate_as(&self, model: Model) -> Result<Estimate> {
        match (self.model, model) {
            (Model::Plain, Model::Plain) => estimate::plain(&self.gp, self.measure(), self.scale),
            (Model::Plain, other) | (other, Model::Plain) => {
                Err(crate::Error::invalid("model", other, format!("one with the warp of {:?}", self.model)))
            }
            (_, Model::WsabiL) => estimate::wsabi_l(&self.gp, self.measure(), self.alpha, self.scale),
            (_, Model::WsabiM) => estimate::wsabi_m(&self.gp, self.measure(), self.alpha, self.scale),
        }
    }

    /// Which belief this is.
    #[must_use]
    pub fn model(&self) -> Model {
        self.model
    }

    /// What the integrand is integrated against.
    #[must_use]
    pub fn measure(&self) -> &Mixture {
        self.frame.measure()
    }

    /// The coordinates it lives in.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// `c`, the largest log value.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The offset `α` of the warp, in units of `eᶜ`.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The Gaussian process on `g`.
    #[must_use]
    pub fn gp(&self) -> &Gp {
        &self.gp
    }

    /// Whether the search for a lengthscale ended at its bound.
    #[must_use]
    pub fn at_bound(&self) -> bool {
        self.at_bound
    }
}
