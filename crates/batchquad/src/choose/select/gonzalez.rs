//! The multiplicative local penaliser of González et al. (2016), for comparison: [`MATH.md` §5](crate::math).3.
//!
//! It was made to find a maximum: around a chosen point it excludes the ball in which the function could still rise to
//! the largest value seen. Where the model is uncertain that ball is wide, which is the wrong way round for an
//! integral.

use crate::{
    belief::surrogate::Surrogate,
    choose::{
        acquire::{Acquisition, MeanIntegrand},
        select::{
            Rule, Search, Selection,
            climb::{Climb, draw, scaled_square},
            penalise,
        },
    },
    error::Result,
    numeric::{
        jets::{Jets, Order},
        normal,
        optim::{Ascent, Bounds},
    },
    points::Points,
};

/// The penalty `Φ((L‖x − x₀‖ − M + μ₀)/σ₀) = ½ erfc(−z)`, with every quantity in units of `M` and distances in
/// lengthscales.
#[derive(Debug, Clone, PartialEq)]
pub struct GonzalezPenalty {
    /// The chosen point `x₀`.
    pub centre: Vec<f64>,
    /// `L/M`: the steepest slope of the expected integrand.
    pub lipschitz: f64,
    /// `μ₀/M`: the expected integrand at `x₀`.
    pub mean: f64,
    /// `σ₀/M`: its standard deviation.
    pub sd: f64,
}

/// An acquisition times penalties.
pub struct Penalised<'a> {
    /// The acquisition.
    pub acquisition: &'a dyn Acquisition,
    /// One penalty per chosen or pending point.
    pub penalties: &'a [GonzalezPenalty],
    /// The lengthscales in which distances are measured.
    pub lengthscales: &'a [f64],
}

impl Acquisition for Penalised<'_> {
    /// `log ã = log a + Σ log Φ(tⱼ)`; with the hazard `η = φ(t)/Φ(t)`: `∇ log Φ = η ∇t`,
    /// `∇² log Φ = η ∇²t − η(t + η) ∇t∇tᵀ`.
    fn log_jets(&self, x: &Points, order: Order) -> Result<Jets> {
        let d = x.dim();
        let mut jets = self.acquisition.log_jets(x, order)?;
        for (at, row) in x.rows().enumerate() {
            for p in self.penalties {
                let r = scaled_square(row, &p.centre, self.lengthscales).sqrt();
                let t = (p.lipschitz * r - 1.0 + p.mean) / p.sd;
                jets.value[at] += normal::log_cdf(t);
                if order == Order::Value {
                    continue;
                }
                let hazard = (normal::log_density(t) - normal::log_cdf(t)).exp();
                let rise = p.lipschitz / p.sd;
                let unit: Vec<f64> =
                    (0..d).map(|a| (row[a] - p.centre[a]) / self.lengthscales[a].powi(2) / r).collect();
                for a in 0..d {
                    jets.gradient[at * d + a] += hazard * rise * unit[a];
                }
                if order == Order::Hessian {
                    for a in 0..d {
                        for b in 0..d {
                            let flat = if a == b { self.lengthscales[a].powi(-2) } else { 0.0 };
                            let bend = rise * (flat - unit[a] * unit[b]) / r;
                            let slope = rise * rise * unit[a] * unit[b];
                            jets.hessian[(at * d + a) * d + b] += hazard * bend - hazard * (t + hazard) * slope;
                        }
                    }
                }
            }
        }
        Ok(jets)
    }
}

const ASCENT: Ascent = Ascent { max_evaluations: 25, gradient_tolerance: 1e-2, value_tolerance: 1e-2, max_step: 1.0 };

/// The rule.
#[derive(Debug)]
pub(super) struct Gonzalez;

impl Rule for Gonzalez {
    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        let acquisition = search.criterion.of(belief)?;
        let mut climb = Climb::new(belief, pending, search)?;
        let lengthscales = climb.lengthscales().to_vec();
        let nodes = belief.nodes();
        let density = |x: &[f64]| belief.measure().log_density(x);
        // log M, the largest value of the integrand times the density at a node.
        let expected = belief.moments(nodes)?;
        let largest = (0..nodes.len())
            .map(|i| expected[i].0.max(f64::MIN_POSITIVE).ln() + density(nodes.row(i)))
            .fold(f64::NEG_INFINITY, f64::max);
        let mut stream = climb.stream(3);
        let scale = |x: &[f64]| -> Vec<f64> { x.iter().zip(&lengthscales).map(|(x, l)| x / l).collect() };
        let mut starts: Vec<Vec<f64>> =
            (0..search.starts_per_dim * nodes.dim()).map(|_| scale(&draw(belief, &mut stream))).collect();
        starts.extend(nodes.rows().map(scale));
        let everywhere = Bounds::cube(nodes.dim(), f64::NEG_INFINITY, f64::INFINITY)?;
        let steepest = penalise::steepest(&MeanIntegrand::new(belief), &starts, &lengthscales, &everywhere, ASCENT)?;
        let lipschitz = (steepest - largest).exp();
        let penalty = |x: &[f64]| -> Result<GonzalezPenalty> {
            let (mean, variance) = belief.moments(&Points::new(x.len(), x.to_vec())?)?[0];
            let unit = (density(x) - largest).exp();
            let sd = (variance.sqrt() * unit).max(1e-12);
            Ok(GonzalezPenalty { centre: x.to_vec(), lipschitz, mean: mean * unit, sd })
        };
        let mut penalties = pending.rows().map(penalty).collect::<Result<Vec<_>>>()?;
        for _ in 0..n {
            let penalised =
                Penalised { acquisition: &*acquisition, penalties: &penalties, lengthscales: &lengthscales };
            let point = climb.choose(belief, &penalised)?;
            penalties.push(penalty(&point)?);
        }
        climb.finish()
    }
}
