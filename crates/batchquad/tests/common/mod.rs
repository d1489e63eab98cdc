//! Brute force shared by the integration tests.
#![allow(dead_code)]

use batchquad::belief::{Gaussian, Mixture};

/// Nodes and weights of the trapezoid rule for `∫ f(t) N(t; 0, 1) dt`.
///
/// For entire functions the rule converges like `exp(−2π²/h²)`: with `h = 1/6` and `|t| ≤ 9.5` the error is below rounding
/// unless the integrand has features narrower than about 0.4 (callers pass a smaller `h` then).
pub fn normal_trapezoid(h: f64) -> Vec<(f64, f64)> {
    let n = (9.5 / h).ceil() as i64;
    (-n..=n)
        .map(|i| {
            let t = i as f64 * h;
            (t, h * (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt())
        })
        .collect()
}

/// Nodes and weights of the `n`-point Gauss–Hermite rule for the standard normal, by Newton's method on the
/// orthonormal Hermite polynomials.
pub fn gauss_hermite(n: usize) -> Vec<(f64, f64)> {
    // h_{k+1} = (t h_k − √k h_{k−1}) / √(k+1), orthonormal for N(0, 1).
    let evaluate = |t: f64| {
        let (mut previous, mut current) = (0.0, 1.0);
        let mut sum_of_squares = 0.0;
        for k in 0..n {
            sum_of_squares += current * current;
            let next = (t * current - (k as f64).sqrt() * previous) / ((k + 1) as f64).sqrt();
            previous = current;
            current = next;
        }
        (current, (n as f64).sqrt() * previous, sum_of_squares)
    };
    // The zeros interlace: bisect between sign changes on a fine grid, then polish.
    let bound = 2.0 * (n as f64).sqrt() + 1.0;
    let steps = 400 * n;
    let grid = |i: usize| -bound + 2.0 * bound * i as f64 / steps as f64;
    let mut rule = Vec::new();
    for i in 0..steps {
        let (low, high) = (grid(i), grid(i + 1));
        if evaluate(low).0 * evaluate(high).0 <= 0.0 {
            let mut t = 0.5 * (low + high);
            for _ in 0..20 {
                let (value, slope, _) = evaluate(t);
                t -= value / slope;
            }
            rule.push((t, 1.0 / evaluate(t).2));
        }
    }
    assert_eq!(rule.len(), n);
    rule
}

/// All points of the tensor rule in `d` dimensions with their weights.
pub fn tensor(rule: &[(f64, f64)], d: usize) -> Vec<(Vec<f64>, f64)> {
    let mut points = vec![(Vec::new(), 1.0)];
    for _ in 0..d {
        points = points
            .iter()
            .flat_map(|(x, w)| {
                rule.iter().map(move |&(t, v)| {
                    let mut y: Vec<f64> = x.clone();
                    y.push(t);
                    (y, w * v)
                })
            })
            .filter(|(_, w)| *w > 1e-40)
            .collect();
    }
    points
}

/// The tensor rule moved to `N(b, S)`.
pub fn tensor_for(rule: &[(f64, f64)], measure: &Gaussian) -> Vec<(Vec<f64>, f64)> {
    tensor(rule, measure.dim()).into_iter().map(|(t, w)| (measure.map_standard(&t), w)).collect()
}

/// The tensor rule for a mixture.
pub fn tensor_for_mixture(rule: &[(f64, f64)], measure: &Mixture) -> Vec<(Vec<f64>, f64)> {
    measure
        .components()
        .iter()
        .flat_map(|(weight, g)| tensor_for(rule, g).into_iter().map(move |(x, w)| (x, w * weight)))
        .collect()
}

/// `|a − b| ≤ tolerance · |b|`, with a message.
pub fn assert_close(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a:e} against {b:e}, relative {:e}", ((a - b) / b).abs());
}
