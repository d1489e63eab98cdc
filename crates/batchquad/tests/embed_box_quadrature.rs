//! Bayesian quadrature on a box: the trapezoid rule, kernels as covariances, hostile input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Error, Points,
    belief::{Brownian, Embed, Kernel, Matern, Smoothness, SquaredExponential, UniformBox},
};
use proptest::prelude::*;

const SMOOTHNESSES: [Smoothness; 3] = [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves];

// ---------------------------------------------------------------------------------------------------------------------
// Bayesian quadrature

/// `K⁻¹ b` by a plain Cholesky factorisation, or `None` when K is not positive definite.
fn solve(n: usize, k: impl Fn(usize, usize) -> f64, b: &[f64]) -> Option<Vec<f64>> {
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let rest = k(i, j) - (0..j).map(|m| l[i][m] * l[j][m]).sum::<f64>();
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
        if l[i][i].is_nan() || l[i][i] == 0.0 {
            return None;
        }
    }
    let mut x = b.to_vec();
    for i in 0..n {
        x[i] = (x[i] - (0..i).map(|m| l[i][m] * x[m]).sum::<f64>()) / l[i][i];
    }
    for i in (0..n).rev() {
        x[i] = (x[i] - (i + 1..n).map(|m| l[m][i] * x[m]).sum::<f64>()) / l[i][i];
    }
    Some(x)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Quadrature weights `K⁻¹z` and the variance `∬k − zᵀK⁻¹z`.
fn quadrature<K: Embed<UniformBox>>(kernel: &K, measure: &UniformBox, nodes: &Points) -> (Vec<f64>, f64) {
    let (z, gram) = (kernel.mean(measure, nodes).unwrap(), kernel.gram(nodes, nodes).unwrap());
    let weights = solve(nodes.len(), |i, j| gram.get(i, j), &z).unwrap();
    let variance = kernel.variance(measure).unwrap() - dot(&z, &weights);
    (weights, variance)
}

/// The weights of the trapezoid rule, for an average over the interval.
fn trapezoid(x: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; x.len()];
    let width = x[x.len() - 1] - x[0];
    for i in 1..x.len() {
        let half = 0.5 * (x[i] - x[i - 1]) / width;
        weights[i - 1] += half;
        weights[i] += half;
    }
    weights
}

/// The weights sum to at most 1 and the solve's rounding is relative to that sum (times the condition of K, up to about 1e5 here).
fn assert_weights(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= 1e-12, "weight {f:e}, expected {e:e}");
    }
}

const UNEVEN: [f64; 11] = [0.0, 0.03, 0.1, 0.11, 0.27, 0.31, 0.5, 0.52, 0.7, 0.93, 1.0];

#[test]
fn brownian_quadrature_is_the_trapezoid_rule() {
    for (low, high) in [(0.0, 1.0), (-3.0, 4.5)] {
        let nodes: Vec<f64> = UNEVEN.iter().map(|t| low + (high - low) * t).collect();
        let values: Vec<f64> = nodes.iter().map(|x| (3.0 * x).sin() + x.exp()).collect();
        let measure = UniformBox::new(vec![low], vec![high]).unwrap();
        for (sigma2, offset) in [(1.0, 1.0), (0.01, 0.1), (250.0, 7.0)] {
            let kernel = Brownian::new(sigma2, vec![low - offset]).unwrap();
            let (weights, variance) = quadrature(&kernel, &measure, &Points::new(1, nodes.clone()).unwrap());
            assert_weights(&weights, &trapezoid(&nodes));
            let (found, expected) = (dot(&weights, &values), dot(&trapezoid(&nodes), &values));
            assert!((found / expected - 1.0).abs() <= 1e-12, "estimate {found:e}, expected {expected:e}");
            let bridges: f64 = nodes.windows(2).map(|x| (x[1] - x[0]).powi(3) / 12.0).sum();
            let expected = sigma2 * bridges / (high - low).powi(2);
            // The variance is a difference of terms of the size of the prior's: they set the rounding.
            let prior = kernel.variance(&measure).unwrap();
            assert!((variance - expected).abs() <= 1e-14 * prior, "{variance:e}, expected {expected:e}");
        }
    }
}

#[test]
fn brownian_quadrature_from_a_pinned_start_is_the_trapezoid_rule_with_a_zero() {
    let kernel = Brownian::new(1.0, vec![0.0]).unwrap();
    let measure = UniformBox::new(vec![0.0], vec![1.0]).unwrap();
    let (weights, _) = quadrature(&kernel, &measure, &Points::new(1, UNEVEN[1..].to_vec()).unwrap());
    assert_weights(&weights, &trapezoid(&UNEVEN)[1..]);
}

#[test]
fn brownian_quadrature_on_a_grid_is_the_product_trapezoid_rule() {
    let (x, y) = (&[0.0, 0.2, 0.7, 1.0], &[-1.0, 0.5, 2.0]);
    let rows: Vec<_> = x.iter().flat_map(|&x| y.iter().map(move |&y| [x, y])).collect();
    let kernel = Brownian::new(3.0, vec![-0.5, -2.0]).unwrap();
    let measure = UniformBox::new(vec![0.0, -1.0], vec![1.0, 2.0]).unwrap();
    let (weights, _) = quadrature(&kernel, &measure, &Points::from_rows(&rows).unwrap());
    let expected: Vec<f64> =
        trapezoid(x).into_iter().flat_map(|a| trapezoid(y).into_iter().map(move |b| a * b)).collect();
    assert_weights(&weights, &expected);
}

// ---------------------------------------------------------------------------------------------------------------------
// Properties

const LOW: [f64; 3] = [-0.5, 2.0, -4.0];
const HIGH: [f64; 3] = [1.25, 2.5, -1.0];

fn check_covariance<K: Embed<UniformBox>>(kernel: &K, points: &Points) -> Result<(), TestCaseError> {
    let measure = UniformBox::new(LOW[..kernel.dim()].to_vec(), HIGH[..kernel.dim()].to_vec()).unwrap();
    let n = points.len();
    let gram = kernel.gram(points, points).unwrap();
    for i in 0..n {
        for j in 0..i {
            prop_assert_eq!(gram.get(i, j).to_bits(), gram.get(j, i).to_bits());
        }
    }
    // The integral is one more variable of the same process: the joint matrix of values and integral has to be positive
    // semi-definite too. Rounding perturbs its eigenvalues by n·ε·trace.
    let (z, v) = (kernel.mean(&measure, points).unwrap(), kernel.variance(&measure).unwrap());
    let joint = |i: usize, j: usize| match (i.max(j), i.min(j)) {
        (a, b) if a < n => gram.get(a, b),
        (_, b) if b < n => z[b],
        _ => v,
    };
    let trace: f64 = (0..=n).map(|i| joint(i, i)).sum();
    let slack = 1e-13 * trace + f64::MIN_POSITIVE;
    let factored = solve(n + 1, |i, j| joint(i, j) + if i == j { slack } else { 0.0 }, &vec![0.0; n + 1]);
    prop_assert!(factored.is_some(), "not positive semi-definite");
    Ok(())
}

/// A number of any magnitude, or none at all.
fn hostile() -> impl Strategy<Value = f64> {
    prop_oneof![proptest::num::f64::ANY, -1e3..1e3, Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX)]
}

fn require_named(error: &Error, value: f64) -> Result<(), TestCaseError> {
    prop_assert!(error.to_string().contains(&format!("{value:?}")), "{} does not name {:?}", error, value);
    Ok(())
}

/// A box whose width in lengthscales is a subnormal number.
#[test]
fn a_box_of_no_width_in_lengthscales_is_a_point() {
    let measure = UniformBox::new(vec![0.0], vec![1.41e-308]).unwrap();
    let kernel = SquaredExponential::new(1.0, vec![803.0]).unwrap();
    assert_eq!(kernel.variance(&measure).unwrap(), 1.0);
    let wide = UniformBox::new(vec![0.0], vec![2e-9]).unwrap();
    let kernel = SquaredExponential::new(1.0, vec![1.0]).unwrap();
    assert!((kernel.variance(&wide).unwrap() - 1.0).abs() < 1e-15);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kernels_are_covariances(
        dim in 1_usize..=3,
        coordinates in prop::collection::vec(-6.0..6.0, 24),
        exponents in prop::array::uniform3(-3.0..3.0_f64),
        log_sigma2 in -6.0..6.0_f64,
    ) {
        let points = Points::new(dim, coordinates).unwrap();
        let lengthscales: Vec<f64> = exponents[..dim].iter().map(|e| 10_f64.powf(*e)).collect();
        let start: Vec<f64> = (0..dim).map(|j| LOW[j] + exponents[j]).collect();
        let sigma2 = 10_f64.powf(log_sigma2);
        check_covariance(&SquaredExponential::new(sigma2, lengthscales.clone()).unwrap(), &points)?;
        for smoothness in SMOOTHNESSES {
            check_covariance(&Matern::new(smoothness, sigma2, lengthscales.clone()).unwrap(), &points)?;
        }
        check_covariance(&Brownian::new(sigma2, start).unwrap(), &points)?;
    }

    #[test]
    fn hostile_hyperparameters_are_refused_by_name(sigma2 in hostile(), length in hostile()) {
        let legal = |v: f64| v.is_finite() && v > 0.0;
        let refused = if legal(sigma2) { length } else { sigma2 };
        for smoothness in SMOOTHNESSES {
            match Matern::new(smoothness, sigma2, vec![1.0, length]) {
                Ok(_) => prop_assert!(legal(sigma2) && legal(length)),
                Err(error) => { prop_assert!(!legal(refused)); require_named(&error, refused)?; }
            }
        }
        match Brownian::new(sigma2, vec![1.0, length]) {
            Ok(_) => prop_assert!(legal(sigma2) && length.is_finite()),
            Err(error) => { prop_assert!(!legal(sigma2) || !length.is_finite()); require_named(&error, refused)?; }
        }
    }

    #[test]
    fn hostile_boxes_are_refused_by_name(low in hostile(), high in hostile()) {
        match UniformBox::new(vec![0.0, low], vec![1.0, high]) {
            Ok(_) => prop_assert!(low < high && (high - low).is_finite()),
            Err(error) => {
                prop_assert!(!(low < high && (high - low).is_finite() && low.is_finite()));
                require_named(&error, if low.is_finite() { high } else { low })?;
            }
        }
    }

    #[test]
    fn extreme_but_legal_input_gives_numbers_in_range(
        low in hostile(), high in hostile(), length in hostile(), x in hostile(), y in hostile(),
    ) {
        let Ok(measure) = UniformBox::new(vec![low], vec![high]) else { return Ok(()) };
        let Ok(nodes) = Points::new(1, vec![x, low, high]) else { return Ok(()) };
        let in_range = |v: &f64| (0.0..=1.0 + 1e-13).contains(v);
        if let Ok(kernel) = SquaredExponential::new(1.0, vec![length]) {
            prop_assert!(kernel.mean(&measure, &nodes).unwrap().iter().all(in_range));
            prop_assert!(in_range(&kernel.variance(&measure).unwrap()));
            for smoothness in SMOOTHNESSES {
                let kernel = Matern::new(smoothness, 1.0, vec![length]).unwrap();
                prop_assert!(kernel.mean(&measure, &nodes).unwrap().iter().all(in_range));
                prop_assert!(in_range(&kernel.variance(&measure).unwrap()));
                prop_assert!(y.is_nan() || in_range(&kernel.value(&[x], &[y])));
            }
        }
        if let Ok(kernel) = Brownian::new(1.0, vec![length]) {
            // A process that starts 1e308 away may overflow: an error then, never a number that is not one.
            match kernel.mean(&measure, &nodes) {
                Ok(z) => prop_assert!(z.iter().all(|z| z.is_finite() && *z >= 0.0)),
                Err(error) => prop_assert!(!error.is_recoverable(), "{}", error),
            }
            match kernel.variance(&measure) {
                Ok(v) => prop_assert!(v.is_finite() && v >= 0.0),
                Err(error) => prop_assert!(!error.is_recoverable(), "{}", error),
            }
        }
    }
}
