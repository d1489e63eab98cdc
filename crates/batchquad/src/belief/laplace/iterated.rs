//! The iterated Laplace approximation: a mixture of Gaussians grown where the last one leaves density over.
//!
//! After Bornkamp (2011), "Approximating probability densities by iterated Laplace approximations", *Journal of
//! Computational and Graphical Statistics* 20(3). Begin with the Laplace approximations of all modes; then, again and
//! again, find a maximum of the residual `p − q̃`, put a Gaussian there and fit all the weights anew on points drawn
//! from the components.

use super::{Laplace, ModeSearch, climb, fatal, gaussian, joint::LogJoint, nnls::nnls};
use crate::{
    belief::measure::{Gaussian, Jet, Mixture},
    error::{Error, Result, require_positive},
    numeric::{
        linalg::{Factor, Matrix},
        optim::Ascent,
        rng::{Purpose, Stream},
    },
};

/// How the mixture is grown, and when that ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// How modes are looked for; its budget is that of the whole approximation.
    pub search: ModeSearch,
    /// Enough when log Z has changed by less than this in two additions running, and [`IteratedLaplace::misfit`] is
    /// below this too.
    pub change_tolerance: f64,
    /// Enough when the residual is nowhere on the support points larger than this share of the largest density.
    pub residual_tolerance: f64,
    /// Most components; no mode is left out because of it.
    pub max_components: usize,
    /// Support points for each component; `None` for `50 d^1.25`.
    pub support: Option<usize>,
    /// What the support points are a function of.
    pub seed: u64,
}

impl Default for Iteration {
    /// The mixture stops growing at about one per cent, or at 20 components.
    fn default() -> Self {
        Self {
            search: ModeSearch::default(),
            change_tolerance: 0.01,
            residual_tolerance: 0.01,
            max_components: 20,
            support: None,
            seed: 0,
        }
    }
}

/// Why the mixture stopped growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stopped {
    /// log Z settled, [`Iteration::change_tolerance`].
    Settled,
    /// The residual is small, [`Iteration::residual_tolerance`].
    Covered,
    /// [`Iteration::max_components`] was reached.
    Components,
    /// The budget of evaluations does not suffice for another component.
    Budget,
    /// No further component could be fitted; the result is the last fit that succeeded.
    Stuck,
}

/// An evidence and a mixture of Gaussians that approximates the posterior.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IteratedLaplace {
    /// The estimate of log Z: the logarithm of the total weight.
    pub log_z: f64,
    /// The root mean square of `(p − q̃)/q̂` on the `m` support points over `Z √m`: a standard error of log Z, if the
    /// support points knew everything. They do not know of modes without a start nor of what is beyond them in a heavy
    /// tail, and the components were placed by them, so the error is larger: up to five times so for curved densities,
    /// nine for products of Student t.
    pub misfit: f64,
    /// The approximation of the posterior; components whose weight came out as zero are left out.
    pub mixture: Mixture,
    /// The Laplace approximations it began with, one for each mode that was found.
    pub modes: Vec<Laplace>,
    /// How many evaluations of the log-joint it took.
    pub evaluations: usize,
    /// Why it ended.
    pub stopped: Stopped,
    /// For how many components the Hessian had to be mended.
    pub repairs: usize,
    /// How many starts led to no mode.
    pub failed_starts: usize,
    /// The largest `p − q̃` on the support points as a share of the largest density.
    pub residual: f64,
}

impl IteratedLaplace {
    /// Grows a mixture from the modes that the starts lead to.
    ///
    /// A start that leads to no mode is counted and passed over. Besides its support points, a component costs about
    /// ten gradients of `2d + 1` evaluations and a Hessian of `d(d + 1)`.
    ///
    /// # Errors
    /// [`Error::Length`] for no starts or starts of different dimension, [`Error::Invalid`] for options out of range,
    /// [`Error::NoFiniteValue`] when every start has density zero, [`Error::NonFiniteValue`] for NaN and +∞, and the
    /// first failure of [`Laplace::search`] when no start leads to a mode or the budget ends before there is any fit.
    pub fn new(starts: &[Vec<f64>], options: Iteration, log_joint: impl FnMut(&[f64]) -> f64) -> Result<Self> {
        let dim = check(starts, options)?;
        let mut joint = LogJoint::new(log_joint, options.search.max_evaluations);
        let (modes, failed_starts) = find_modes(&mut joint, starts, options.search)?;
        let size = options.support.unwrap_or_else(|| (50.0 * (dim as f64).powf(1.25)).ceil() as usize);
        let mut growth = Growth::new(options.seed, size);
        for mode in &modes {
            growth.add(&mut joint, mode.gaussian.clone())?;
        }
        let mut fit = growth.fit()?;
        let mut repairs = 0;
        let mut settled = 0;
        let stopped = loop {
            if fit.residual <= options.residual_tolerance {
                break Stopped::Covered;
            }
            if settled == 2 {
                break Stopped::Settled;
            }
            if growth.components.len() >= options.max_components {
                break Stopped::Components;
            }
            // One gradient, one Hessian and the support: the least that a component costs.
            if options.search.max_evaluations - joint.evaluations < size.saturating_add((dim + 1) * (dim + 2)) {
                break Stopped::Budget;
            }
            let grown = growth.propose(&mut joint, &fit).and_then(|(component, repaired)| {
                growth.add(&mut joint, component)?;
                Ok((growth.fit()?, repaired))
            });
            let (next, repaired) = match grown {
                Ok(next) => next,
                Err(e @ Error::NonFiniteValue { .. }) => return Err(e),
                Err(_) if joint.exhausted() => break Stopped::Budget,
                Err(_) => break Stopped::Stuck,
            };
            repairs += usize::from(repaired);
            // A log Z that does not move tells nothing while the fit is uncertain by more.
            let unrest = (next.log_z - fit.log_z).abs().max(next.misfit);
            settled = if unrest < options.change_tolerance { settled + 1 } else { 0 };
            fit = next;
        };
        let WeightFit { log_z, misfit, mixture, residual, .. } = fit;
        let evaluations = joint.evaluations;
        Ok(Self { log_z, misfit, mixture, modes, evaluations, stopped, repairs, failed_starts, residual })
    }
}

fn check(starts: &[Vec<f64>], options: Iteration) -> Result<usize> {
    let Some(dim) = starts.first().map(Vec::len) else {
        return Err(Error::length("list of starts", 1, 0));
    };
    crate::points::Points::from_rows(starts)?;
    options.search.check()?;
    require_positive("tolerance for changes of log Z", options.change_tolerance)?;
    require_positive("tolerance for the residual", options.residual_tolerance)?;
    if options.support == Some(0) {
        return Err(Error::invalid("number of support points", 0, "at least 1"));
    }
    Ok(dim)
}

/// The different modes that the starts lead to, in the order of their finding, and how many starts led to none.
fn find_modes<F: FnMut(&[f64]) -> f64>(
    joint: &mut LogJoint<F>,
    starts: &[Vec<f64>],
    search: ModeSearch,
) -> Result<(Vec<Laplace>, usize)> {
    let mut modes: Vec<Laplace> = Vec::new();
    let (mut failure, mut failed, mut nowhere) = (None, 0, 0);
    for start in starts {
        let here = joint.at(start)?;
        if here == f64::NEG_INFINITY {
            nowhere += 1;
            failed += 1;
            continue;
        }
        match climb(joint, start, here, search) {
            Ok(mode) => {
                // A tenth of a standard deviation: two ascents to one mode end much closer, two modes lie farther
                // apart.
                let known = modes.iter().any(|m| {
                    m.gaussian.log_density(m.gaussian.mean()) - m.gaussian.log_density(mode.gaussian.mean()) < 5e-3
                });
                if !known {
                    modes.push(mode);
                }
            }
            Err(e) if fatal(joint, &e) => return Err(e),
            Err(e) => {
                failed += 1;
                failure.get_or_insert(e);
            }
        }
    }
    match failure {
        _ if !modes.is_empty() => Ok((modes, failed)),
        Some(e) => Err(e),
        None => Err(Error::NoFiniteValue { count: nowhere }),
    }
}

/// The components so far and what is known of the log-joint on their support points.
struct Growth {
    seed: u64,
    size: usize,
    components: Vec<Gaussian>,
    points: Vec<Vec<f64>>,
    values: Vec<f64>,
    /// `log Nₐ(xᵢ)`, one list per component.
    densities: Vec<Vec<f64>>,
}

/// The weights fitted to the support points.
struct WeightFit {
    log_z: f64,
    misfit: f64,
    mixture: Mixture,
    residual: f64,
    /// The support point from which the next component is looked for.
    worst: usize,
}

impl Growth {
    fn new(seed: u64, size: usize) -> Self {
        Self { seed, size, components: Vec::new(), points: Vec::new(), values: Vec::new(), densities: Vec::new() }
    }

    /// Adds a component with its support points: normal draws in pairs `±u`, so that they have the right mean. Nothing
    /// is added when one of them cannot be evaluated.
    fn add<F: FnMut(&[f64]) -> f64>(&mut self, joint: &mut LogJoint<F>, component: Gaussian) -> Result<()> {
        let mut stream = Stream::new(self.seed, Purpose::Support, self.components.len() as u64);
        let (mut drawn, mut values) = (Vec::new(), Vec::new());
        let mut u = Vec::new();
        for i in 0..self.size {
            u = if i % 2 == 0 { stream.normals(component.dim()) } else { u.iter().map(|v: &f64| -v).collect() };
            let x = component.map_standard(&u);
            values.push(joint.at(&x)?);
            drawn.push(x);
        }
        for (known, column) in self.components.iter().zip(&mut self.densities) {
            column.extend(drawn.iter().map(|x| known.log_density(x)));
        }
        self.points.extend(drawn);
        self.values.extend(values);
        self.densities.push(self.points.iter().map(|x| component.log_density(x)).collect());
        self.components.push(component);
        Ok(())
    }

    /// Minimises `Σᵢ ((p(xᵢ) − Σₐ wₐ Nₐ(xᵢ)) / q̂(xᵢ))²` over `w ≥ 0`, `q̂ = Σₐ Nₐ / K` being where the points were
    /// drawn from.
    ///
    /// That is `∫ (p − q̃)²/q̂`: errors count where they are large beside the density, and not only near the highest
    /// mode. Constants lie in the span of the regressors `Nₐ/q̂`, so when no constraint binds the residuals sum to zero
    /// and `Σₐ wₐ` estimates Z without bias even where the mixture fits badly. Everything is relative to `max p/q̂`.
    /// Cost: `K²m`.
    fn fit(&self) -> Result<WeightFit> {
        let (k, m) = (self.components.len(), self.points.len());
        let alike: Vec<f64> = (0..m)
            .map(|i| {
                let most = self.densities.iter().map(|c| c[i]).fold(f64::NEG_INFINITY, f64::max);
                most + (self.densities.iter().map(|c| (c[i] - most).exp()).sum::<f64>() / k as f64).ln()
            })
            .collect();
        let ratio: Vec<f64> = (0..m).map(|i| self.values[i] - alike[i]).collect();
        let top = ratio.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            return Err(Error::NoFiniteValue { count: m });
        }
        let design = Matrix::from_fn(m, k, |i, a| (self.densities[a][i] - alike[i]).exp());
        let target = Matrix::from_fn(m, 1, |i, _| (ratio[i] - top).exp());
        let gram = crate::numeric::linalg::transpose_mul(&design, &design);
        let weights = nnls(&gram, crate::numeric::linalg::transpose_mul(&design, &target).col(0))?;
        let total: f64 = weights.iter().sum();
        let log_z = top + total.ln();
        let fitted = design.mul_vec(&weights);
        let square: f64 = fitted.iter().zip(target.col(0)).map(|(f, t)| (f - t).powi(2)).sum();
        let misfit = square.sqrt() / (m as f64 * total);
        let highest = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let left: Vec<f64> = (0..m).map(|i| log_difference(self.values[i], top + alike[i] + fitted[i].ln())).collect();
        let largest = left.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Half-way between the largest residual, which forgets the tails, and the largest relative to q̂, which forgets
        // the rest.
        let (worst, _) = left
            .iter()
            .zip(&alike)
            .map(|(left, alike)| left - 0.5 * alike)
            .enumerate()
            .fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best });
        let kept = weights.into_iter().zip(&self.components).filter(|(w, _)| *w > 0.0);
        let mixture = Mixture::new(kept.map(|(w, g)| (w, g.clone())).collect())?;
        Ok(WeightFit { log_z, misfit, mixture, residual: (largest - highest).exp(), worst })
    }

    /// A new component where the residual has a maximum, and whether its Hessian had to be mended.
    fn propose<F: FnMut(&[f64]) -> f64>(&self, joint: &mut LogJoint<F>, fit: &WeightFit) -> Result<(Gaussian, bool)> {
        let from = &self.points[fit.worst];
        let widths = self.conditional_widths(from)?;
        // Only the neighbourhood matters: the weights make up for a component that is off by a tenth of its width.
        let ascent = Ascent { max_evaluations: 20, gradient_tolerance: 0.1, value_tolerance: 0.01, max_step: 2.0 };
        let summit = super::ascend(from, &widths, ascent, |x| {
            let (value, slope) = joint.gradient(x, &widths)?;
            let jet = fit.mixture.log_density_jet(x);
            let left = log_difference(value, fit.log_z + jet.value);
            let (p, q) = ((value - left).exp(), (fit.log_z + jet.value - left).exp());
            Ok((left, slope.iter().zip(&jet.gradient).map(|(f, g)| p * f - q * g).collect()))
        })?;
        let x = if summit.value.is_finite() { summit.x } else { from.clone() };
        let nearest = self.nearest(&x);
        let here = joint.at(&x)?;
        match joint.jet_with(&x, here, &self.conditional_widths(&x)?) {
            Ok(jet) => {
                let hessian = residual_hessian(&jet, &fit.mixture.log_density_jet(&x), fit.log_z);
                mend(x, &hessian, nearest)
            }
            Err(Error::Invalid { .. }) => Ok((gaussian(x, &Factor::exact("precision", &precision(nearest)?)?)?, true)),
            Err(e) => Err(e),
        }
    }

    /// The component whose density at `x` is largest.
    fn nearest(&self, x: &[f64]) -> &Gaussian {
        let mut best = (f64::NEG_INFINITY, &self.components[0]);
        for component in &self.components {
            let density = component.log_density(x);
            if density > best.0 {
                best = (density, component);
            }
        }
        best.1
    }

    /// `Pⱼⱼ^{−½}` of the component nearest to `x`.
    fn conditional_widths(&self, x: &[f64]) -> Result<Vec<f64>> {
        let precision = precision(self.nearest(x))?;
        Ok((0..x.len()).map(|j| precision.get(j, j).sqrt().recip()).collect())
    }
}

fn precision(gaussian: &Gaussian) -> Result<Matrix> {
    let inverse = Factor::exact("covariance of a component", gaussian.covariance())?.inverse_lower();
    Ok(Matrix::from_fn(gaussian.dim(), gaussian.dim(), |i, j| inverse.get(i.max(j), i.min(j))))
}

/// `log(eᵃ − eᵇ)`, −∞ unless `a > b`.
fn log_difference(a: f64, b: f64) -> f64 {
    if a > b { a + (-(b - a).exp_m1()).ln() } else { f64::NEG_INFINITY }
}

/// The Hessian of `log(p − q̃)` from the jets of `log p` and of the mixture `log q̃ = log_z + log q`.
///
/// At a maximum of the residual it is negative definite, as that of `log p` seldom is there: in a tail, `log p` is
/// convex. With `a = p/(p − q̃)`, `b = q̃/(p − q̃)`, `s = a∇f − b∇q`: `a(∇²f + ∇f∇fᵀ) − b(∇²q + ∇q∇qᵀ) − ssᵀ`.
fn residual_hessian(p: &Jet, q: &Jet, log_z: f64) -> Matrix {
    let d = p.gradient.len();
    let left = log_difference(p.value, log_z + q.value);
    let (a, b) = ((p.value - left).exp(), (log_z + q.value - left).exp());
    let slope: Vec<f64> = (0..d).map(|i| a * p.gradient[i] - b * q.gradient[i]).collect();
    Matrix::from_fn(d, d, |i, j| {
        a * (p.hessian[i * d + j] + p.gradient[i] * p.gradient[j])
            - b * (q.hessian[i * d + j] + q.gradient[i] * q.gradient[j])
            - slope[i] * slope[j]
    })
}

/// A component may be wider than its neighbour by the root of the inverse of this.
const NARROWEST: f64 = 0.1;

/// The Gaussian at `x` with precision `−H + τP`, `P` that of its neighbour and `τ` as small as `−H + τP ≻ P/10` allows,
/// and whether `τ > 0`. In coordinates where `P = I` this lifts the eigenvalues, so it is the same in any units.
fn mend(x: Vec<f64>, hessian: &Matrix, neighbour: &Gaussian) -> Result<(Gaussian, bool)> {
    let (d, p) = (x.len(), precision(neighbour)?);
    let lifted =
        |tau: f64| Matrix::from_fn(d, d, |i, j| tau * p.get(i, j) - 0.5 * (hessian.get(i, j) + hessian.get(j, i)));
    let mut tau = 0.0;
    for _ in 0..60 {
        if Factor::exact("curvature of a component", &lifted(tau - NARROWEST)).is_ok() {
            let factor = Factor::exact("curvature of a component", &lifted(tau))?;
            return Ok((gaussian(x, &factor)?, tau > 0.0));
        }
        tau = if tau == 0.0 { NARROWEST } else { 1.5 * tau };
    }
    Ok((gaussian(x, &Factor::exact("precision of a component", &p)?)?, true))
}
