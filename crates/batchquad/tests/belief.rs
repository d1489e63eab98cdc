//! Beliefs about the evidence: against another implementation, against brute force, and their invariances.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use batchquad::{
    Error, Points,
    belief::{
        ALPHA_SHARE, FitOptions, Gaussian, Kernel, Mixture, Model, SquaredExponential, Surrogate, bq,
        log_marginal_likelihood,
    },
    numeric::{Factor, Jitter, Order},
};
use common::{assert_close, normal_trapezoid, tensor_for_mixture};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    nodes: Vec<Vec<f64>>,
    values: Vec<f64>,
    queries: Vec<Vec<f64>>,
    measure_mean: Vec<f64>,
    measure_variance: Vec<f64>,
    lengthscales: Vec<f64>,
    kernel_variance: f64,
    diagonal: f64,
    noise: f64,
    alpha: f64,
    emukit: Emukit,
    mpmath: Mpmath,
}

#[derive(Deserialize)]
struct Emukit {
    kernel_mean: Vec<f64>,
    initial_variance: f64,
    plain_mean: f64,
    plain_variance: f64,
    wsabi_l_mean: f64,
    base_mean: Vec<f64>,
    base_variance: Vec<f64>,
    log_marginal: f64,
}

#[derive(Deserialize)]
struct Mpmath {
    plain_mean: f64,
    plain_variance: f64,
    wsabi_l_mean: f64,
    wsabi_l_variance: f64,
    wsabi_m_mean: f64,
    wsabi_m_variance: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("data/emukit_reference.json")).unwrap()
}

/// Agreed to 10⁻⁸ with emukit 0.5.1, and to 10⁻⁹ with the same formulas in 40 digits (condition numbers are below 10³, and the
/// variances cancel a few digits). See `data/emukit_reference.py`.
#[test]
fn agrees_with_emukit_and_with_forty_digits() {
    use batchquad::belief::Embed;
    let cases = reference().cases;
    assert!(cases.len() >= 8);
    let mut warped = 0;
    for case in cases {
        let name = &case.name;
        let nodes = Points::from_rows(&case.nodes).unwrap();
        let measure = Gaussian::diagonal(case.measure_mean.clone(), &case.measure_variance).unwrap();
        let kernel = SquaredExponential::new(case.kernel_variance, case.lengthscales.clone()).unwrap();
        let jitter = Jitter { nugget: case.diagonal / case.kernel_variance, rungs: 0 };
        for (ours, theirs) in kernel.mean(&measure, &nodes).unwrap().iter().zip(&case.emukit.kernel_mean) {
            assert_close(name, *ours, *theirs, 1e-8);
        }
        assert_close(name, kernel.variance(&measure).unwrap(), case.emukit.initial_variance, 1e-8);
        let plain = bq::integrate(&kernel, &measure, &nodes, &case.values, jitter).unwrap();
        assert_close(name, plain.mean, case.emukit.plain_mean, 1e-8);
        assert_close(name, plain.variance, case.emukit.plain_variance, 1e-8);

        // Our beliefs are scaled by the largest value, which only changes units.
        let largest = case.values.iter().copied().fold(0.0, f64::max);
        let logs: Vec<f64> = case.values.iter().map(|v| v.ln()).collect();
        let belief = |model: Model, power: i32| {
            let kernel =
                SquaredExponential::new(case.kernel_variance / largest.powi(power), case.lengthscales.clone()).unwrap();
            Surrogate::with_kernel(model, measure.clone().into(), &nodes, &logs, kernel, jitter).unwrap()
        };
        let e = belief(Model::Plain, 2).estimate().unwrap();
        assert_close(name, e.mean * largest, case.mpmath.plain_mean, 1e-9);
        assert_close(name, e.variance * largest.powi(2), case.mpmath.plain_variance, 1e-9);
        let smallest = case.values.iter().copied().fold(f64::INFINITY, f64::min);
        if (case.alpha - ALPHA_SHARE * smallest).abs() > 1e-12 {
            continue;
        }
        warped += 1;
        let l = belief(Model::WsabiL, 1);
        let e = l.estimate().unwrap();
        assert_close(name, e.mean * largest, case.emukit.wsabi_l_mean, 1e-8);
        assert_close(name, e.mean * largest, case.mpmath.wsabi_l_mean, 1e-9);
        assert_close(name, e.variance * largest.powi(2), case.mpmath.wsabi_l_variance, 1e-9);
        assert_close(name, e.log_z, e.mean.ln() + largest.ln(), 1e-14);
        let e = l.estimate_as(Model::WsabiM).unwrap();
        assert_close(name, e.mean * largest, case.mpmath.wsabi_m_mean, 1e-9);
        assert_close(name, e.variance * largest.powi(2), case.mpmath.wsabi_m_variance, 1e-9);
        let p = l.gp().predict(&Points::from_rows(&case.queries).unwrap(), Order::Value).unwrap();
        for (i, (m, v)) in case.emukit.base_mean.iter().zip(&case.emukit.base_variance).enumerate() {
            assert_close(name, p.mean[i] * largest.sqrt(), *m, 1e-8);
            assert_close(name, p.variance[i] * largest, v - case.noise, 1e-8);
        }
        let roots: Vec<f64> = case.values.iter().map(|v| (2.0 * (v - case.alpha)).sqrt()).collect();
        let evidence = log_marginal_likelihood(&kernel, &nodes, &roots, jitter).unwrap();
        assert_close(name, evidence.value, case.emukit.log_marginal, 1e-8);
    }
    assert!(warped >= 8);
}

/// `E = ∫ mean dμ` and `V = ∬ cov dμdμ` by brute force, for a Gaussian and a mixture, in one and two dimensions.
#[test]
fn moments_are_the_integrals_of_the_pointwise_beliefs() {
    for d in 1..=2 {
        // An additive recurrence keeps the nodes apart, so that the weights stay of order one and rounding stays at ε.
        let step = [[0.618_033_988_75, 0.0], [0.754_877_666_25, 0.569_840_290_99]][d - 1];
        let nodes =
            Points::new(d, (0..8 * d).map(|i| 4.0 * ((i / d) as f64 * step[i % d]).fract() - 2.0).collect()).unwrap();
        let logs: Vec<f64> =
            nodes.rows().map(|x| -0.4 * x.iter().map(|v| (v - 0.3).powi(2)).sum::<f64>() - 3.0).collect();
        let kernel = SquaredExponential::new(0.8, vec![0.5; d]).unwrap();
        let jitter = Jitter { nugget: 1e-6, rungs: 0 };
        let wide = Gaussian::standard(d).unwrap();
        let narrow = Gaussian::diagonal(vec![0.4; d], &vec![0.3; d]).unwrap();
        for measure in [Mixture::from(wide.clone()), Mixture::new(vec![(0.6, wide), (0.4, narrow)]).unwrap()] {
            let rule = tensor_for_mixture(&normal_trapezoid([0.05, 0.22][d - 1]), &measure);
            let rule: Vec<_> = rule.into_iter().filter(|(_, w)| *w > 1e-16).collect();
            let points = Points::from_rows(&rule.iter().map(|(x, _)| x.clone()).collect::<Vec<_>>()).unwrap();
            let belief = |model| {
                Surrogate::with_kernel(model, measure.clone().into(), &nodes, &logs, kernel.clone(), jitter).unwrap()
            };
            let gram = kernel.gram(&nodes, &nodes).unwrap();
            let factor = Factor::new(|| gram.clone(), kernel.sigma2(), jitter).unwrap();
            let mut half = kernel.gram(&nodes, &points).unwrap();
            factor.half_solve(&mut half);
            let covariance = |i: usize, j: usize| {
                let dot: f64 = half.col(i).iter().zip(half.col(j)).map(|(a, b)| a * b).sum();
                kernel.value(points.row(i), points.row(j)) - dot
            };
            let l = belief(Model::WsabiL);
            let m = l.gp().predict(&points, Order::Value).unwrap().mean;
            let p = belief(Model::Plain).gp().predict(&points, Order::Value).unwrap().mean;
            // (E, V) of plain, WSABI-L and WSABI-M.
            let mut brute = [[0.0; 2]; 3];
            for i in 0..points.len() {
                let w = rule[i].1;
                brute[0][0] += w * p[i];
                brute[1][0] += w * (l.alpha() + 0.5 * m[i] * m[i]);
                brute[2][0] += w * (l.alpha() + 0.5 * (m[i] * m[i] + covariance(i, i)));
                for j in 0..points.len() {
                    let (c, w) = (covariance(i, j), w * rule[j].1);
                    brute[0][1] += w * c;
                    brute[1][1] += w * m[i] * c * m[j];
                    brute[2][1] += w * (m[i] * c * m[j] + 0.5 * c * c);
                }
            }
            let closed = [
                belief(Model::Plain).estimate().unwrap(),
                l.estimate().unwrap(),
                l.estimate_as(Model::WsabiM).unwrap(),
            ];
            for (e, brute) in closed.iter().zip(brute) {
                // The variances are differences of terms up to 10³ times larger.
                assert_close("E", e.mean, brute[0], 1e-11);
                assert_close("V", e.variance, brute[1], 1e-9);
            }
        }
    }
}

fn line(n: usize) -> (Points, Vec<f64>) {
    let nodes = Points::new(1, (0..n).map(|i| -3.0 + 6.0 * i as f64 / (n - 1) as f64).collect()).unwrap();
    let logs = nodes.rows().map(|x| -2.0 * (x[0] - 0.5).powi(2)).collect();
    (nodes, logs)
}

fn standard() -> Mixture {
    Gaussian::standard(1).unwrap().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_constant_added_to_the_log_likelihood_moves_log_z_by_it(c in -1e6..1e6f64) {
        // Nodes at thirds, so that adding the constant rounds; few enough that the variance is no rounding itself.
        let (nodes, logs) = line(10);
        let moved: Vec<f64> = logs.iter().map(|l| l + c).collect();
        for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
            let at = |logs: &[f64]| {
                Surrogate::fit(model, standard().into(), &nodes, logs, &FitOptions::default(), None).unwrap().estimate().unwrap()
            };
            let (a, b) = (at(&logs), at(&moved));
            prop_assert!((b.log_z - a.log_z - c).abs() <= 1e-9 * c.abs().max(1.0), "{} {} {c}", a.log_z, b.log_z);
            prop_assert!((b.log_z_sd - a.log_z_sd).abs() < 1e-6);
        }
    }

    /// Whatever is thrown at it, a belief is formed or a typed error names the trouble; nothing panics and no NaN comes out.
    #[test]
    fn hostile_input_gives_an_error_or_a_number(
        d in 0usize..4,
        coordinates in prop::collection::vec(prop_oneof![
            -5.0..5.0f64, Just(0.0), Just(1e-300), Just(1e300), Just(-1e12), Just(f64::NAN), Just(f64::INFINITY)
        ], 0..24),
        logs in prop::collection::vec(prop_oneof![
            4 => -50.0..5.0f64, 1 => Just(f64::NEG_INFINITY), 1 => Just(-1e300), 1 => Just(1e300), 1 => Just(0.0),
            1 => Just(f64::NAN), 1 => Just(f64::INFINITY)
        ], 0..24),
        model in prop_oneof![Just(Model::Plain), Just(Model::WsabiL), Just(Model::WsabiM)],
    ) {
        let built = Points::new(d, coordinates.clone()).and_then(|nodes| {
            let measure = Gaussian::standard(d)?.into();
            let logs = &logs[..logs.len().min(nodes.len())];
            Surrogate::fit(model, measure, &nodes, logs, &FitOptions::default(), None)?.estimate()
        });
        match built {
            Ok(e) => prop_assert!(!e.log_z.is_nan() && !e.log_z_sd.is_nan() && e.variance >= 0.0, "{e:?}"),
            Err(e) => prop_assert!(!e.to_string().is_empty()),
        }
    }
}

#[test]
fn zero_likelihoods_are_legal_and_nothing_else_is() {
    let (nodes, mut logs) = line(13);
    logs[0] = f64::NEG_INFINITY;
    logs[12] = f64::NEG_INFINITY;
    let fit =
        |logs: &[f64]| Surrogate::fit(Model::WsabiL, standard().into(), &nodes, logs, &FitOptions::default(), None);
    let belief = fit(&logs).unwrap();
    assert_eq!(belief.alpha(), 0.0);
    // ∫ exp(−2(x−½)²) N(x; 0, 1) dx = exp(−2·¼/5)/√5.
    let truth = -0.1 - 0.5 * 5.0_f64.ln();
    assert!((belief.estimate().unwrap().log_z - truth).abs() < 0.02, "{:?}", belief.estimate());
    logs[3] = f64::NAN;
    match fit(&logs) {
        Err(Error::NonFiniteValue { index: 3, point, .. }) => assert_eq!(point, nodes.row(3)),
        other => panic!("{other:?}"),
    }
    logs[3] = f64::INFINITY;
    assert!(fit(&logs).is_err());
    assert!(matches!(fit(&[f64::NEG_INFINITY; 13]), Err(Error::NoFiniteValue { count: 13 })));
    assert!(matches!(fit(&logs[..5]), Err(Error::Length { .. })));
}

#[test]
fn a_plain_belief_that_is_not_positive_reports_no_evidence() {
    // Alternating heights drive the plain mean below zero between the nodes when the lengthscale is forced to be long.
    let nodes = Points::new(1, vec![-0.2, 0.0, 0.2]).unwrap();
    let logs = [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY];
    let kernel = SquaredExponential::isotropic(1.0, 3.0, 1).unwrap();
    let belief =
        Surrogate::with_kernel(Model::Plain, standard().into(), &nodes, &logs, kernel, Jitter::default()).unwrap();
    let e = belief.estimate().unwrap();
    assert!(e.mean < 0.0);
    assert_eq!((e.log_z, e.log_z_sd), (f64::NEG_INFINITY, f64::INFINITY));
    assert!(belief.estimate_as(Model::WsabiL).is_err());
}

#[test]
fn the_order_of_the_nodes_does_not_matter() {
    let (nodes, logs) = line(13);
    let order: Vec<usize> = (0..13).map(|i| (i * 5 + 3) % 13).collect();
    let shuffled = Points::from_rows(&order.iter().map(|&i| nodes.row(i)).collect::<Vec<_>>()).unwrap();
    let shuffled_logs: Vec<f64> = order.iter().map(|&i| logs[i]).collect();
    let kernel = SquaredExponential::isotropic(1.0, 0.8, 1).unwrap();
    for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
        let at = |x: &Points, l: &[f64]| {
            let jitter = Jitter::default();
            Surrogate::with_kernel(model, standard().into(), x, l, kernel.clone(), jitter).unwrap().estimate().unwrap()
        };
        let (a, b) = (at(&nodes, &logs), at(&shuffled, &shuffled_logs));
        // n·ε times the condition number of about 10³.
        assert!((a.mean - b.mean).abs() < 1e-11 && (a.variance - b.variance).abs() < 1e-11);
    }
}

/// With the Brownian kernel on [0, 1] the estimate is the trapezoid rule.
#[test]
fn brownian_quadrature_is_the_trapezoid_rule() {
    use batchquad::belief::{Brownian, UniformBox};
    let x = [0.0, 0.07, 0.2, 0.31, 0.5, 0.55, 0.8, 1.0];
    let f: Vec<f64> = x.iter().map(|x: &f64| (3.0 * x).sin() + 2.0).collect();
    let trapezoid: f64 = (1..x.len()).map(|i| 0.5 * (x[i] - x[i - 1]) * (f[i] + f[i - 1])).sum();
    let kernel = Brownian::new(1.0, vec![-1.0]).unwrap();
    let measure = UniformBox::new(vec![0.0], vec![1.0]).unwrap();
    let nodes = Points::new(1, x.to_vec()).unwrap();
    let belief = bq::integrate(&kernel, &measure, &nodes, &f, Jitter { nugget: 0.0, rungs: 0 }).unwrap();
    assert!((belief.mean - trapezoid).abs() < 1e-12);
    let variance: f64 = (1..x.len()).map(|i| (x[i] - x[i - 1]).powi(3) / 12.0).sum();
    assert!((belief.variance - variance).abs() < 1e-12);
}

/// New values that agree leave the lengthscales as they were, and σ² is that of all values; one that does not calls for a search.
#[test]
fn lengthscales_are_kept_until_a_value_surprises() {
    let all = Points::new(1, (0..24).map(|i| -3.0 + 0.25 * f64::from((7 * i) % 24)).collect()).unwrap();
    let logs: Vec<f64> = all.rows().map(|x| -0.5 * x[0] * x[0] + 0.3 * (5.0 * x[0]).sin()).collect();
    let measure = || Gaussian::standard(1).unwrap().into();
    let some = Points::new(1, all.as_slice()[..20].to_vec()).unwrap();
    let options = FitOptions::default();
    let before = Surrogate::fit(Model::WsabiL, measure(), &some, &logs[..20], &options, None).unwrap();
    let how = (before.lengthscales(), options.jitter);
    let kept = Surrogate::kept(Model::WsabiL, measure(), &all, &logs, how, 4).unwrap().unwrap();
    assert_eq!(kept.lengthscales(), before.lengthscales());
    assert_ne!(kept.kernel().sigma2(), before.kernel().sigma2());
    let again =
        Surrogate::with_kernel(Model::WsabiL, measure(), &all, &logs, kept.kernel().clone(), options.jitter).unwrap();
    assert_eq!(kept.estimate().unwrap(), again.estimate().unwrap());
    // Two nats at one of the last four.
    let mut odd = logs.clone();
    odd[22] += 2.0;
    assert!(Surrogate::kept(Model::WsabiL, measure(), &all, &odd, how, 4).unwrap().is_none());
    // What is not new does not surprise any more.
    assert!(Surrogate::kept(Model::WsabiL, measure(), &all, &odd, how, 0).unwrap().is_some());
}
