//! What the values say about each other: leave-one-out residuals and the jackknife, in closed form. [`MATH.md`
//! §3](crate::math).

use serde::Serialize;

use crate::belief::gp::Gp;

/// A node as all the others predict it, on the scale of the Gaussian process (the square root of the likelihood, or
/// itself).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residual {
    /// The value at the node.
    pub value: f64,
    /// The mean that the others predict.
    pub predicted: f64,
    /// The standard deviation they predict.
    pub sd: f64,
    /// `(value − predicted)/sd`.
    pub standardised: f64,
}

/// `gᵢ − m₋ᵢ(xᵢ) = wᵢ/[K⁻¹]ᵢᵢ` with variance `1/[K⁻¹]ᵢᵢ`, so the standardised residual is `wᵢ/√[K⁻¹]ᵢᵢ`. Cost: `n³/3`.
#[must_use]
pub(crate) fn leave_one_out(gp: &Gp) -> Vec<Residual> {
    let residual = |((w, g), precision): ((&f64, &f64), f64)| Residual {
        value: *g,
        predicted: g - w / precision,
        sd: precision.sqrt().recip(),
        standardised: w / precision.sqrt(),
    };
    gp.weights().iter().zip(gp.targets()).zip(gp.factor().inverse_diagonal()).map(residual).collect()
}

/// The jackknife's standard deviation of the mean of `Z`, in units of `eᶜ`: `√Σδᵢ²`, where `δᵢ = (wᵢ/[K⁻¹]ᵢᵢ)(K⁻¹c)ᵢ`
/// is what leaving out the value of node `i` takes from the mean to first order; `c` is `z` for a plain process and
/// `Pw` for a warped one. Cost: `n²`.
///
/// It needs the residuals of [`leave_one_out`] and no assumption about the process: where the hyperparameters promise
/// more than the values keep, it is larger than the model's own standard deviation.
pub(crate) fn jackknife(gp: &Gp, with_z: &[f64], residuals: &[Residual]) -> f64 {
    let solved = gp.factor().solve_vec(with_z);
    residuals.iter().zip(&solved).map(|(r, s)| ((r.value - r.predicted) * s).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Points,
        belief::{
            kernel::SquaredExponential,
            measure::Gaussian,
            surrogate::Surrogate,
            warp::{Model, Process},
        },
        numeric::{jets::Order, linalg::Jitter},
    };

    const JITTER: Jitter = Jitter { nugget: 1e-10, rungs: 0 };

    fn belief(model: Model) -> Surrogate {
        let nodes = Points::new(1, vec![-1.5, -0.4, 0.1, 0.9, 2.0]).unwrap();
        let logs: Vec<f64> = nodes.rows().map(|x| -(x[0] - 0.3).powi(2) + 0.3 * (5.0 * x[0]).sin()).collect();
        let kernel = SquaredExponential::new(1.2, vec![0.8]).unwrap();
        Surrogate::with_kernel(model, Gaussian::standard(1).unwrap().into(), &nodes, &logs, kernel, JITTER).unwrap()
    }

    /// The same process with other values, or with fewer nodes.
    fn changed(belief: &Surrogate, kept: &[usize], targets: Vec<f64>) -> Gp {
        let rows: Vec<&[f64]> = kept.iter().map(|&j| belief.gp().nodes().row(j)).collect();
        Gp::new(belief.gp().kernel().clone(), Points::from_rows(&rows).unwrap(), targets, JITTER).unwrap()
    }

    /// `belief` without node `i`.
    fn without(belief: &Surrogate, i: usize) -> Gp {
        let others: Vec<usize> = (0..5).filter(|j| *j != i).collect();
        changed(belief, &others, others.iter().map(|&j| belief.gp().targets()[j]).collect())
    }

    /// The mean of `Z` that `belief` would have with another process.
    fn refit(belief: &Surrogate, gp: &Gp) -> f64 {
        let process = Process { gp, measure: belief.measure(), alpha: belief.alpha() };
        belief.model().warp().estimate(process, 0.0).unwrap().mean
    }

    #[test]
    fn residuals_are_those_of_refitting_without_the_node() {
        let belief = belief(Model::WsabiL);
        for (i, found) in belief.residuals().iter().enumerate() {
            let at = Points::from_rows(&[belief.gp().nodes().row(i)]).unwrap();
            let p = without(&belief, i).predict(&at, Order::Value).unwrap();
            // The node's own jitter is part of its variance.
            let sd = (p.variance[0] + 1e-10 * 1.2).sqrt();
            assert!(
                (found.predicted - p.mean[0]).abs() < 1e-9 && (found.sd / sd - 1.0).abs() < 1e-9,
                "{found:?} {p:?}"
            );
            assert!((found.standardised - (belief.gp().targets()[i] - p.mean[0]) / sd).abs() < 1e-8);
        }
    }

    #[test]
    fn the_jackknife_of_a_plain_process_is_that_of_refits() {
        let belief = belief(Model::Plain);
        let mean = belief.estimate().unwrap().mean;
        let moved = |i| mean - refit(&belief, &without(&belief, i));
        let refits = (0..5).map(|i| moved(i).powi(2)).sum::<f64>().sqrt();
        let found = belief.jackknife(&belief.residuals()).unwrap();
        assert!((found / refits - 1.0).abs() < 1e-9, "{found} {refits}");
    }

    #[test]
    fn the_jackknife_of_a_warped_process_is_the_slope_towards_refits() {
        let belief = belief(Model::WsabiL);
        let residuals = belief.residuals();
        // Without its own value, a node has the one that the others predict.
        let slope = |i: usize| {
            let towards = |step: f64| {
                let mut targets = belief.gp().targets().to_vec();
                targets[i] += step * (residuals[i].predicted - residuals[i].value);
                let gp = changed(&belief, &[0, 1, 2, 3, 4], targets);
                refit(&belief, &gp)
            };
            // Exact for a quadratic.
            (towards(1e-2) - towards(-1e-2)) / 2e-2
        };
        let slopes = (0..5).map(|i| slope(i).powi(2)).sum::<f64>().sqrt();
        let found = belief.jackknife(&residuals).unwrap();
        assert!((found / slopes - 1.0).abs() < 1e-8, "{found} {slopes}");
    }
}
