//! Leave-one-out residuals in closed form.

use serde::Serialize;

use crate::surrogate::Surrogate;

/// A node as all the others predict it, on the scale of the Gaussian process (the square root of the likelihood, or itself).
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

/// `gᵢ − m₋ᵢ(xᵢ) = wᵢ/[K⁻¹]ᵢᵢ` with variance `1/[K⁻¹]ᵢᵢ`, so the standardised residual is `wᵢ/√[K⁻¹]ᵢᵢ`. Cost: `2n³/3`.
pub(super) fn leave_one_out(belief: &Surrogate) -> Vec<Residual> {
    let gp = belief.gp();
    let inverse = gp.factor().inverse_lower();
    gp.weights()
        .iter()
        .zip(gp.targets())
        .enumerate()
        .map(|(i, (w, g))| {
            let precision = inverse.get(i, i);
            let standardised = w / precision.sqrt();
            Residual { value: *g, predicted: g - w / precision, sd: precision.sqrt().recip(), standardised }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Points,
        gp::{Gp, Order},
        kernel::SquaredExponential,
        linalg::Jitter,
        measure::Gaussian,
        warp::Model,
    };

    #[test]
    fn residuals_are_those_of_refitting_without_the_node() {
        let nodes = Points::new(1, vec![-1.5, -0.4, 0.1, 0.9, 2.0]).unwrap();
        let logs: Vec<f64> = nodes.rows().map(|x| -(x[0] - 0.3).powi(2) + 0.3 * (5.0 * x[0]).sin()).collect();
        let kernel = SquaredExponential::new(1.2, vec![0.8]).unwrap();
        let jitter = Jitter { nugget: 1e-10, rungs: 0 };
        let measure = Gaussian::standard(1).unwrap().into();
        let belief = Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &logs, kernel.clone(), jitter).unwrap();
        let targets = belief.gp().targets();
        for (i, found) in leave_one_out(&belief).iter().enumerate() {
            let others: Vec<usize> = (0..5).filter(|j| *j != i).collect();
            let rest = Points::from_rows(&others.iter().map(|&j| nodes.row(j)).collect::<Vec<_>>()).unwrap();
            let gp = Gp::new(kernel.clone(), rest, others.iter().map(|&j| targets[j]).collect(), jitter).unwrap();
            let p = gp.predict(&Points::from_rows(&[nodes.row(i)]).unwrap(), Order::Value).unwrap();
            // The node's own jitter is part of its variance.
            let sd = (p.variance[0] + 1e-10 * 1.2).sqrt();
            assert!(
                (found.predicted - p.mean[0]).abs() < 1e-9 && (found.sd / sd - 1.0).abs() < 1e-9,
                "{found:?} {p:?}"
            );
            assert!((found.standardised - (targets[i] - p.mean[0]) / sd).abs() < 1e-8);
        }
    }
}
