//! Laplace approximations against closed forms and brute force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::f64::consts::{LN_2, PI, TAU};

use batchquad::{
    Error,
    belief::{
        Jet,
        laplace::{IteratedLaplace, Iteration, Laplace, ModeSearch, Stopped},
    },
};
use proptest::prelude::*;

/// A chain `xⱼ ~ N(ρ xⱼ₋₁ + 1, s²)`: correlated, its precision tridiagonal, and its normaliser known without a determinant.
fn chain(x: &[f64], rho: f64, s: f64) -> f64 {
    let before = std::iter::once(&0.0).chain(x);
    x.iter().zip(before).map(|(x, b)| -0.5 * ((x - rho * b - 1.0) / s).powi(2)).sum()
}

fn chain_mode(d: usize, rho: f64) -> Vec<f64> {
    let mut mode = vec![1.0];
    while mode.len() < d {
        mode.push(rho * mode[mode.len() - 1] + 1.0);
    }
    mode
}

fn chain_log_z(d: usize, s: f64) -> f64 {
    d as f64 * (0.5 * TAU.ln() + s.ln())
}

fn chain_jet(x: &[f64], rho: f64, s: f64) -> Jet {
    let d = x.len();
    let precision = |i: usize, j: usize| match i.abs_diff(j) {
        0 => (1.0 + if i + 1 < d { rho * rho } else { 0.0 }) / (s * s),
        1 => -rho / (s * s),
        _ => 0.0,
    };
    let mode = chain_mode(d, rho);
    let gradient = (0..d).map(|i| (0..d).map(|j| -precision(i, j) * (x[j] - mode[j])).sum()).collect();
    Jet { value: chain(x, rho, s), gradient, hessian: (0..d * d).map(|k| -precision(k / d, k % d)).collect() }
}

/// `log ∫ exp f` over `[low, high]²` by the midpoint rule, which converges faster than any power for what decays inside the square.
fn brute_force(low: f64, high: f64, n: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let h = (high - low) / n as f64;
    let at = |i: usize| low + (i as f64 + 0.5) * h;
    let sum: f64 = (0..n * n).map(|k| f(&[at(k / n), at(k % n)]).exp()).sum();
    (sum * h * h).ln()
}

fn iteration(seed: u64) -> Iteration {
    Iteration { seed, ..Iteration::default() }
}

#[test]
fn gaussians_are_exact_when_the_hessian_is_given() {
    for d in [1, 2, 5, 20] {
        let mode = chain_mode(d, 0.8);
        let laplace = Laplace::from_jet(&mode, &chain_jet(&mode, 0.8, 0.3), 1e-6).unwrap();
        // Sums of d terms of order one.
        assert!((laplace.log_z - chain_log_z(d, 0.3)).abs() < 1e-12, "d = {d}");
        assert_eq!((laplace.evaluations, laplace.gaussian.mean()), (0, mode.as_slice()));
        assert!((laplace.gaussian.covariance().get(0, 0) - 0.09).abs() < 1e-14);
    }
}

#[test]
fn gaussians_are_exact_by_differences() {
    for d in [1, 2, 3, 7, 12] {
        let truth = chain_log_z(d, 0.3);
        let start: Vec<f64> = (0..d).map(|j| (j as f64).sin()).collect();
        let found = Laplace::search(&start, ModeSearch::default(), |x| chain(x, 0.8, 0.3)).unwrap();
        let known = Laplace::at_mode(&chain_mode(d, 0.8), ModeSearch::default(), |x| chain(x, 0.8, 0.3)).unwrap();
        for laplace in [&found, &known] {
            // Second differences of a parabola have only rounding, ε/h² = 2e-13 per entry, times the condition of H (81).
            assert!((laplace.log_z - truth).abs() < 1e-8, "d = {d}: {:e}", laplace.log_z - truth);
            for (m, b) in chain_mode(d, 0.8).iter().zip(laplace.gaussian.mean()) {
                assert!((m - b).abs() < 1e-6);
            }
        }
        // The stencil, and at most three pairs per coordinate to find its steps.
        assert!(known.evaluations <= 1 + d * (d - 1) + 6 * d, "{}", known.evaluations);
    }
}

#[test]
fn units_do_not_matter() {
    // One coordinate in units of 1e12, the other in units of 1e-12, and the search is told nothing of it.
    let f = |x: &[f64]| chain(&[x[0] / 1e12, x[1] * 1e12], 0.8, 0.3);
    let laplace = Laplace::search(&[0.0, 0.0], ModeSearch::default(), f).unwrap();
    assert!((laplace.log_z - chain_log_z(2, 0.3)).abs() < 1e-8, "{laplace:?}");
}

#[test]
fn a_stricter_tolerance_is_met() {
    // Not a parabola, so that Newton's method needs several steps. Mode at log 3, f″ = −3 there.
    let f = |x: &[f64]| 3.0 * x[0] - x[0].exp();
    let search = ModeSearch { stationarity: 1e-8, ..ModeSearch::default() };
    let laplace = Laplace::search(&[0.0], search, f).unwrap();
    // The slope by central differences is off by h²/6 · f‴, and so the mode by h²/6; h is at most 2 · 0.03/√3.
    assert!(laplace.newton_decrement <= 1e-8 && (laplace.gaussian.mean()[0] - 3.0_f64.ln()).abs() < 2e-4);
    // The Hessian is off by h²/12 · f⁗/f″, of which log Z feels half.
    let expected = f(&[3.0_f64.ln()]) + 0.5 * (TAU / 3.0).ln();
    assert!((laplace.log_z - expected).abs() < 1e-4, "{:e}", laplace.log_z - expected);
}

#[test]
fn evaluations_are_counted_and_limited() {
    let mut calls = 0;
    let laplace = Laplace::search(&[0.0; 3], ModeSearch::default(), |x| {
        calls += 1;
        chain(x, 0.5, 1.0)
    });
    assert_eq!(laplace.unwrap().evaluations, calls);
    let mut calls = 0;
    let all = IteratedLaplace::new(&[vec![0.0; 2], vec![1.0; 2]], iteration(1), |x| {
        calls += 1;
        banana(x)
    });
    assert_eq!(all.unwrap().evaluations, calls);
    for budget in [0, 1, 10, 200, 400, 900] {
        let mut calls = 0;
        let search = ModeSearch { max_evaluations: budget, ..ModeSearch::default() };
        let result = IteratedLaplace::new(&[vec![0.0; 2]], Iteration { search, ..iteration(1) }, |x| {
            calls += 1;
            banana(x)
        });
        assert!(calls <= budget);
        match result {
            Ok(r) => assert!(r.stopped == Stopped::Budget && r.evaluations == calls && budget >= 200),
            Err(e) => assert!(matches!(e, Error::Numerical { .. }) && budget < 400, "{e}"),
        }
    }
}

/// The logistic model of the O-rings: `t = (Temperature − 70)/10`, `(a, b) ~ N(0, 5²)`.
struct Orings(Vec<(f64, bool)>);

impl Orings {
    const LOG_Z: f64 = -14.01941;

    fn read() -> Self {
        let rows = include_str!("data/orings.csv").lines().skip(1).map(|line| {
            let fields: Vec<f64> = line.split(',').map(|v| v.parse().unwrap()).collect();
            ((fields[1] - 70.0) / 10.0, fields[4] > 0.0)
        });
        Self(rows.collect())
    }

    fn log_joint(&self, x: &[f64]) -> f64 {
        let prior = -(25.0 * TAU).ln() - 0.5 * (x[0] * x[0] + x[1] * x[1]) / 25.0;
        let term = |&(t, y): &(f64, bool)| {
            let z = (x[0] + x[1] * t) * if y { -1.0 } else { 1.0 };
            z.max(0.0) + (-z.abs()).exp().ln_1p()
        };
        prior - self.0.iter().map(term).sum::<f64>()
    }

    /// The next term of Laplace's expansion: `⅛ Σ c₄ vₙₙ² + Σₘₙ c₃ᵐ c₃ⁿ (⅛ vₘₘ vₘₙ vₙₙ + 1/12 vₘₙ³)`, `vₘₙ = aₘᵀ S aₙ`, `a = (1, t)`.
    fn second_order(&self, mode: &[f64], s: impl Fn(usize, usize) -> f64) -> f64 {
        let v = |p: f64, q: f64| s(0, 0) + (p + q) * s(0, 1) + p * q * s(1, 1);
        let terms: Vec<(f64, f64, f64)> = self
            .0
            .iter()
            .map(|&(t, _)| {
                let p = 1.0 / (1.0 + (-mode[0] - mode[1] * t).exp());
                let w = p * (1.0 - p);
                (t, -w * (1.0 - 2.0 * p), -w * (1.0 - 6.0 * w))
            })
            .collect();
        let fourth: f64 = terms.iter().map(|&(t, _, c)| 0.125 * c * v(t, t).powi(2)).sum();
        let third: f64 = terms
            .iter()
            .flat_map(|m| terms.iter().map(move |n| (m, n)))
            .map(|(&(t, c, _), &(u, e, _))| c * e * (0.125 * v(t, t) * v(t, u) * v(u, u) + v(t, u).powi(3) / 12.0))
            .sum();
        fourth + third
    }
}

#[test]
fn orings() {
    let model = Orings::read();
    let truth = brute_force(-25.0, 25.0, 1000, |x| model.log_joint(x));
    assert!((truth - Orings::LOG_Z).abs() < 1e-5, "{truth}");
    let laplace = Laplace::search(&[0.0, 0.0], ModeSearch::default(), |x| model.log_joint(x)).unwrap();
    let error = laplace.log_z - truth;
    let expected = -model.second_order(laplace.gaussian.mean(), |i, j| laplace.gaussian.covariance().get(i, j));
    // 23 observations: the skewness costs Laplace 0.083 of log Z. The next term of the expansion foretells it; the terms after
    // that are its square in order of magnitude.
    println!("Laplace is off by {error:+.5}, foretold {expected:+.5}, {} evaluations", laplace.evaluations);
    assert!((-0.09..-0.07).contains(&error), "{error}");
    assert!((error - expected).abs() < 2.0 * expected * expected, "{error} against {expected}");
    for seed in 100..105 {
        let iterated = IteratedLaplace::new(&[vec![0.0, 0.0]], iteration(seed), |x| model.log_joint(x)).unwrap();
        println!("iterated: {:+.5}, {} evaluations", iterated.log_z - truth, iterated.evaluations);
        // The tolerance for settling, twice: the last two changes were below it.
        assert!((iterated.log_z - truth).abs() < 0.02, "seed {seed}: {}", iterated.log_z - truth);
    }
}

fn two_modes(x: &[f64]) -> f64 {
    let normal =
        |a: f64, b: f64, s: f64| -0.5 * ((x[0] - a).powi(2) + (x[1] - b).powi(2)) / (s * s) - (TAU * s * s).ln();
    let (p, q) = (normal(-3.0, 0.0, 1.0), normal(3.0, 1.0, 0.5));
    p.max(q) + (-(p - q).abs()).exp().ln_1p() - LN_2
}

#[test]
fn two_modes_need_two_components() {
    for start in [[-2.0, 0.5], [2.5, 0.0]] {
        let one = Laplace::search(&start, ModeSearch::default(), two_modes).unwrap();
        // Half the mass, but for e⁻¹⁸ and less of the other mode.
        assert!((one.log_z + LN_2).abs() < 1e-5, "{}", one.log_z);
    }
    let starts: Vec<Vec<f64>> = (0..9).map(|i| vec![f64::from(i % 3) * 3.0 - 3.0, f64::from(i / 3) - 1.0]).collect();
    let both = IteratedLaplace::new(&starts, iteration(7), two_modes).unwrap();
    assert!(both.log_z.abs() < 1e-4, "{}", both.log_z);
    assert_eq!((both.modes.len(), both.mixture.components().len(), both.stopped), (2, 2, Stopped::Covered));
    for (weight, _) in both.mixture.components() {
        assert!((weight - 0.5).abs() < 1e-4);
    }
}

#[test]
fn overlapping_modes() {
    // A shoulder rather than a second mode: no start can find it, only the residual shows it.
    let f = |x: &[f64]| {
        let normal = |m: f64, s: f64| (-0.5 * ((x[0] - m) / s).powi(2)).exp() / (TAU.sqrt() * s);
        (0.6 * normal(0.0, 1.0) + 0.4 * normal(2.0, 1.5)).ln()
    };
    let one = Laplace::search(&[0.0], ModeSearch::default(), f).unwrap();
    let iterated = IteratedLaplace::new(&[vec![0.0], vec![3.0]], iteration(100), f).unwrap();
    assert!(iterated.modes.len() == 1 && one.log_z.abs() > 0.1, "{}", one.log_z);
    assert!(iterated.log_z.abs() < 0.02, "{}", iterated.log_z);
}

fn banana(x: &[f64]) -> f64 {
    -0.5 * (x[0] * x[0] / 9.0 + x[1] * x[1]) - 5.0 * (x[1] - x[0] * x[0]).powi(2)
}

#[test]
fn a_banana_is_improved_twentyfold() {
    let truth = brute_force(-9.0, 9.0, 1800, banana);
    let laplace = Laplace::search(&[1.0, 1.0], ModeSearch::default(), banana).unwrap().log_z - truth;
    assert!((0.9..1.1).contains(&laplace), "{laplace}");
    for seed in 100..105 {
        let iterated = IteratedLaplace::new(&[vec![1.0, 1.0]], iteration(seed), banana).unwrap();
        let error = iterated.log_z - truth;
        println!("banana: Laplace {laplace:+.4}, iterated {error:+.4}, {} evaluations", iterated.evaluations);
        assert!(error.abs() < laplace.abs() / 20.0, "seed {seed}: {error} against {laplace}");
    }
}

#[test]
fn student_t_product() {
    // One factor: ∫ (1 + x²/4)^{−5/2} dx = √(4π) Γ(2)/Γ(5/2) = 8/3.
    let f = |x: &[f64]| x.iter().map(|v| -2.5 * (v * v / 4.0).ln_1p()).sum::<f64>();
    for d in [1, 3] {
        let truth = d as f64 * (8.0_f64 / 3.0).ln();
        let laplace = Laplace::search(&vec![0.7; d], ModeSearch::default(), f).unwrap();
        // −H = 5/4 for each factor, in closed form.
        let expected = d as f64 * 0.5 * (2.0 * PI * 0.8).ln();
        assert!((laplace.log_z - expected).abs() < 1e-3 * d as f64, "{} against {expected}", laplace.log_z);
        for seed in 100..104 {
            let iterated = IteratedLaplace::new(&[vec![0.7; d]], iteration(seed), f).unwrap();
            let (before, after) = (laplace.log_z - truth, iterated.log_z - truth);
            println!("t, d = {d}: Laplace {before:+.4}, iterated {after:+.4}, {} evaluations", iterated.evaluations);
            // What lies beyond the support points stays out, so the bound is a share of what Laplace loses.
            assert!(after.abs() < 0.2 * before.abs(), "seed {seed}: {after} against {before}");
        }
    }
}

#[test]
fn a_constant_moves_log_z_by_itself() {
    let plain = IteratedLaplace::new(&[vec![1.0, 1.0]], iteration(3), banana).unwrap();
    let laplace = Laplace::search(&[1.0, 1.0], ModeSearch::default(), banana).unwrap();
    for shift in [1e6, -1e6, 1.0] {
        let moved = IteratedLaplace::new(&[vec![1.0, 1.0]], iteration(3), |x| banana(x) + shift).unwrap();
        assert!((moved.log_z - shift - plain.log_z).abs() < 1e-9 * shift.abs().max(1e3), "{}", moved.log_z);
        let single = Laplace::search(&[1.0, 1.0], ModeSearch::default(), |x| banana(x) + shift).unwrap();
        assert!((single.log_z - shift - laplace.log_z).abs() < 1e-9 * shift.abs().max(1e3), "{}", single.log_z);
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let run = |seed| IteratedLaplace::new(&[vec![1.0, 1.0], vec![-1.0, 2.0]], iteration(seed), banana).unwrap();
    let (a, b, c) = (run(5), run(5), run(6));
    assert_eq!(a.log_z.to_bits(), b.log_z.to_bits());
    assert_eq!(a.evaluations, b.evaluations);
    for ((v, g), (w, h)) in a.mixture.components().iter().zip(b.mixture.components()) {
        assert_eq!((v.to_bits(), g.mean(), g.covariance()), (w.to_bits(), h.mean(), h.covariance()));
    }
    assert_ne!(a.log_z, c.log_z);
}

#[test]
fn the_edge_of_the_support_is_respected() {
    // Zero density for x ≤ 0: the Gamma density x² e⁻ˣ, Z = 2.
    let f = |x: &[f64]| if x[0] > 0.0 { 2.0 * x[0].ln() - x[0] } else { f64::NEG_INFINITY };
    let laplace = Laplace::search(&[0.05], ModeSearch::default(), f).unwrap();
    assert!((laplace.log_z - (2.0 * 2.0_f64.ln() - 2.0 + 0.5 * (2.0 * TAU).ln())).abs() < 1e-3);
    let iterated = IteratedLaplace::new(&[vec![0.05]], iteration(100), f).unwrap();
    assert!((iterated.log_z - LN_2).abs() < 0.02, "{}", iterated.log_z);
    // A mode nearer to the edge than the usual step: a smaller one is found. Rounding: ε/h² at h = 0.003.
    let close = |x: &[f64]| if x[0] > 0.0 { -0.5 * (x[0] - 0.01).powi(2) } else { f64::NEG_INFINITY };
    let laplace = Laplace::at_mode(&[0.01], ModeSearch::default(), close).unwrap();
    assert!((laplace.log_z - 0.5 * TAU.ln()).abs() < 1e-9);
}

#[test]
fn refusals_are_typed() {
    let search = ModeSearch::default();
    let saddle = |x: &[f64]| x[0] * x[0] - x[1] * x[1];
    let at = |x: &[f64], f: &dyn Fn(&[f64]) -> f64| Laplace::at_mode(x, search, f).unwrap_err();
    assert!(matches!(at(&[0.0, 0.0], &saddle), Error::NotPositiveDefinite { .. }));
    assert!(matches!(at(&[0.0], &|_| 3.0), Error::NotPositiveDefinite { pivot: 0, .. }));
    assert!(matches!(at(&[0.0, 1.0], &|x| -x[0] * x[0]), Error::NotPositiveDefinite { pivot: 1, .. }));
    assert!(matches!(at(&[0.0], &|_| f64::NEG_INFINITY), Error::Invalid { .. }));
    assert!(matches!(at(&[0.5], &|_| f64::NAN), Error::NonFiniteValue { point, .. } if point == [0.5]));
    assert!(matches!(at(&[0.5], &|_| f64::INFINITY), Error::NonFiniteValue { .. }));
    assert!(matches!(at(&[f64::NAN], &|_| 0.0), Error::NonFinitePoint { .. }));
    assert!(matches!(at(&[], &|_| 0.0), Error::Length { .. }));
    // Two standard deviations away from the mode of N(0, ½): the gradient there is −2·√2.
    let message = at(&[2.0_f64.sqrt()], &|x| -x[0] * x[0]).to_string();
    assert!(message.contains("norm of the gradient") && message.contains("2.828427"), "{message}");

    let climb = |f: &dyn Fn(&[f64]) -> f64| Laplace::search(&[0.3], search, f).unwrap_err();
    assert!(matches!(climb(&|x| 2.0 * x[0]), Error::NotPositiveDefinite { .. }));
    assert!(matches!(climb(&|x| x[0].powi(2)), Error::NotPositiveDefinite { .. } | Error::Invalid { .. }));
    assert!(matches!(climb(&|x| if x[0] > 1.0 { f64::NAN } else { x[0] }), Error::NonFiniteValue { .. }));

    let jet = |gradient: Vec<f64>, hessian: Vec<f64>| Jet { value: 0.0, gradient, hessian };
    let given = |j: Jet| Laplace::from_jet(&[0.0, 0.0], &j, 1e-3).unwrap_err();
    assert!(matches!(given(jet(vec![0.0], vec![-1.0; 4])), Error::Length { .. }));
    assert!(matches!(given(jet(vec![0.0; 2], vec![-1.0; 3])), Error::Length { .. }));
    assert!(matches!(given(jet(vec![0.0; 2], vec![-1.0, 0.5, 0.0, -1.0])), Error::Invalid { .. }));
    assert!(matches!(given(jet(vec![0.0; 2], vec![-1.0; 4])), Error::NotPositiveDefinite { .. }));
    assert!(matches!(given(jet(vec![f64::NAN; 2], vec![-1.0, 0.0, 0.0, -1.0])), Error::Invalid { .. }));

    let flat = |x: &[f64]| -x[0] * x[0];
    let grow = |starts: &[Vec<f64>], o: Iteration| IteratedLaplace::new(starts, o, flat).unwrap_err();
    assert!(matches!(grow(&[], iteration(0)), Error::Length { .. }));
    assert!(matches!(grow(&[vec![0.0], vec![0.0, 1.0]], iteration(0)), Error::Length { .. }));
    assert!(matches!(grow(&[vec![0.0]], Iteration { support: Some(0), ..iteration(0) }), Error::Invalid { .. }));
    assert!(matches!(
        grow(&[vec![0.0]], Iteration { change_tolerance: f64::NAN, ..iteration(0) }),
        Error::Invalid { .. }
    ));
    let nowhere = IteratedLaplace::new(&[vec![0.0], vec![1.0]], iteration(0), |_| f64::NEG_INFINITY).unwrap_err();
    assert_eq!(nowhere, Error::NoFiniteValue { count: 2 });
}

#[test]
fn a_start_without_a_mode_is_counted() {
    let f = |x: &[f64]| {
        if x[0] < 5.0 {
            -x[0] * x[0]
        } else if x[0] < 50.0 {
            -40.0
        } else {
            f64::NEG_INFINITY
        }
    };
    let result = IteratedLaplace::new(&[vec![60.0], vec![20.0], vec![1.0]], iteration(0), f).unwrap();
    assert_eq!((result.failed_starts, result.modes.len()), (2, 1));
    assert!((result.log_z - 0.5 * PI.ln()).abs() < 1e-8);
}

/// Functions that no approximation is meant for.
fn hostile(kind: usize, a: f64, x: &[f64]) -> f64 {
    let r: f64 = x.iter().map(|v| v * v).sum();
    match kind {
        0 => a,
        1 => f64::NEG_INFINITY,
        2 => f64::NAN,
        3 => a * x.iter().sum::<f64>(),
        4 => r.exp() * a,
        5 => x.iter().map(|v| (v * a).floor()).sum(),
        6 => {
            if x[0] > a {
                f64::NEG_INFINITY
            } else {
                x[0]
            }
        }
        7 => -r.sqrt() * a.abs(),
        8 => {
            if r > 1.0 {
                f64::NAN
            } else {
                -r
            }
        }
        9 => -1e300 * r,
        10 => -1e-300 * r,
        11 => a * (1e3 * x[0]).sin(),
        12 => {
            if x[0] == 0.0 {
                0.0
            } else {
                f64::NEG_INFINITY
            }
        }
        13 => -(r - 1.0).powi(2) * a.abs(),
        14 => r.ln() * a,
        _ => -r.powi(4),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn hostile_functions_end_in_a_finite_number_or_an_error(
        kind in 0..16_usize,
        a in -10.0..10.0_f64,
        x in prop::collection::vec(prop_oneof![Just(0.0), -3.0..3.0_f64, Just(1e8)], 1..4),
        seed in 0..1000_u64,
    ) {
        let search = ModeSearch { max_evaluations: 2000, ..ModeSearch::default() };
        for result in [
            Laplace::at_mode(&x, search, |x| hostile(kind, a, x)),
            Laplace::search(&x, search, |x| hostile(kind, a, x)),
        ].into_iter().flatten() {
            prop_assert!(result.log_z.is_finite() && result.evaluations <= 2000);
        }
        let options = Iteration { search, support: Some(30), max_components: 6, seed, ..Iteration::default() };
        if let Ok(result) = IteratedLaplace::new(&[x.clone(), vec![0.1; x.len()]], options, |x| hostile(kind, a, x)) {
            prop_assert!(result.log_z.is_finite() && result.evaluations <= 2000 && result.misfit.is_finite());
        }
    }
}
