//! Closed-form integrals of the squared exponential against Gaussians and mixtures, by brute force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use batchquad::{
    Error, Points,
    belief::{Embed, EmbedProducts, Gaussian, Kernel, Mixture, SquaredExponential},
};
use common::{assert_close, gauss_hermite, normal_trapezoid, tensor_for_mixture};

/// The sums over up to a million terms of one sign carry rounding of about `ε √n`; all else is exact to a few ε.
const TOLERANCE: f64 = 1e-12;

fn kernel(d: usize) -> SquaredExponential {
    SquaredExponential::new(1.7, [0.8, 1.3, 0.95][..d].to_vec()).unwrap()
}

fn gaussian(d: usize, shift: f64) -> Gaussian {
    let l = [[0.9, 0.0, 0.0], [0.4, 0.7, 0.0], [-0.3, 0.2, 1.1]];
    let covariance: Vec<Vec<f64>> =
        (0..d).map(|i| (0..d).map(|j| (0..3).map(|k| l[i][k] * l[j][k]).sum()).collect()).collect();
    Gaussian::new((0..d).map(|i| shift + 0.3 * i as f64).collect(), &covariance).unwrap()
}

fn mixture(d: usize) -> Mixture {
    let narrow = Gaussian::diagonal(vec![-0.6; d], &vec![0.3; d]).unwrap();
    Mixture::new(vec![(0.7, gaussian(d, 0.2)), (0.3, narrow)]).unwrap()
}

fn nodes(d: usize) -> Points {
    let flat = (0..4 * d).map(|i| 1.8 * ((i * i) as f64 * 0.77 + 0.3).sin()).collect();
    Points::new(d, flat).unwrap()
}

/// Trapezoid and Gauss–Hermite rules for the same mixture.
fn rules(d: usize, measure: &Mixture) -> Vec<Vec<(Vec<f64>, f64)>> {
    let steps = [1.0 / 8.0, 1.0 / 6.0, 1.0 / 3.8][d - 1];
    let hermite = [120, 90, 56][d - 1];
    vec![tensor_for_mixture(&normal_trapezoid(steps), measure), tensor_for_mixture(&gauss_hermite(hermite), measure)]
}

fn measures(d: usize) -> [Mixture; 2] {
    [gaussian(d, 0.2).into(), mixture(d)]
}

#[test]
fn mean_and_product_in_one_two_and_three_dimensions() {
    for d in 1..=3 {
        let (k, x) = (kernel(d), nodes(d));
        for measure in measures(d) {
            let z = k.mean(&measure, &x).unwrap();
            let p = k.product(&measure, &x, &x).unwrap();
            for rule in rules(d, &measure) {
                for i in 0..x.len() {
                    let brute: f64 = rule.iter().map(|(t, w)| w * k.value(t, x.row(i))).sum();
                    assert_close(&format!("z, d={d}"), z[i], brute, TOLERANCE);
                    for j in 0..=i {
                        let brute: f64 =
                            rule.iter().map(|(t, w)| w * k.value(t, x.row(i)) * k.value(t, x.row(j))).sum();
                        assert_close(&format!("P, d={d}"), p.get(i, j), brute, TOLERANCE);
                        assert_close("P is symmetric", p.get(i, j), p.get(j, i), 1e-14);
                    }
                }
            }
        }
    }
}

/// Twice integrated quantities: the inner integral is a closed form that the test above has checked.
#[test]
fn variance_chain_and_square_in_one_two_and_three_dimensions() {
    for d in 1..=3 {
        let (k, x) = (kernel(d), nodes(d));
        // k² is itself a squared exponential, with σ⁴ and λ/√2.
        let half = k.lengthscales().iter().map(|l| l / 2.0_f64.sqrt()).collect();
        let k2 = SquaredExponential::new(k.sigma2().powi(2), half).unwrap();
        for measure in measures(d) {
            let chain = k.chain_lower(&measure, &x).unwrap();
            for rule in rules(d, &measure) {
                let flat = rule.iter().flat_map(|(t, _)| t.iter().copied()).collect();
                let inner = Points::new(d, flat).unwrap();
                let weigh = |values: &[f64]| values.iter().zip(&rule).map(|(v, (_, w))| v * w).sum::<f64>();
                let variance = weigh(&k.mean(&measure, &inner).unwrap());
                assert_close(&format!("∬k, d={d}"), k.variance(&measure).unwrap(), variance, TOLERANCE);
                let squared = weigh(&k2.mean(&measure, &inner).unwrap());
                assert_close(&format!("∬k², d={d}"), k.squared(&measure).unwrap(), squared, TOLERANCE);
                let products = k.product(&measure, &inner, &x).unwrap();
                for i in 0..x.len() {
                    for j in 0..=i {
                        let brute: f64 =
                            rule.iter().zip(products.col(j)).map(|((t, w), p)| w * k.value(t, x.row(i)) * p).sum();
                        assert_close(&format!("D, d={d}"), chain.get(i, j), brute, TOLERANCE);
                    }
                }
            }
        }
    }
}

/// The chain once more with nothing taken on trust: both integrals by brute force.
#[test]
fn chain_by_a_double_sum() {
    for d in 1..=2 {
        let (k, x) = (kernel(d), nodes(d));
        let measure = mixture(d);
        let rule = tensor_for_mixture(&normal_trapezoid([1.0 / 8.0, 1.0 / 4.0][d - 1]), &measure);
        let rule: Vec<_> = rule.into_iter().filter(|(_, w)| *w > 1e-18).collect();
        let chain = k.chain_lower(&measure, &x).unwrap();
        for (i, j) in [(0, 0), (2, 1), (3, 0)] {
            let brute: f64 = rule
                .iter()
                .map(|(t, w)| {
                    let inner: f64 = rule.iter().map(|(s, v)| v * k.value(t, s) * k.value(s, x.row(j))).sum();
                    w * k.value(x.row(i), t) * inner
                })
                .sum();
            assert_close(&format!("D, d={d}"), chain.get(i, j), brute, TOLERANCE);
        }
    }
}

/// A short lengthscale against a wide measure, where a careless form loses eight digits.
#[test]
fn short_lengthscales_keep_their_digits() {
    let k = SquaredExponential::isotropic(1.0, 1e-3, 1).unwrap();
    let measure = Mixture::from(Gaussian::standard(1).unwrap());
    let x = Points::new(1, vec![2.0, 2.0 + 1.7e-3]).unwrap();
    // Near the nodes, with t = 2 + s: an ordinary trapezoid rule in s over ±15 lengthscales.
    let h = 2e-5;
    let density = |t: f64| (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt();
    let brute = |f: &dyn Fn(f64) -> f64| -> f64 {
        (-900..=900).map(|i| f64::from(i) * h).map(|s| h * density(2.0 + s) * f(s)).sum()
    };
    let kernel = |s: f64, at: f64| (-0.5 * ((s - at) / 1e-3).powi(2)).exp();
    // The node itself is only known to ε, which is 2·10⁻¹³ lengthscales: nothing can be sharper than that.
    let shift = x.row(1)[0] - 2.0;
    let p = k.product(&measure, &x, &x).unwrap();
    assert_close("P", p.get(1, 0), brute(&|s| kernel(s, 0.0) * kernel(s, shift)), TOLERANCE);
    assert_close("z", k.mean(&measure, &x).unwrap()[1], brute(&|s| kernel(s, shift)), TOLERANCE);
}

#[test]
fn a_mixture_of_equals_is_the_gaussian() {
    let g = gaussian(3, 0.1);
    let double = Mixture::new(vec![(2.0, g.clone()), (6.0, g.clone())]).unwrap();
    let (k, x) = (kernel(3), nodes(3));
    assert_close("∬k", k.variance(&double).unwrap(), k.variance(&g).unwrap(), 1e-14);
    let single = Mixture::from(g.clone());
    let (a, b) = (k.chain_lower(&double, &x).unwrap(), k.chain_lower(&single, &x).unwrap());
    assert_close("D", a.get(2, 1), b.get(2, 1), 1e-13);
    assert_close("z", k.mean(&double, &x).unwrap()[3], k.mean(&g, &x).unwrap()[3], 1e-14);
}

#[test]
fn bad_input_is_refused_by_name() {
    assert!(matches!(SquaredExponential::new(-1.0, vec![1.0]), Err(Error::Invalid { .. })));
    assert!(matches!(SquaredExponential::new(1.0, vec![]), Err(Error::Invalid { .. })));
    let message = SquaredExponential::new(1.0, vec![1.0, f64::NAN]).unwrap_err().to_string();
    assert!(message.contains("NaN") && message.contains("lengthscale"), "{message}");
    let indefinite = Gaussian::new(vec![0.0; 2], &[vec![1.0, 2.0], vec![2.0, 1.0]]);
    assert!(matches!(indefinite, Err(Error::NotPositiveDefinite { .. })));
    assert!(Gaussian::new(vec![0.0; 2], &[vec![1.0, 0.5], vec![0.0, 1.0]]).is_err());
    assert!(Gaussian::new(vec![], &[]).is_err());
    assert!(Mixture::new(vec![]).is_err());
    assert!(Mixture::new(vec![(-1.0, Gaussian::standard(1).unwrap())]).is_err());
    let (k, measure) = (kernel(2), mixture(3));
    assert!(matches!(k.mean(&measure, &nodes(2)), Err(Error::Length { .. })));
    assert!(k.product(&mixture(2), &nodes(3), &nodes(2)).is_err());
    assert!(k.chain_lower(&mixture(2), &nodes(3)).is_err());
}
