//! The truths that everything else is judged by, each against something that was not used to make it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::numeric::{Purpose, Stream};
use experiments::{
    branin,
    grid::{log_integral_2d, log_sum_exp},
    problems::{Choice, Problem, evidence_at, in_model, mixture, zoo::Animal},
};

/// Plain Monte Carlo from the prior: log Z and the standard error of that logarithm.
fn monte_carlo(problem: &Problem, draws: usize) -> (f64, f64) {
    let d = problem.prior.dim();
    let mut stream = Stream::new(99, Purpose::Experiment, 1000);
    let logs: Vec<f64> =
        (0..draws).map(|_| (problem.log_likelihood)(&problem.prior.to_theta(&stream.normals(d)).unwrap())).collect();
    let n = draws as f64;
    let first = log_sum_exp(logs.iter().copied()) - n.ln();
    let second = log_sum_exp(logs.iter().map(|l| 2.0 * l)) - n.ln();
    (first, (((second - 2.0 * first).exp() - 1.0) / n).sqrt())
}

/// Within five standard errors, of which at least a few per cent must have been resolved for the test to mean anything.
fn agrees(problem: &Problem, draws: usize) {
    let (log_z, error) = monte_carlo(problem, draws);
    assert!(error < 0.05, "{problem:?}: the standard error is {error}");
    assert!((log_z - problem.log_z).abs() < 5.0 * error, "{problem:?}: {log_z} ± {error}");
}

#[test]
fn mixtures_have_their_closed_form_evidence() {
    for seed in 1..=3 {
        agrees(&mixture(seed).unwrap(), 50_000);
    }
}

#[test]
fn branin_has_its_known_minima() {
    // Dixon & Szegő (1978): 0.397887 at (−π, 12.275), (π, 2.275) and (9.42478, 2.475).
    let pi = std::f64::consts::PI;
    for (x, y) in [(-pi, 12.275), (pi, 2.275), (9.42478, 2.475)] {
        let u = [(x + 5.0) / 15.0, y / 15.0];
        assert!((branin::branin(&u) - 0.397_887).abs() < 1e-6);
        for step in [[1e-3, 0.0], [-1e-3, 0.0], [0.0, 1e-3], [0.0, -1e-3]] {
            assert!(branin::branin(&[u[0] + step[0], u[1] + step[1]]) > branin::branin(&u));
        }
    }
}

#[test]
fn the_committed_data_are_what_the_code_makes() {
    let made = branin::optimise(branin::branin, 20).unwrap();
    let committed = branin::committed().unwrap();
    assert_eq!(made.len(), committed.len());
    for (m, c) in made.iter().zip(&committed) {
        assert_eq!(m.point, c.point);
        // A few last bits, which the platform's arithmetic may decide.
        assert!((m.value - c.value).abs() < 1e-10 * c.value);
    }
}

#[test]
fn the_optimiser_finds_the_minimum() {
    let best = branin::committed().unwrap().iter().map(|e| e.value).fold(f64::INFINITY, f64::min);
    assert!(best < 1.0, "the best of twenty is {best}, the minimum 0.398");
}

#[test]
fn the_gp_evidence_has_converged() {
    let data = branin::committed().unwrap();
    let (coarse, fine) = (evidence_at(&data, 0.1), evidence_at(&data, 0.05));
    assert!((coarse - fine).abs() < 1e-8, "{coarse} {fine}");
}

#[test]
fn the_gp_evidence_agrees_with_draws() {
    agrees(&Choice::GpEvidence.build(0).unwrap(), 40_000);
}

#[test]
fn in_model_truths_have_converged() {
    for (seed, positive) in [(1, false), (2, true)] {
        let problem = in_model(seed, positive).unwrap();
        let fine = log_integral_2d(0.1, |u| (problem.log_likelihood)(u));
        assert!((problem.log_z - fine).abs() < 1e-8, "{} {fine}", problem.log_z);
        agrees(&problem, 5_000);
    }
}

#[test]
fn positive_draws_are_positive_where_the_prior_is() {
    // ℓ ≥ 0.05 + ½·0.5² wherever g ≥ ½.
    let problem = in_model(3, true).unwrap();
    let mut stream = Stream::new(1, Purpose::Experiment, 2000);
    let low = (0..2_000).map(|_| (problem.log_likelihood)(&stream.normals(2))).fold(f64::INFINITY, f64::min);
    assert!(low > (0.05_f64 + 0.125).ln(), "{low}");
}

#[test]
fn the_zoo_has_its_exact_evidences() {
    for animal in Animal::ALL {
        let problem = animal.build().unwrap();
        match animal {
            // Draws would be hopeless in these; below.
            Animal::Gaussian6 | Animal::Gaussian10 => {}
            Animal::Needle => {
                let grid = needle_by_grid(&problem);
                assert!((problem.log_z - grid).abs() < 1e-8, "{problem:?} {grid}");
            }
            _ if problem.prior.dim() == 2 => {
                let theta = |u: &[f64; 2]| problem.prior.to_theta(u).unwrap();
                let grid = log_integral_2d(0.04, |u| (problem.log_likelihood)(&theta(u)));
                assert!((problem.log_z - grid).abs() < 1e-8, "{problem:?} {grid}");
            }
            Animal::Nile => agrees(&problem, 8_000),
            _ => agrees(&problem, 100_000),
        }
    }
}

/// The trapezoidal rule on a square of twenty widths around the needle, four nodes a width.
fn needle_by_grid(problem: &Problem) -> f64 {
    let (centre, step) = ([0.7, -0.4], 0.005);
    let axis = |a: usize| (-40..=40).map(move |i| centre[a] + f64::from(i) * step);
    let mut terms = Vec::new();
    for x in axis(0) {
        for y in axis(1) {
            terms.push((problem.log_likelihood)(&[x, y]) - 0.5 * (x * x + y * y));
        }
    }
    log_sum_exp(terms.into_iter()) + (step * step / std::f64::consts::TAU).ln()
}

#[test]
fn the_o_rings_have_the_evidence_that_is_published_with_them() {
    // Two-dimensional trapezoidal rule with 1201² nodes, five decimals.
    assert!((Animal::ORings.build().unwrap().log_z + 14.01941).abs() < 1e-5);
}

#[test]
fn the_nile_has_the_likelihood_of_the_script_that_made_its_evidence() {
    // data/nile_evidence.py, by numpy's solve and slogdet: a hundred terms rounded at 1e-16 of a few hundred.
    let likelihood = (Animal::Nile.build().unwrap().log_likelihood)(&[0.5, -0.5, -0.5]);
    assert!((likelihood + 127.842_630_253_127_96).abs() < 1e-9, "{likelihood}");
}

/// `∫ N(x; m, Σ) N(x; 0, I) dx` in a basis where Σ is diagonal is a product of one-dimensional integrals; draws would be hopeless.
#[test]
fn correlated_gaussians_have_their_exact_evidence() {
    for (animal, d) in [(Animal::Gaussian6, 6.0_f64), (Animal::Gaussian10, 10.0)] {
        let problem = animal.build().unwrap();
        let one = |mean: f64, variance: f64| {
            experiments::grid::log_integral_1d(0.01, |u| {
                -0.5 * ((u - mean).powi(2) / variance + (std::f64::consts::TAU * variance).ln())
            })
        };
        // Variances 0.16 and covariances 0.08 have the eigenvalues 0.08 + 0.08 d, once, and 0.08.
        let along = one(0.4 * d.sqrt(), 0.08 + 0.08 * d);
        let across = one(0.0, 0.08);
        assert!((problem.log_z - along - (d - 1.0) * across).abs() < 1e-10, "{problem:?}");
        // The density itself: at its mean, and a step along the diagonal.
        let at = |v: f64| (problem.log_likelihood)(&vec![v; d as usize]);
        assert!((at(0.4) - at(0.9) - 0.5 * 0.25 * d / (0.08 + 0.08 * d)).abs() < 1e-10);
    }
}
