//! Kernels against a uniform box: brute-force quadrature, 50-digit references, wrong dimensions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Error, Points,
    belief::{Brownian, Embed, Kernel, Matern, Smoothness, SquaredExponential, UniformBox},
};
use serde::Deserialize;

const SMOOTHNESSES: [Smoothness; 3] = [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves];

/// The promise of the closed forms. The rules below resolve these integrands to a few 1e-15, so what is left is rounding.
const TOLERANCE: f64 = 1e-12;

fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(error <= tolerance * expected.abs(), "{what}: {found:e}, expected {expected:e}, off by {error:e}");
}

// ---------------------------------------------------------------------------------------------------------------------
// Brute force

/// Nodes and weights of the Gauss–Legendre rule on [0, 1], by Newton's iteration on the Legendre polynomial.
fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    let size = n as f64;
    let legendre = |x: f64| {
        let (mut before, mut p) = (1.0, x);
        for k in 2..=n {
            let k = k as f64;
            (before, p) = (p, ((2.0 * k - 1.0) * x * p - (k - 1.0) * before) / k);
        }
        (p, size * (x * p - before) / (x * x - 1.0))
    };
    (0..n)
        .map(|i| {
            let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (size + 0.5)).cos();
            for _ in 0..100 {
                let (p, slope) = legendre(x);
                x -= p / slope;
                if (p / slope).abs() < 1e-16 {
                    break;
                }
            }
            let (_, slope) = legendre(x);
            (0.5 * (1.0 - x), 1.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}

/// A rule for the average over `[low, high]` of a function with a kink at each of `kinks`.
fn rule(n: usize, low: f64, high: f64, kinks: &[f64]) -> Vec<(f64, f64)> {
    let mut cuts = vec![low, high];
    cuts.extend(kinks.iter().filter(|k| low < **k && **k < high));
    cuts.sort_by(f64::total_cmp);
    let panel = |cut: &[f64]| {
        let (a, b) = (cut[0], cut[1]);
        gauss_legendre(n).into_iter().map(move |(t, w)| (a + (b - a) * t, w * (b - a) / (high - low)))
    };
    cuts.windows(2).flat_map(panel).collect()
}

/// A rule for the average over the square `[low, high]²` of a function with a kink on the diagonal (and at `kinks`): both
/// triangles, each the image of a square.
fn pair_rule(n: usize, low: f64, high: f64, kinks: &[f64]) -> Vec<(f64, f64, f64)> {
    let mut pairs = Vec::new();
    for (t, wt) in rule(n, low, high, kinks) {
        for (u, wu) in rule(n, low, t, kinks) {
            let w = wt * wu * (t - low) / (high - low);
            pairs.extend([(t, u, w), (u, t, w)]);
        }
    }
    pairs
}

/// `Σ w₁⋯w_d f(x)` over the tensor product of one rule for each axis.
fn tensor<T: Copy>(axes: &[Vec<T>], weight: &dyn Fn(T) -> f64, chosen: &mut Vec<T>, f: &dyn Fn(&[T]) -> f64) -> f64 {
    let Some((axis, rest)) = axes.split_first() else { return f(chosen) };
    let mut sum = 0.0;
    for &entry in axis {
        chosen.push(entry);
        sum += weight(entry) * tensor(rest, weight, chosen, f);
        chosen.pop();
    }
    sum
}

fn brute_mean(n: usize, kernel: &dyn Kernel, measure: &UniformBox, kinks: &[f64], node: &[f64]) -> f64 {
    let axes: Vec<_> =
        (0..node.len()).map(|j| rule(n, measure.low()[j], measure.high()[j], &[kinks[j], node[j]])).collect();
    tensor(&axes, &|(_, w)| w, &mut Vec::new(), &|at| {
        let x: Vec<_> = at.iter().map(|(x, _)| *x).collect();
        kernel.value(&x, node)
    })
}

fn brute_variance(n: usize, kernel: &dyn Kernel, measure: &UniformBox, kinks: &[f64]) -> f64 {
    let axes: Vec<_> =
        (0..measure.dim()).map(|j| pair_rule(n, measure.low()[j], measure.high()[j], &[kinks[j]])).collect();
    let buffers = std::cell::RefCell::new((vec![0.0; measure.dim()], vec![0.0; measure.dim()]));
    tensor(&axes, &|(_, _, w)| w, &mut Vec::new(), &|at| {
        let (x, y) = &mut *buffers.borrow_mut();
        for (j, &(t, u, _)) in at.iter().enumerate() {
            (x[j], y[j]) = (t, u);
        }
        kernel.value(x, y)
    })
}

const LOW: [f64; 3] = [-0.5, 2.0, -4.0];
const HIGH: [f64; 3] = [1.25, 2.5, -1.0];
const LENGTHSCALES: [f64; 3] = [1.3, 0.7, 2.2];

fn boxed(dim: usize) -> UniformBox {
    UniformBox::new(LOW[..dim].to_vec(), HIGH[..dim].to_vec()).unwrap()
}

/// Nodes inside, on a corner, on a face, and outside on either side.
fn probes(dim: usize) -> Points {
    let rows = [[0.3, 2.1, -3.3], [-0.5, 2.0, -4.0], [0.7, 2.5, -1.7], [1.9, 2.2, -4.4], [-1.1, 2.9, -0.2]];
    Points::from_rows(&rows.map(|row| row[..dim].to_vec())).unwrap()
}

/// `n` points to a panel: nine resolve a kernel whose lengthscale is that of the box (and keep six dimensions affordable),
/// four are exact for the Brownian kernel's polynomials.
fn check_against_brute_force<K: Embed<UniformBox>>(n: usize, kernel: &K, kinks: &[f64], what: &str) {
    let measure = boxed(kernel.dim());
    let nodes = probes(kernel.dim());
    let means = kernel.mean(&measure, &nodes).unwrap();
    assert_eq!(means.len(), nodes.len());
    for (node, mean) in nodes.rows().zip(means) {
        assert_close(
            mean,
            brute_mean(n, kernel, &measure, kinks, node),
            TOLERANCE,
            &format!("{what} mean at {node:?}"),
        );
    }
    let brute = brute_variance(n, kernel, &measure, kinks);
    assert_close(kernel.variance(&measure).unwrap(), brute, TOLERANCE, &format!("{what} variance"));
}

#[test]
fn squared_exponential_is_its_integral() {
    for dim in 1..=3 {
        let kernel = SquaredExponential::new(1.7, LENGTHSCALES[..dim].to_vec()).unwrap();
        check_against_brute_force(9, &kernel, &LOW, &format!("SE in {dim}-D"));
    }
}

#[test]
fn matern_is_its_integral() {
    for smoothness in SMOOTHNESSES {
        for dim in 1..=3 {
            let kernel = Matern::new(smoothness, 0.6, LENGTHSCALES[..dim].to_vec()).unwrap();
            check_against_brute_force(9, &kernel, &LOW, &format!("{smoothness:?} in {dim}-D"));
        }
    }
}

#[test]
fn brownian_is_its_integral() {
    // Starts before the box, at its lower face, and inside it (the process is zero on a part of the box).
    for start in [[-0.9, 1.4, -7.0], LOW, [0.1, 2.2, -3.5]] {
        for dim in 1..=3 {
            let kernel = Brownian::new(2.5, start[..dim].to_vec()).unwrap();
            check_against_brute_force(4, &kernel, &start, &format!("Brownian from {start:?} in {dim}-D"));
        }
    }
    let beyond = Brownian::new(2.5, vec![1.3]).unwrap();
    assert_eq!(beyond.variance(&boxed(1)).unwrap(), 0.0, "the process has not started");
    assert_eq!(beyond.mean(&boxed(1), &probes(1)).unwrap(), vec![0.0; 5]);
}

// ---------------------------------------------------------------------------------------------------------------------
// References at 50 digits

#[derive(Deserialize)]
struct References {
    mean: Vec<Case>,
    variance: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    kernel: String,
    low: Vec<f64>,
    high: Vec<f64>,
    lengthscales: Vec<f64>,
    #[serde(default)]
    node: Vec<f64>,
    value: f64,
}

impl Case {
    /// The relative error of the closed form.
    fn error(&self) -> f64 {
        let found = match self.kernel.as_str() {
            "se" => self.found(&SquaredExponential::new(1.0, self.lengthscales.clone()).unwrap()),
            "matern12" => self.found(&Matern::new(Smoothness::Half, 1.0, self.lengthscales.clone()).unwrap()),
            "matern32" => self.found(&Matern::new(Smoothness::ThreeHalves, 1.0, self.lengthscales.clone()).unwrap()),
            "matern52" => self.found(&Matern::new(Smoothness::FiveHalves, 1.0, self.lengthscales.clone()).unwrap()),
            other => panic!("unknown kernel {other}"),
        };
        (found / self.value - 1.0).abs()
    }

    fn found(&self, kernel: &impl Embed<UniformBox>) -> f64 {
        let measure = UniformBox::new(self.low.clone(), self.high.clone()).unwrap();
        if self.node.is_empty() {
            return kernel.variance(&measure).unwrap();
        }
        kernel.mean(&measure, &Points::new(self.node.len(), self.node.clone()).unwrap()).unwrap()[0]
    }
}

#[test]
fn references_at_50_digits() {
    let references: References = serde_json::from_str(include_str!("data/embed_box_reference.json")).unwrap();
    assert!(references.mean.len() > 900 && references.variance.len() > 80, "the reference file is cut short");
    // Away from the tails only a handful of roundings remain. In a tail the exponent E = |log value| multiplies the few
    // roundings of the scaled distance: 700 · 4ε ≈ 6e-13.
    let bulk = 1e-14;
    let mut worst = (0.0_f64, 0.0_f64);
    for case in references.mean.iter().chain(&references.variance) {
        let error = case.error();
        let in_tail = case.value < 1e-12;
        let bound = if in_tail { TOLERANCE } else { bulk };
        assert!(
            error <= bound,
            "{} on {:?}..{:?}, lengthscales {:?}, node {:?}: relative error {error:e}",
            case.kernel,
            case.low,
            case.high,
            case.lengthscales,
            case.node
        );
        if in_tail { worst.1 = worst.1.max(error) } else { worst.0 = worst.0.max(error) }
    }
    println!("worst relative error: {:e} in the bulk, {:e} in the tails", worst.0, worst.1);
}

// ---------------------------------------------------------------------------------------------------------------------
// Refusals

#[test]
fn wrong_dimensions_are_refused() {
    let length = |error: Error| assert!(matches!(error, Error::Length { .. }), "{error}");
    let kernel = Matern::new(Smoothness::Half, 1.0, vec![1.0, 1.0]).unwrap();
    length(kernel.mean(&boxed(1), &probes(2)).unwrap_err());
    length(kernel.mean(&boxed(2), &probes(3)).unwrap_err());
    length(kernel.variance(&boxed(3)).unwrap_err());
    length(Brownian::new(1.0, vec![0.0]).unwrap().variance(&boxed(2)).unwrap_err());
    length(Matern::new(Smoothness::Half, 1.0, vec![]).unwrap_err());
    length(Brownian::new(1.0, vec![]).unwrap_err());
    length(UniformBox::new(vec![], vec![]).unwrap_err());
    length(UniformBox::new(vec![0.0], vec![1.0, 2.0]).unwrap_err());
}
