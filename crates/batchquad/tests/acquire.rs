//! Acquisition functions: their definitions and their derivatives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Points,
    belief::{Gaussian, Mixture, Model, SquaredExponential, Surrogate},
    choose::{Acquisition, AcquisitionKind, Criterion, MeanIntegrand, Uncertainty, VarianceReduction},
    numeric::{Jitter, Order},
};
use proptest::prelude::*;

const MODELS: [Model; 3] = [Model::Plain, Model::WsabiL, Model::WsabiM];

fn belief(model: Model, d: usize, n: usize, mixed: bool) -> Surrogate {
    belief_with(model, d, n, mixed, 1e-8)
}

fn belief_with(model: Model, d: usize, n: usize, mixed: bool, nugget: f64) -> Surrogate {
    let nodes =
        Points::new(d, (0..n * d).map(|i| 1.7 * ((i * i + 2 * i) as f64 * 0.731 + 0.2).sin()).collect()).unwrap();
    let logs: Vec<f64> = nodes.rows().map(|x| -0.7 * x.iter().map(|v| (v - 0.4).powi(2)).sum::<f64>()).collect();
    let kernel = SquaredExponential::new(0.9, (0..d).map(|a| 0.6 + 0.2 * a as f64).collect()).unwrap();
    let standard = Gaussian::standard(d).unwrap();
    let measure = if mixed {
        let other = Gaussian::diagonal(vec![0.5; d], &vec![0.4; d]).unwrap();
        Mixture::new(vec![(0.3, standard), (0.7, other)]).unwrap()
    } else {
        standard.into()
    };
    Surrogate::with_kernel(model, measure.into(), &nodes, &logs, kernel, Jitter { nugget, rungs: 3 }).unwrap()
}

fn check_derivatives(a: &dyn Acquisition, x: &[f64]) -> Result<(), TestCaseError> {
    let d = x.len();
    let here = a.log_jets(&Points::new(d, x.to_vec()).unwrap(), Order::Hessian).unwrap();
    let h = 1e-5;
    for k in 0..d {
        let moved = |s: f64| {
            let mut y = x.to_vec();
            y[k] += s;
            a.log_jets(&Points::new(d, y).unwrap(), Order::Gradient).unwrap()
        };
        let (up, down) = (moved(h), moved(-h));
        // Third derivatives of a logarithm grow like the cube of the gradient near zeros.
        let steep = here.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
        let close = |exact: f64, up: f64, down: f64| {
            (exact - (up - down) / (2.0 * h)).abs() < 1e-5 * steep.powi(3) * (1.0 + exact.abs())
        };
        prop_assert!(close(here.gradient[k], up.value[0], down.value[0]), "{:?} {k}", here.gradient);
        for b in 0..d {
            prop_assert!(close(here.hessian[k * d + b], up.gradient[b], down.gradient[b]));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn derivatives_agree_with_central_differences(
        d in 1usize..4, n in 3usize..20, mixed in any::<bool>(), which in 0usize..3, at in prop::collection::vec(-2.0..2.0f64, 4)
    ) {
        // The jitter keeps variances above 10⁻³, so that differences of their logarithms are not rounding.
        let belief = belief_with(MODELS[which], d, n, mixed, 1e-3);
        check_derivatives(&Uncertainty::new(&belief), &at[..d])?;
        check_derivatives(&VarianceReduction::new(&belief).unwrap(), &at[..d])?;
        if MODELS[which] != Model::Plain {
            check_derivatives(&MeanIntegrand::new(&belief), &at[..d])?;
        }
    }
}

#[test]
fn uncertainty_is_the_squared_density_times_the_variance() {
    for model in MODELS {
        let belief = belief(model, 2, 9, true);
        let x = Points::new(2, vec![0.3, -0.8, 1.9, 0.1]).unwrap();
        let jets = Uncertainty::new(&belief).log_jets(&x, Order::Value).unwrap();
        for (i, (_, variance)) in belief.moments(&x).unwrap().into_iter().enumerate() {
            let expected = 2.0 * belief.measure().log_density(x.row(i)) + variance.ln();
            assert!((jets.value[i] - expected).abs() < 1e-12, "{model:?}");
        }
        assert!(jets.gradient.is_empty() && jets.hessian.is_empty());
    }
}

/// The promised reduction is what conditioning on any value at that point takes off the integral's variance.
#[test]
fn variance_reduction_is_what_conditioning_achieves() {
    for (model, mixed) in [(Model::Plain, false), (Model::Plain, true), (Model::WsabiL, false), (Model::WsabiL, true)] {
        let belief = belief(model, 2, 9, mixed);
        let x = Points::new(2, vec![0.35, -0.6]).unwrap();
        let promised = VarianceReduction::new(&belief).unwrap().log_jets(&x, Order::Value).unwrap().value[0].exp();
        // g takes its own mean there, so that m does not move and V[Z] is comparable.
        let mean = belief.gp().predict(&x, Order::Value).unwrap().mean;
        let after = belief.condition(&x, &mean).unwrap();
        let achieved = belief.estimate().unwrap().variance - after.estimate().unwrap().variance;
        // The jitter on the new node (1e-8 σ²) is not part of the formula.
        assert!((promised - achieved).abs() < 1e-5 * promised, "{model:?} {promised} {achieved}");
    }
}

#[test]
fn kinds_name_the_acquisitions() {
    let belief = belief(Model::WsabiL, 1, 5, false);
    let x = Points::new(1, vec![0.3]).unwrap();
    for kind in [AcquisitionKind::Uncertainty, AcquisitionKind::VarianceReduction] {
        assert!(kind.of(&belief).unwrap().log_jets(&x, Order::Gradient).unwrap().value[0].is_finite());
    }
    assert!(Uncertainty::new(&belief).log_jets(&Points::new(2, vec![0.0; 2]).unwrap(), Order::Value).is_err());
}
