//! The methods that quadrature is compared with, on problems where their answer is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use experiments::{
    methods::{Classical, Sample, Spec, classical},
    problems::{Choice, zoo::Animal},
};

fn run(problem: Choice, method: Classical, seed: u64, budget: usize) -> Vec<Sample> {
    classical(&Spec { problem, seed, method, budget }).unwrap()
}

#[test]
fn laplace_is_exact_on_a_gaussian_and_counts_its_evaluations() {
    for seed in 1..4 {
        let samples = run(Choice::Zoo(Animal::Gaussian6), Classical::Laplace, seed, 256);
        let [only] = samples[..] else { panic!("{samples:?}") };
        // Central differences of a parabola are exact up to rounding, ε^(1/2) of it at worst.
        assert!(only.judged.distance() < 1e-6, "{only:?}");
        // The design, and then at least one gradient and one Hessian.
        assert!((28 + 13 + 42..=256).contains(&only.evaluations), "{only:?}");
        assert!(run(Choice::Zoo(Animal::Gaussian6), Classical::Laplace, seed, 20).is_empty());
    }
}

#[test]
fn iterated_laplace_finds_both_modes_given_two_starts() {
    let samples = run(Choice::Zoo(Animal::TwoModes), Classical::IteratedLaplace, 1, 256);
    assert_eq!(samples.len(), 32);
    let last = samples.last().unwrap();
    assert!(last.evaluations == 256 && last.judged.distance() < 1e-3, "{last:?}");
    assert!(samples[0].judged.error.is_none(), "eight evaluations are fewer than the design");
}

#[test]
fn draws_are_within_their_standard_errors() {
    // |z| > 4 has the probability 6e-5; the log of a mean of 4096 is close to normal for this smooth integrand.
    for seed in 1..6 {
        let samples = run(Choice::InModelPositive, Classical::MonteCarlo, seed, 4096);
        let last = samples.last().unwrap();
        let z = last.judged.distance() / last.judged.sd.unwrap();
        assert!(last.evaluations == 4096 && z < 4.0, "{z} {last:?}");
    }
}

#[test]
fn sobol_points_beat_draws_on_smooth_integrands() {
    // Over twenty integrands: root mean squares 1/√n and better than 1/n; a factor of four is far from either.
    let rms = |method| {
        let squares = (1..21)
            .map(|seed| run(Choice::InModelPositive, method, seed, 1024).last().unwrap().judged.distance().powi(2));
        (squares.sum::<f64>() / 20.0).sqrt()
    };
    let (sobol, draws) = (rms(Classical::Sobol), rms(Classical::MonteCarlo));
    assert!(4.0 * sobol < draws, "{sobol} {draws}");
}
