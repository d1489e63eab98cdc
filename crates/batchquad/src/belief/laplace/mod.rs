//! Evidence from the curvature at the mode, and from mixtures of Gaussians fitted where that leaves something over:
//! [`MATH.md` §9](crate::math).
//!
//! These are the cheap answers to compare a quadrature with: [`Laplace`] costs little more than finding the mode,
//! [`IteratedLaplace`] a few hundred evaluations. Both count every evaluation of the log-joint `f = log ℓ + log π`. A
//! value of −∞ is legal away from the mode; NaN and +∞ are errors that name the point.

mod iterated;
mod joint;
mod nnls;

pub use self::iterated::{IteratedLaplace, Iteration, Stopped};
use self::joint::LogJoint;
use crate::{
    belief::measure::{Gaussian, Jet},
    error::{Error, Result, require_finite, require_positive},
    numeric::{
        linalg::{Factor, Matrix},
        optim::{Ascent, Bounds, Summit, maximise},
    },
};

/// How a mode is looked for, and when a point counts as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModeSearch {
    /// The width of the log-joint along a coordinate, to within several powers of ten: the search begins with it and
    /// then measures the width of each coordinate. One is right for latent coordinates.
    pub scale: f64,
    /// Most evaluations of the log-joint.
    pub max_evaluations: usize,
    /// A point is a mode when `λ = √(gᵀ(−H)⁻¹g)` is at most this: its distance from the top of the parabola in standard
    /// deviations. Calling such a point the mode loses `½λ²` of log Z.
    pub stationarity: f64,
}

impl Default for ModeSearch {
    /// Latent coordinates, ten thousand evaluations, and 5·10⁻⁷ of log Z to lose.
    fn default() -> Self {
        Self { scale: 1.0, max_evaluations: 10_000, stationarity: 1e-3 }
    }
}

impl ModeSearch {
    fn check(&self) -> Result<()> {
        require_positive("scale of the search for the mode", self.scale)?;
        require_positive("stationarity tolerance", self.stationarity)?;
        Ok(())
    }
}

/// The Laplace approximation of an evidence: `log Z ≈ f(x*) + ½ d log 2π − ½ log|−H|`.
///
/// ```
/// use batchquad::belief::laplace::{Laplace, ModeSearch};
/// // The unnormalised N(3, 2²): log Z = log(2 √2π).
/// let laplace = Laplace::search(&[0.0], ModeSearch::default(), |x| -0.5 * ((x[0] - 3.0) / 2.0).powi(2))?;
/// assert!((laplace.log_z - (2.0 * std::f64::consts::TAU.sqrt()).ln()).abs() < 1e-8);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Laplace {
    /// The estimate of log Z.
    pub log_z: f64,
    /// The log-joint at the mode.
    pub value: f64,
    /// `N(x*, (−H)⁻¹)`, the approximation of the posterior; its mean is the mode.
    pub gaussian: Gaussian,
    /// How far the mode is from stationary, `λ` of [`ModeSearch::stationarity`].
    pub newton_decrement: f64,
    /// How many evaluations of the log-joint it took.
    pub evaluations: usize,
}

impl Laplace {
    /// From value, gradient and Hessian of the log-joint at its mode, without any evaluation. Cost: `d³`.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::Invalid`] for derivatives of the wrong shape, non-finite or asymmetric;
    /// [`Error::NotPositiveDefinite`] when `−H` is not (a saddle, a ridge); [`Error::Invalid`] naming the norm of the
    /// gradient when `λ` exceeds `stationarity`.
    pub fn from_jet(mode: &[f64], jet: &Jet, stationarity: f64) -> Result<Self> {
        require_positive("stationarity tolerance", stationarity)?;
        check_point("mode", mode)?;
        check_jet(mode, jet)?;
        Peak::new(mode, jet)?.laplace(stationarity, 0)
    }

    /// At a mode that is known, with derivatives by central differences: `d(d + 1)` evaluations and a few more to find
    /// the steps.
    ///
    /// # Errors
    /// As [`Laplace::from_jet`]; [`Error::Invalid`] when the log-joint is not finite there; [`Error::NonFiniteValue`]
    /// for NaN and +∞; [`Error::Numerical`] when the budget is spent.
    pub fn at_mode(mode: &[f64], search: ModeSearch, log_joint: impl FnMut(&[f64]) -> f64) -> Result<Self> {
        search.check()?;
        check_point("mode", mode)?;
        let mut joint = LogJoint::new(log_joint, search.max_evaluations);
        let here = finite(&mut joint, "mode", mode)?;
        let jet = joint.jet(mode, here, &vec![search.scale; mode.len()])?;
        Peak::new(mode, &jet)?.laplace(search.stationarity, joint.evaluations)
    }

    /// At the mode that an ascent from `start` leads to: quasi-Newton with gradients by central differences (`2d + 1`
    /// evaluations per step), then Newton's method with the Hessian that the approximation needs anyhow.
    ///
    /// # Errors
    /// As [`Laplace::at_mode`], and when the ascent does not end at a mode.
    pub fn search(start: &[f64], search: ModeSearch, log_joint: impl FnMut(&[f64]) -> f64) -> Result<Self> {
        search.check()?;
        let mut joint = LogJoint::new(log_joint, search.max_evaluations);
        search_from(&mut joint, start, search)
    }
}

/// A point with a negative definite Hessian.
struct Peak {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    factor: Factor,
    /// `(−H)⁻¹ g`, the way to the top of the parabola.
    newton: Vec<f64>,
}

impl Peak {
    fn new(x: &[f64], jet: &Jet) -> Result<Self> {
        let d = x.len();
        let minus = Matrix::from_fn(d, d, |i, j| -0.5 * (jet.hessian[i * d + j] + jet.hessian[j * d + i]));
        let factor = Factor::exact(&format!("minus the Hessian of the log-joint at {x:?}"), &minus)?;
        let newton = factor.solve_vec(&jet.gradient);
        Ok(Self { x: x.to_vec(), value: jet.value, gradient: jet.gradient.clone(), factor, newton })
    }

    fn decrement(&self) -> f64 {
        self.gradient.iter().zip(&self.newton).map(|(g, n)| g * n).sum::<f64>().max(0.0).sqrt()
    }

    fn laplace(self, stationarity: f64, evaluations: usize) -> Result<Laplace> {
        let decrement = self.decrement();
        // Written so that NaN is refused.
        if !matches!(decrement.partial_cmp(&stationarity), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)) {
            let norm = self.gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let expected = format!(
                "a stationary point: this one is {decrement:e} standard deviations from the top of its parabola, more than {stationarity:e}"
            );
            return Err(Error::invalid(format!("norm of the gradient at {:?}", self.x), norm, expected));
        }
        let d = self.x.len();
        let log_z = self.value + 0.5 * (d as f64 * std::f64::consts::TAU.ln() - self.factor.log_det());
        let gaussian = gaussian(self.x, &self.factor)?;
        require_finite("Laplace approximation of log Z", log_z)?;
        Ok(Laplace { log_z, value: self.value, gaussian, newton_decrement: decrement, evaluations })
    }
}

/// `N(mean, P⁻¹)` from the factor of the precision `P`.
fn gaussian(mean: Vec<f64>, precision: &Factor) -> Result<Gaussian> {
    let d = mean.len();
    let inverse = precision.inverse_lower();
    let rows: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| inverse.get(i.max(j), i.min(j))).collect()).collect();
    Gaussian::new(mean, &rows)
}

fn check_point(what: &str, x: &[f64]) -> Result<()> {
    if x.is_empty() {
        return Err(Error::length(what, 1, 0));
    }
    match x.iter().position(|v| !v.is_finite()) {
        Some(coordinate) => Err(Error::NonFinitePoint { index: 0, coordinate, value: x[coordinate] }),
        None => Ok(()),
    }
}

fn check_jet(x: &[f64], jet: &Jet) -> Result<()> {
    let d = x.len();
    require_finite(&format!("log-joint at the mode {x:?}"), jet.value)?;
    if jet.gradient.len() != d {
        return Err(Error::length("gradient of the log-joint", d, jet.gradient.len()));
    }
    if jet.hessian.len() != d * d {
        return Err(Error::length("Hessian of the log-joint", d * d, jet.hessian.len()));
    }
    for &v in jet.gradient.iter().chain(&jet.hessian) {
        require_finite("derivative of the log-joint at the mode", v)?;
    }
    let entry = |i: usize, j: usize| jet.hessian[i * d + j];
    for (i, j) in (0..d).flat_map(|i| (0..i).map(move |j| (i, j))) {
        // Looser than rounding: second derivatives are often differences of somebody's gradients.
        if (entry(i, j) - entry(j, i)).abs() > 1e-6 * (entry(i, i).abs() * entry(j, j).abs()).sqrt() {
            let what = format!("Hessian of the log-joint at ({i}, {j}) and ({j}, {i})");
            return Err(Error::invalid(what, (entry(i, j), entry(j, i)), "a symmetric matrix"));
        }
    }
    Ok(())
}

fn search_from<F: FnMut(&[f64]) -> f64>(joint: &mut LogJoint<F>, from: &[f64], search: ModeSearch) -> Result<Laplace> {
    check_point("start of the search for the mode", from)?;
    let here = finite(joint, "start", from)?;
    climb(joint, from, here, search)
}

/// The log-joint at a point where it has to be finite.
fn finite<F: FnMut(&[f64]) -> f64>(joint: &mut LogJoint<F>, what: &str, x: &[f64]) -> Result<f64> {
    let here = joint.at(x)?;
    require_finite(&format!("log-joint at the {what} {x:?}"), here)?;
    Ok(here)
}

/// Rounds of ascent, each in the units that the last one measured.
const ROUNDS: usize = 4;
/// Newton steps in one round; they double the digits, so more would not help.
const NEWTON_STEPS: usize = 6;
/// Below this decrement the Hessian is as good as the one at the mode, and the last step is taken without a new one.
const NEAR: f64 = 1e-4;

/// The mode above `from`, where the value is known and finite.
fn climb<F: FnMut(&[f64]) -> f64>(
    joint: &mut LogJoint<F>,
    from: &[f64],
    mut here: f64,
    search: ModeSearch,
) -> Result<Laplace> {
    // The start has been paid for already.
    let before = joint.evaluations.saturating_sub(1);
    let mut x = from.to_vec();
    let mut widths = joint.widths(&x, here, &vec![search.scale; x.len()])?;
    let mut failure = None;
    for _ in 0..ROUNDS {
        let rounding = 16.0 * f64::EPSILON * here.abs();
        let ascent = Ascent {
            max_evaluations: 100,
            gradient_tolerance: 1e-3,
            value_tolerance: rounding.max(1e-8),
            max_step: 10.0,
        };
        x = ascend(&x, &widths, ascent, |y| joint.gradient(y, &widths))?.x;
        here = finite(joint, "end of the ascent", &x)?;
        match polish(joint, x.clone(), here, &widths, search.stationarity.min(NEAR))
            .and_then(|peak| peak.laplace(search.stationarity, joint.evaluations - before))
        {
            Ok(laplace) => return Ok(laplace),
            Err(e) if fatal(joint, &e) => return Err(e),
            Err(e) => failure = Some(e),
        }
        widths = joint.widths(&x, here, &widths)?;
    }
    Err(failure.unwrap_or_else(|| Error::invalid("rounds of ascent", 0, "at least 1")))
}

/// Whether an error says something about the log-joint or the budget, rather than about this attempt to find a mode.
fn fatal<F: FnMut(&[f64]) -> f64>(joint: &LogJoint<F>, error: &Error) -> bool {
    matches!(error, Error::NonFiniteValue { .. } | Error::Length { .. }) || joint.exhausted()
}

/// Newton's method, as long as it climbs.
fn polish<F: FnMut(&[f64]) -> f64>(
    joint: &mut LogJoint<F>,
    mut x: Vec<f64>,
    mut here: f64,
    widths: &[f64],
    near: f64,
) -> Result<Peak> {
    let mut peak = Peak::new(&x, &joint.jet(&x, here, widths)?)?;
    for _ in 0..NEWTON_STEPS {
        let next: Vec<f64> = x.iter().zip(&peak.newton).map(|(x, n)| x + n).collect();
        if next == x || next.iter().any(|v| !v.is_finite()) {
            break;
        }
        let there = joint.at(&next)?;
        if there < here {
            break;
        }
        (x, here) = (next, there);
        if peak.decrement() <= near {
            peak.value = here;
            peak.x = x;
            // What is left is of second order in a step that was small already.
            break;
        }
        peak = Peak::new(&x, &joint.jet(&x, here, widths)?)?;
    }
    Ok(peak)
}

/// Quasi-Newton ascent in units of `widths` from `from`.
fn ascend(
    from: &[f64],
    widths: &[f64],
    ascent: Ascent,
    mut objective: impl FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
) -> Result<Summit> {
    let d = from.len();
    let place = |u: &[f64]| -> Vec<f64> { (0..d).map(|j| from[j] + widths[j] * u[j]).collect() };
    let bounds = Bounds::cube(d, f64::NEG_INFINITY, f64::INFINITY)?;
    let mut summits = maximise(&[vec![0.0; d]], &bounds, ascent, |trials| {
        trials
            .iter()
            .map(|u| {
                let x = place(u);
                if x.iter().any(|v| !v.is_finite()) {
                    return Ok((f64::NEG_INFINITY, vec![0.0; d]));
                }
                let (value, gradient) = objective(&x)?;
                Ok((value, gradient.iter().zip(widths).map(|(g, w)| g * w).collect()))
            })
            .collect()
    })?;
    let mut summit = summits.remove(0);
    summit.x = place(&summit.x);
    Ok(summit)
}
