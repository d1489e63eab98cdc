//! Families of generated problems: their truths, each against something that was not used to make it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use experiments::{
    grid::log_sum_exp,
    problems::{
        Problem,
        families::{Family, Member, STANDARD_ERROR, sampled_log_z},
    },
};

#[test]
fn closed_forms_and_integrals_agree_with_importance_sampling() {
    let mut compared = 0;
    // Sampling misses the ends of a ridge that is strongly bent, and is not good enough on shells: they have a grid.
    for &family in Family::ALL.iter().filter(|f| ![Family::Bent, Family::Shell].contains(*f)) {
        let exact = (1..=4).map(|seed| family.member(seed).unwrap()).take_while(|m| m.error == 0.0);
        let sampled = |m: &Member| sampled_log_z(&m.problem, &m.places, 77).ok();
        let Some((member, (log_z, error))) = exact.filter_map(|m| sampled(&m).map(|s| (m, s))).next() else { continue };
        let off = (log_z - member.problem.log_z).abs();
        assert!(error < STANDARD_ERROR && off < 5.0 * error + 1e-6, "{}: {off} ± {error}", family.name());
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

/// `log ∫ ℓ(θ(u)) N(u; 0, I) du` in two dimensions by the trapezoidal rule on a box that is made larger until nothing is left at its edge.
fn by_grid(problem: &Problem, place: &[f64]) -> f64 {
    let joint = |u: [f64; 2]| {
        let theta = problem.prior.to_theta(&u).unwrap();
        (problem.log_likelihood)(&theta) - 0.5 * (u[0] * u[0] + u[1] * u[1]) - std::f64::consts::TAU.ln()
    };
    let centre = problem.prior.to_latent(place).unwrap();
    let at = |half: f64, a: f64, b: f64| joint([centre[0] + half * a, centre[1] + half * b]);
    let mut half = 0.05;
    loop {
        let along = |i: i32| f64::from(i) / 50.0;
        let edge = (-50..=50)
            .map(along)
            .flat_map(|t| [at(half, t, 1.0), at(half, t, -1.0), at(half, 1.0, t), at(half, -1.0, t)]);
        if edge.fold(f64::NEG_INFINITY, f64::max) < at(half, 0.0, 0.0) - 30.0 {
            break;
        }
        half *= 1.3;
    }
    let steps = 400;
    let along = |i: i32| f64::from(i) / f64::from(steps);
    let nodes: Vec<f64> = (-steps..=steps)
        .flat_map(|i| (-steps..=steps).map(move |j| (i, j)))
        .map(|(i, j)| at(half, along(i), along(j)))
        .collect();
    log_sum_exp(nodes.into_iter()) + 2.0 * (half / f64::from(steps)).ln()
}

#[test]
fn truths_in_two_dimensions_agree_with_a_grid() {
    for (family, exact) in
        [(Family::Poisson, false), (Family::LogLog, false), (Family::Bent, true), (Family::Shell, true)]
    {
        let members = (1..=40).map(|seed| family.member(seed).unwrap()).filter(|m| m.problem.prior.dim() == 2);
        let mut compared = 0;
        for member in members.take(2) {
            let off = (by_grid(&member.problem, &member.places[0]) - member.problem.log_z).abs();
            assert!(if exact { member.error == 0.0 } else { member.error > 0.0 && member.error <= STANDARD_ERROR });
            assert!(off < 5.0 * member.error + 1e-6, "{}: {off} ± {}", family.name(), member.error);
            compared += 1;
        }
        assert_eq!(compared, 2, "{}", family.name());
    }
}

#[test]
fn every_seed_has_a_problem_of_its_own() {
    for family in [Family::Logistic, Family::Skewed, Family::TwoPeaks, Family::Shell, Family::PeriodicSignal] {
        let made: Vec<f64> = [5, 6, 5].map(|seed| family.build(seed).unwrap().log_z).to_vec();
        assert_eq!(made[0].to_bits(), made[2].to_bits(), "{}", family.name());
        assert!((made[0] - made[1]).abs() > 1e-9, "{}", family.name());
    }
}
