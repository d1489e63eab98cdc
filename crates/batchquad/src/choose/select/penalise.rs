//! Local penalisation with Lipschitz cones, the paper's own rule: [`MATH.md` §5](crate::math).2.

use serde::{Deserialize, Serialize};

use crate::{
    belief::surrogate::Surrogate,
    choose::{
        acquire::Acquisition,
        select::{
            Apart, Rule, Search, Selection,
            climb::{Climb, scaled_gradient, scaled_square, unscaled},
        },
    },
    error::{Result, require_positive},
    numeric::{
        jets::{Jets, Order, run},
        log_sum::log_sum_exp,
        optim::{Ascent, Bounds, maximise},
        rng::Stream,
    },
    points::Points,
};

/// The two constants of local penalisation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Penalisation {
    /// The share of the Lipschitz constant that is the slope of a cone.
    pub slope: f64,
    /// `p` of the soft minimum, as a positive number: the `ℓ₋ₚ`-norm is taken.
    pub power: f64,
}

impl Penalisation {
    /// What the paper found by hand.
    pub const PAPER: Self = Self { slope: 0.5, power: 6.0 };
}

/// Gentler cones than the paper's: 0.61 times its error on the GP evidence and 0.86 times on the mixtures
/// (`crates/experiments`, ablation).
impl Default for Penalisation {
    fn default() -> Self {
        Self { slope: 0.25, ..Self::PAPER }
    }
}

/// A cone `s ‖x − x₀‖`, zero at a point that is already chosen; distances are in lengthscales.
#[derive(Debug, Clone, PartialEq)]
pub struct Cone {
    /// `x₀`.
    pub centre: Vec<f64>,
    /// `log s`.
    pub log_slope: f64,
}

impl Cone {
    /// The logarithm of the cone at `x`; −∞ at its tip.
    #[must_use]
    pub fn log_value(&self, x: &[f64], lengthscales: &[f64]) -> f64 {
        self.log_slope + 0.5 * scaled_square(x, &self.centre, lengthscales).ln()
    }
}

/// The soft minimum of an acquisition and cones: the `ℓ₋ₚ`-norm, `log ã = −(1/p) log Σᵢ exp(−p log fᵢ)`.
///
/// It lies below the hard minimum of its `k` terms and above `k^(−1/p)` of it, and is differentiable away from the tips
/// of the cones.
pub struct SoftMinimum<'a> {
    /// The acquisition.
    pub acquisition: &'a dyn Acquisition,
    /// The cones.
    pub cones: &'a [Cone],
    /// `p > 0`.
    pub power: f64,
    /// The lengthscales in which distances are measured.
    pub lengthscales: &'a [f64],
}

impl Acquisition for SoftMinimum<'_> {
    /// With weights `ωᵢ ∝ fᵢ⁻ᵖ`: `∇ = Σ ωᵢ ∇log fᵢ`, `∇² = Σ ωᵢ ∇²log fᵢ − p (Σ ωᵢ ∇log fᵢ ∇log fᵢᵀ − ∇∇ᵀ)`.
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let d = x.dim();
        let base = self.acquisition.log_jets(x, order)?;
        if self.cones.is_empty() {
            return Ok(base);
        }
        let mut out = Jets::zeros(x.len(), d, order);
        for (at, row) in x.rows().enumerate() {
            let logs: Vec<f64> = std::iter::once(base.value[at])
                .chain(self.cones.iter().map(|c| c.log_value(row, self.lengthscales)))
                .collect();
            let scaled: Vec<f64> = logs.iter().map(|l| -self.power * l).collect();
            let total = log_sum_exp(&scaled);
            out.value[at] = -total / self.power;
            if order == Order::Value {
                continue;
            }
            let (mut gradient, mut second) = (vec![0.0; d], vec![0.0; d * d]);
            for (i, term) in scaled.iter().enumerate() {
                let weight = (term - total).exp();
                let slope = match i.checked_sub(1) {
                    None => run(&base.gradient, at, d).to_vec(),
                    Some(c) => self.cone_slope(&self.cones[c], row),
                };
                for a in 0..d {
                    gradient[a] += weight * slope[a];
                }
                if order == Order::Hessian {
                    for j in 0..d * d {
                        let (a, b) = (j / d, j % d);
                        let curvature = match i.checked_sub(1) {
                            None => base.hessian[at * d * d + j],
                            Some(c) => self.cone_curvature(&self.cones[c], row, a, b, &slope),
                        };
                        second[j] += weight * (curvature - self.power * slope[a] * slope[b]);
                    }
                }
            }
            for j in 0..if order == Order::Hessian { d * d } else { 0 } {
                out.hessian[at * d * d + j] = second[j] + self.power * gradient[j / d] * gradient[j % d];
            }
            out.gradient[at * d..(at + 1) * d].copy_from_slice(&gradient);
        }
        Ok(out)
    }
}

impl SoftMinimum<'_> {
    /// `∇ log r = Λ⁻¹(x − x₀)/r²`.
    fn cone_slope(&self, cone: &Cone, x: &[f64]) -> Vec<f64> {
        let square = scaled_square(x, &cone.centre, self.lengthscales);
        (0..x.len()).map(|a| (x[a] - cone.centre[a]) / self.lengthscales[a].powi(2) / square).collect()
    }

    /// `∇² log r = Λ⁻¹/r² − 2 ∇log r ∇log rᵀ`.
    fn cone_curvature(&self, cone: &Cone, x: &[f64], a: usize, b: usize, slope: &[f64]) -> f64 {
        let square = scaled_square(x, &cone.centre, self.lengthscales);
        let diagonal = if a == b { self.lengthscales[a].powi(-2) / square } else { 0.0 };
        diagonal - 2.0 * slope[a] * slope[b]
    }
}

/// Points looked at around a chosen one, for each dimension, and how many of the steepest are climbed from.
const PROBES_PER_DIM: usize = 10;
const CLIMBS: usize = 3;

/// Their spread, and how far the ascent may go, in lengthscales.
const SPREAD: f64 = 0.1;
const REACH: f64 = 0.7;

/// A percent of the constant is more than its use deserves.
const ASCENT: Ascent = Ascent { max_evaluations: 12, gradient_tolerance: 1e-2, value_tolerance: 1e-2, max_step: 0.5 };

/// The logarithm of the local Lipschitz constant `L = max ‖∇a‖` around `x`, with distances in lengthscales.
///
/// `log‖∇a‖ = log a + ½ log |h|²` with `h = ∇ log a`; its gradient is `h + Hh/|h|²` with `H = ∇² log a`. Found by local
/// ascent from the three steepest of `10d` points around `x`, spread by a tenth of a lengthscale: Hessians cost `d`
/// times what gradients do, and all of those points lie on the slopes of the same summit. −∞ where the acquisition is
/// flat.
///
/// # Errors
/// As [`Acquisition::log_jets`].
pub fn log_lipschitz(
    acquisition: &dyn Acquisition,
    x: &[f64],
    lengthscales: &[f64],
    stream: &mut Stream,
) -> Result<f64> {
    let d = x.len();
    let probes: Vec<Vec<f64>> = (0..PROBES_PER_DIM * d)
        .map(|_| x.iter().zip(lengthscales).map(|(x, l)| x / l + SPREAD * stream.normal()).collect())
        .collect();
    let jets = acquisition.log_jets(&unscaled(&probes, lengthscales)?, Order::Gradient)?;
    let mut steep: Vec<(f64, Vec<f64>)> = probes
        .into_iter()
        .enumerate()
        .map(|(at, y)| {
            (jets.value[at] + 0.5 * scaled_gradient(&jets, at, lengthscales).iter().map(|v| v * v).sum::<f64>().ln(), y)
        })
        .filter(|(height, _)| !height.is_nan())
        .collect();
    steep.sort_by(|a, b| b.0.total_cmp(&a.0));
    let starts: Vec<Vec<f64>> = steep.into_iter().take(CLIMBS).map(|(_, y)| y).collect();
    let corner = |side: f64| x.iter().zip(lengthscales).map(|(x, l)| x / l + side * REACH).collect();
    let bounds = Bounds::new(corner(-1.0), corner(1.0))?;
    steepest(acquisition, &starts, lengthscales, &bounds, ASCENT)
}

/// The largest `log‖∇a‖` that ascent from the starts finds, everything in units of the lengthscales.
pub(crate) fn steepest(
    acquisition: &dyn Acquisition,
    starts: &[Vec<f64>],
    lengthscales: &[f64],
    bounds: &Bounds,
    ascent: Ascent,
) -> Result<f64> {
    let summits = maximise(starts, bounds, ascent, |trials| {
        let jets = acquisition.log_jets(&unscaled(trials, lengthscales)?, Order::Hessian)?;
        Ok((0..trials.len()).map(|at| log_gradient_norm(&jets, at, lengthscales)).collect())
    })?;
    Ok(summits.iter().map(|s| s.value).fold(f64::NEG_INFINITY, f64::max))
}

fn log_gradient_norm(jets: &Jets, at: usize, lengthscales: &[f64]) -> (f64, Vec<f64>) {
    let d = lengthscales.len();
    let h = scaled_gradient(jets, at, lengthscales);
    let square: f64 = h.iter().map(|v| v * v).sum();
    let gradient = (0..d)
        .map(|a| {
            let bent: f64 =
                (0..d).map(|b| jets.hessian[(at * d + a) * d + b] * lengthscales[a] * lengthscales[b] * h[b]).sum();
            h[a] + bent / square
        })
        .collect();
    (jets.value[at] + 0.5 * square.ln(), gradient)
}

impl Rule for Penalisation {
    fn apart(&self) -> Apart {
        Apart::Cones(*self)
    }

    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        require_positive("slope of the cones", self.slope)?;
        require_positive("power of the soft minimum", self.power)?;
        let acquisition = search.criterion.of(belief)?;
        let mut climb = Climb::new(belief, pending, search)?;
        let lengthscales = climb.lengthscales().to_vec();
        let cone = |x: &[f64], stream: &mut Stream| -> Result<Cone> {
            let log_slope = self.slope.ln() + log_lipschitz(&*acquisition, x, &lengthscales, stream)?;
            Ok(Cone { centre: x.to_vec(), log_slope })
        };
        let mut cones = Vec::new();
        let mut stream = climb.stream(2);
        for x in pending.rows() {
            cones.push(cone(x, &mut stream)?);
        }
        for k in 0..n {
            let penalised = SoftMinimum {
                acquisition: &*acquisition,
                cones: &cones,
                power: self.power,
                lengthscales: &lengthscales,
            };
            let point = climb.choose(belief, &penalised)?;
            if k + 1 < n {
                cones.push(cone(&point, &mut climb.stream(2))?);
            }
        }
        climb.finish()
    }
}
