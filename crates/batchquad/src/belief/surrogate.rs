//! Warp, Gaussian process and measure together: a belief about the integrand. [`MATH.md` §3](crate::math).

use crate::{
    belief::{
        embed::kernel_sums,
        estimate::Estimate,
        frame::Frame,
        gp::{self, FitOptions, Gp},
        kernel::SquaredExponential,
        measure::Mixture,
        residuals::{self, Residual},
        warp::{Model, Process, Scale, Site, Warped},
    },
    error::{Error, Result},
    numeric::{
        jets::{Jets, Order, run},
        linalg::{Jitter, Matrix},
    },
    points::Points,
};

/// What is believed about a non-negative integrand `f` and its integral against a measure, given some of its values.
///
/// ```
/// use batchquad::{Points, belief::{FitOptions, Gaussian, Surrogate, Model}};
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
    /// Nodes are in the coordinates of the frame, and `log_values` are logarithms of the integrand with respect to its
    /// measure.
    ///
    /// # Errors
    /// [`Error::NonFiniteValue`] for NaN and +∞, [`Error::NoFiniteValue`] when all values are −∞; as [`gp::fit`].
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

    /// The belief with the lengthscales of an earlier one, unless one of the last `new` values surprises: nothing is searched for. Cost: `n³/3`.
    ///
    /// # Errors
    /// As [`Surrogate::with_kernel`].
    pub fn kept(
        model: Model,
        frame: Frame,
        nodes: &Points,
        log_values: &[f64],
        (lengthscales, jitter): (&[f64], Jitter),
        new: usize,
    ) -> Result<Option<Self>> {
        nodes.require_dim("measure", frame.measure().dim())?;
        let Warped { scale, alpha, targets } = Warped::new(model, nodes, log_values)?;
        let gp = gp::kept(nodes, &targets, (lengthscales, jitter), new)?;
        Ok(gp.map(|gp| Self { model, frame, scale, alpha, gp, at_bound: false }))
    }

    /// The belief with a given kernel.
    ///
    /// # Errors
    /// [`Error::NonFiniteValue`] for NaN and +∞, [`Error::NoFiniteValue`] when all values are −∞; as [`Gp::new`].
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
    /// [`crate::Error::NotPositiveDefinite`] if an integral's covariance cannot be factorised, which finite input
    /// excludes.
    pub fn estimate(&self) -> Result<Estimate> {
        self.estimate_as(self.model)
    }

    /// The belief about the evidence under another reading of the same Gaussian process: WSABI-L or WSABI-M when this
    /// is one of them.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`]; [`crate::Error::Invalid`] for a reading that does not fit the warp.
    pub fn estimate_as(&self, model: Model) -> Result<Estimate> {
        if model.warp().scale() != self.model.warp().scale() {
            return Err(Error::invalid("model", model, format!("one with the warp of {:?}", self.model)));
        }
        model.warp().estimate(self.process(), self.scale)
    }

    /// The mass that the process expects where it has seen nothing, `½∫C dμ` in units of `e^scale`, where an estimate rests on the offset of the
    /// warp alone; none elsewhere. In a hundred parameters nodes say nothing about the places between them. Then the mean of the process is zero
    /// nearly everywhere, its variance does not count, and what is left of `Z` is a constant that nobody has measured.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`].
    pub(crate) fn unseen(&self, estimate: &Estimate) -> Result<Option<f64>> {
        /// The share of `Z` that is the offset. It is 0.8 for a constant that has been seen everywhere.
        const ALONE: f64 = 0.99;
        if self.alpha <= 0.0 || self.alpha <= ALONE * estimate.mean {
            return Ok(None);
        }
        Ok(Some((self.estimate_as(Model::WsabiM)?.mean - estimate.mean).abs()))
    }

    fn process(&self) -> Process<'_> {
        Process { gp: &self.gp, measure: self.measure(), alpha: self.alpha }
    }

    /// `E[f]` at each point, in units of `e^scale` and without the density. Cost: `n` per point, `n²` for WSABI-M, which
    /// needs variances.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub fn expected(&self, x: &Points) -> Result<Vec<f64>> {
        self.model.warp().expected(self.process(), x)
    }

    /// `E[f]` and `Var[f]` at each point, in units of `e^scale` and without the density.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub fn moments(&self, x: &Points) -> Result<Vec<(f64, f64)>> {
        let p = self.gp.predict(x, Order::Value)?;
        let warp = self.model.warp();
        Ok(p.mean.iter().zip(&p.variance).map(|(&m, &c)| warp.moments(self.alpha, m, c)).collect())
    }

    /// Adds `log E[f]` at each point with derivatives, in units of `e^scale` and without the density; NaN where a
    /// belief is negative.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub fn log_mean_jets(&self, x: &Points, order: Order, mut onto: Jets) -> Result<Jets> {
        let p = self.gp.predict(x, order)?;
        (0..x.len()).for_each(|at| self.model.warp().add_log_mean(self.alpha, Site::new(&p, at), at, &mut onto));
        Ok(onto)
    }

    /// Adds `log Var[f]` at each point with derivatives, in units of `e^scale` and without the density.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub fn log_variance_jets(&self, x: &Points, order: Order, mut onto: Jets) -> Result<Jets> {
        let p = self.gp.predict(x, order)?;
        (0..x.len()).for_each(|at| self.model.warp().add_log_variance(Site::new(&p, at), at, &mut onto));
        Ok(onto)
    }

    /// `Σₛₜ aₛ Cov[f(xₛ), f(xₜ)] bₜ` for all pairs of columns `a`, `b`.
    pub(crate) fn covariance_sums(&self, x: &Points, columns: &Matrix) -> Result<Matrix> {
        self.model.warp().covariance_sums(&self.gp, x, columns)
    }

    /// Whether `E[f]` is nowhere negative.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.model.warp().is_positive()
    }

    /// How each value is predicted from all the others, in the order of the nodes. Cost: `n³/3`.
    #[must_use]
    pub fn residuals(&self) -> Vec<Residual> {
        residuals::leave_one_out(&self.gp)
    }

    /// The jackknife: how much leaving out each value in turn changes the mean of `Z`, as a standard deviation in units
    /// of `e^scale`, from [`Surrogate::residuals`]. Cost: `n²`.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`].
    pub fn jackknife(&self, residuals: &[Residual]) -> Result<f64> {
        let with_z = self.model.warp().nodes_with_z(self.process())?;
        Ok(residuals::jackknife(&self.gp, &with_z, residuals))
    }

    /// What was predicted at points of the frame beside the logarithms of the integrand that were found there.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub(crate) fn predicted(&self, x: &Points, found: &[f64]) -> Result<Vec<Predicted>> {
        let p = self.gp.predict(x, Order::Value)?;
        let (warp, alpha) = (self.model.warp(), self.alpha);
        let log_value = |g: f64| self.scale + warp.value(alpha, g.max(0.0)).ln();
        let predicted = |(i, log_f): (usize, &f64)| {
            let (mean, sd) = (warp.comparable(p.mean[i]), p.variance[i].sqrt());
            let g = warp.target(alpha, (log_f - self.scale).exp(), 1.0);
            Predicted {
                mean: log_value(mean),
                low: log_value(mean - 2.0 * sd),
                high: log_value(mean + 2.0 * sd),
                standardised: (g - mean) / sd,
            }
        };
        Ok(found.iter().enumerate().map(predicted).collect())
    }

    /// The values of the process at `x` for which the integrand takes the value that `choose` makes of its mean and
    /// variance there. `None` means the mean, which loses no digits on the way. [`Surrogate::condition`] takes them.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub fn believed(&self, x: &Points, choose: impl Fn(f64, f64) -> Option<f64>) -> Result<Vec<f64>> {
        let p = self.gp.predict(x, Order::Value)?;
        let (warp, alpha) = (self.model.warp(), self.alpha);
        let target = |(&m, &c): (&f64, &f64)| {
            let (mean, variance) = warp.moments(alpha, m, c);
            match choose(mean, variance) {
                Some(value) => warp.target(alpha, value, m),
                None => warp.believed(alpha, m, mean),
            }
        };
        Ok(p.mean.iter().zip(&p.variance).map(target).collect())
    }

    /// The integrand at the nodes, in units of `e^scale`.
    #[must_use]
    pub fn node_values(&self) -> Vec<f64> {
        self.gp.targets().iter().map(|g| self.model.warp().value(self.alpha, *g)).collect()
    }

    /// The nodes, in the coordinates of the frame.
    #[must_use]
    pub fn nodes(&self) -> &Points {
        self.gp.nodes()
    }

    /// Over what distance the integrand varies in each coordinate of the frame.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        self.gp.kernel().lengthscales()
    }

    /// The kernel of the process, in units of the scaled integrand and the coordinates of the frame.
    #[must_use]
    pub fn kernel(&self) -> &SquaredExponential {
        self.gp.kernel()
    }

    /// How much of the prior variance of the process is left, on average over points.
    ///
    /// # Errors
    /// [`Error::Length`] for points of another dimension.
    pub(crate) fn variance_left(&self, x: &Points) -> Result<f64> {
        let variance = self.gp.predict(x, Order::Value)?.variance;
        Ok(variance.iter().sum::<f64>() / (x.len() as f64 * self.gp.kernel().sigma2()))
    }

    /// A lower bound on the condition number of the kernel matrix.
    #[must_use]
    pub fn condition_number(&self) -> f64 {
        self.gp.factor().condition()
    }

    /// What was done to factorise the kernel matrix.
    pub(crate) fn jitter(&self) -> Jittered {
        let factor = self.gp.factor();
        Jittered { rungs: factor.repairs(), largest: factor.largest_jitter() / self.gp.kernel().sigma2() }
    }

    /// The process and the measure, if `E[f] = α + ½m²` exactly, so that the posterior has closed forms.
    pub(crate) fn closed_form(&self) -> Option<Process<'_>> {
        self.model.warp().is_closed().then(|| self.process())
    }

    /// The process and the measure, if the process is on the square root: `α + ½m²` is then close to the integrand
    /// under every reading.
    pub(crate) fn square_form(&self) -> Option<Process<'_>> {
        (self.model.warp().scale() == Scale::Root).then(|| self.process())
    }

    /// By how much a value at `x` would lower the variance of `Z`. Cost: `n²` exponentials.
    pub(crate) fn reduction(&self) -> Result<Reduction<'_>> {
        let covariance = self.model.warp().correction(self.process())?;
        Ok(Reduction { belief: self, correction: self.gp.factor().solve_vec(&covariance) })
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

/// What was predicted at a point, as logarithms of the integrand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Predicted {
    /// At the mean of the process.
    pub(crate) mean: f64,
    /// Two of its standard deviations below; −∞ where that is zero or less.
    pub(crate) low: f64,
    /// Two above.
    pub(crate) high: f64,
    /// How many standard deviations the process was off.
    pub(crate) standardised: f64,
}

/// How often and by how much the diagonal of the kernel matrix was raised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jittered {
    pub(crate) rungs: usize,
    /// Relative to `σ²`.
    pub(crate) largest: f64,
}

/// `q(x)²/C(x)`, where `q(x) = p(x) − k(x, X) K⁻¹ p(X)` is the covariance of `g(x)` with `Z` and `p` is
/// [`Warp::points_with_z`].
///
/// [`Warp::points_with_z`]: crate::belief::warp::Warp::points_with_z
#[derive(Debug, Clone)]
pub(crate) struct Reduction<'a> {
    belief: &'a Surrogate,
    /// `K⁻¹ p(X)`.
    correction: Vec<f64>,
}

impl Reduction<'_> {
    pub(crate) fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let (belief, gp, d) = (self.belief, &self.belief.gp, x.dim());
        let p = gp.predict(x, order)?;
        let correction = kernel_sums(gp.kernel(), x, gp.nodes(), &self.correction, order)?;
        let prior = belief.model.warp().points_with_z(belief.process(), x, order)?;
        let mut jets = Jets::zeros(x.len(), d, order);
        for at in 0..x.len() {
            let less = |a: &[f64], b: &[f64], n: usize| -> Vec<f64> {
                run(a, at, n).iter().zip(run(b, at, n)).map(|(a, b)| a - b).collect()
            };
            let q = prior.value[at] - correction.value[at];
            let gradient = less(&prior.gradient, &correction.gradient, d);
            let hessian = less(&prior.hessian, &correction.hessian, d * d);
            jets.add_log_square(at, q, &gradient, &hessian);
            Site::new(&p, at).add_log_variance(-1.0, at, &mut jets);
        }
        Ok(jets)
    }
}
