//! The problems that users bring: their truths and their likelihoods, each against something that was not used to make it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use batchquad::numeric::{Purpose, Stream};
use experiments::{
    dense::Cholesky,
    grid::{log_integral_2d, log_sum_exp},
    problems::{
        Choice, Problem,
        world::{Noise, World, noisy},
    },
};

/// Log-likelihoods at a point and, where it has a closed form, log Z, all from `data/world_evidence.py`.
const REFERENCES: &[(World, &[f64], f64, Option<f64>)] = &[
    (World::Linear4By10, &[2.2, 0.4, 2.0, -1.5], -79.50446840888037, Some(-91.31064711431567)),
    (World::Linear4By30, &[1.2, 8.9, 9.3, 9.6], -85.86738225548034, Some(-102.71199007501315)),
    (World::Linear4By100, &[25.0, -18.8, -5.7, -14.0], -85.57598331328032, Some(-107.10173433627862)),
    (World::Linear6By10, &[-1.6, -0.9, -2.7, 4.1, 1.6, 1.6], -81.15655970238036, Some(-98.99994084575575)),
    (World::Linear6By30, &[6.1, 2.3, -3.0, -10.1, 17.6, 13.9], -75.44395301983035, Some(-101.7157323143557)),
    (World::Linear6By100, &[5.7, 43.7, -10.6, 27.5, 2.1, -34.9], -74.94471133203044, Some(-107.20258939066524)),
    (World::Linear8By10, &[1.3, 0.6, 3.7, 3.0, 2.3, 3.6, -4.4, 4.4], -71.58035898058037, Some(-97.29536439154576)),
    (
        World::Linear8By30,
        &[0.6, 3.6, 1.7, -1.3, 0.7, -18.3, -5.5, -10.3],
        -81.37356004563037,
        Some(-113.34790473298703),
    ),
    (
        World::Linear8By100,
        &[-7.2, -20.3, 18.6, 26.2, -12.8, 14.5, 5.2, 48.7],
        -80.46680771178038,
        Some(-122.35941767898049),
    ),
    (World::Logistic5, &[-0.5, 1.0, -1.0, 0.5, 0.5], -89.07873341357113, None),
    (World::Gaussian2, &[0.3, -0.5], -1.0315827052894548, None),
    (World::FourModes, &[3.0, 4.0], -5.644826513470062, None),
    (World::Rosenbrock, &[0.5, 1.0], -2.825, Some(-2.547804138083178)),
    (World::Sinusoid, &[1.6, -1.2, 7.3], -36.94482051668639, Some(-45.729622603758806)),
    (World::Sir, &[0.5, 0.28, 4.0], -166.69418322742695, None),
    (World::LotkaVolterra6, &[0.6, 0.03, 0.02, 0.7, 30.0, 6.0], -117.98400552823254, None),
    (World::LotkaVolterra8, &[0.6, 0.03, 0.02, 0.7, 30.0, 6.0, 0.15, 0.15], -117.98400552823254, None),
];

#[test]
fn likelihoods_and_closed_forms_are_those_of_the_script() {
    for (world, theta, log_likelihood, log_z) in REFERENCES {
        let problem = world.build().unwrap();
        let value = (problem.log_likelihood)(theta);
        // Rounding of hundreds of terms, each of some tens.
        assert!((value - log_likelihood).abs() < 1e-9, "{problem:?}: {value}");
        if let Some(log_z) = log_z {
            // By other formulas: the covariance of the responses here has a condition of up to 1e6.
            assert!((problem.log_z - log_z).abs() < 1e-7, "{problem:?}: {log_z}");
        }
    }
}

/// `log ℓ(θ(u)) + log N(u; 0, I)`.
fn log_joint(problem: &Problem, u: &[f64]) -> f64 {
    let square: f64 = u.iter().map(|v| v * v + std::f64::consts::TAU.ln()).sum();
    (problem.log_likelihood)(&problem.prior.to_theta(u).unwrap()) - 0.5 * square
}

/// The slope and minus the curvature of the log joint density by central differences.
fn local(problem: &Problem, u: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let d = u.len();
    let h = 1e-4;
    let at = |i: usize, a: f64, j: usize, b: f64| {
        let mut v = u.to_vec();
        v[i] += a * h;
        v[j] += b * h;
        log_joint(problem, &v)
    };
    let slope = (0..d).map(|i| (at(i, 1.0, i, 0.0) - at(i, -1.0, i, 0.0)) / (2.0 * h)).collect();
    let entry = |i: usize, j: usize| {
        (at(i, 1.0, j, -1.0) + at(i, -1.0, j, 1.0) - at(i, 1.0, j, 1.0) - at(i, -1.0, j, -1.0)) / (4.0 * h * h)
    };
    (slope, (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect())
}

/// The sum over a matrix's row, for each row.
fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

/// The nearest maximum of the joint density, by Newton's method, and the covariance of a Gaussian of that curvature, row by row.
fn mode(problem: &Problem, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut u = problem.prior.to_latent(theta).unwrap();
    let covariance = |curvature: &[Vec<f64>]| {
        Cholesky::new(theta.len(), |i, j| curvature[i][j]).expect("a maximum nearby").inverse()
    };
    for _ in 0..20 {
        let (slope, curvature) = local(problem, &u);
        u = u.iter().zip(times(&covariance(&curvature), &slope)).map(|(a, b)| a + b).collect();
    }
    let (_, curvature) = local(problem, &u);
    (u, covariance(&curvature))
}

/// Importance sampling from a Student-t with five degrees of freedom at the mode, which Newton's method finds from `theta`: log Z and
/// the standard error of that logarithm.
fn importance(problem: &Problem, theta: &[f64], draws: usize) -> (f64, f64) {
    let d = theta.len();
    let (u, covariance) = mode(problem, theta);
    let factor = Cholesky::new(d, |i, j| covariance[i * d + j]).unwrap();
    let (nu, n) = (5.0, d as f64);
    let constant = libm::lgamma(0.5 * (nu + n))
        - libm::lgamma(0.5 * nu)
        - 0.5 * (n * (nu * std::f64::consts::PI).ln() + factor.log_det());
    let mut stream = Stream::new(7, Purpose::Experiment, 3000);
    let logs: Vec<f64> = (0..draws)
        .map(|_| {
            let chi: f64 = stream.normals(5).iter().map(|z| z * z).sum();
            let white: Vec<f64> = stream.normals(d).iter().map(|z| z / (chi / nu).sqrt()).collect();
            let square: f64 = white.iter().map(|z| z * z).sum();
            let v: Vec<f64> = factor.multiply(&white).iter().zip(&u).map(|(a, b)| a + b).collect();
            log_joint(problem, &v) - constant + 0.5 * (nu + n) * (square / nu).ln_1p()
        })
        .collect();
    let count = draws as f64;
    let first = log_sum_exp(logs.iter().copied()) - count.ln();
    let second = log_sum_exp(logs.iter().map(|l| 2.0 * l)) - count.ln();
    (first, (((second - 2.0 * first).exp() - 1.0) / count).sqrt())
}

/// Within four standard errors, which are small.
fn sampling_agrees(world: World, theta: &[f64], draws: usize) {
    let problem = world.build().unwrap();
    let (log_z, error) = importance(&problem, theta, draws);
    assert!(error < 0.02, "{problem:?}: the standard error is {error}");
    assert!((log_z - problem.log_z).abs() < 4.0 * error, "{problem:?}: {log_z} ± {error}");
}

#[test]
fn regressions_have_the_evidence_that_sampling_finds() {
    for (world, theta, ..) in &REFERENCES[..10] {
        sampling_agrees(*world, theta, 20_000);
    }
}

#[test]
fn simulators_have_the_evidence_that_sampling_finds() {
    sampling_agrees(World::Sir, &[0.51, 0.28, 3.4], 20_000);
    let lotka = [0.589, 0.0288, 0.0219, 0.727, 26.6, 6.15, 0.15, 0.15];
    sampling_agrees(World::LotkaVolterra6, &lotka[..6], 8_000);
    sampling_agrees(World::LotkaVolterra8, &lotka, 8_000);
}

/// A frequency and one cycle a day less it are two modes; the others weigh less than 1e-6.
#[test]
fn the_sinusoid_has_the_evidence_of_its_two_modes() {
    let problem = World::Sinusoid.build().unwrap();
    let (right, error) = importance(&problem, &[1.6, -1.2, 7.281], 40_000);
    let (alias, _) = importance(&problem, &[-1.6, -1.2, 1.160], 40_000);
    let log_z = log_sum_exp([right, alias].into_iter());
    assert!(error < 0.01, "{error}");
    assert!((log_z - problem.log_z).abs() < 4.0 * error, "{problem:?}: {log_z} ± {error}");
    let share = (alias - log_z).exp();
    assert!((0.01..0.03).contains(&share), "{share}");
}

/// Under wide priors simulators return anything, but never NaN.
#[test]
fn simulators_blow_up_as_simulators_do() {
    for (world, low) in [(World::LotkaVolterra6, -1e5), (World::LotkaVolterra8, -1e5), (World::Sir, -1e3)] {
        let problem = world.build().unwrap();
        let mut stream = Stream::new(1, Purpose::Experiment, 5000);
        let values: Vec<f64> = (0..2_000)
            .map(|_| problem.prior.to_theta(&stream.normals(problem.prior.dim())).unwrap())
            .map(|theta| (problem.log_likelihood)(&theta))
            .collect();
        assert!(values.iter().all(|v| v.is_finite() || *v == f64::NEG_INFINITY));
        assert!(values.iter().any(|v| v.is_finite() && *v < low), "{world:?}");
        assert!(values.contains(&f64::NEG_INFINITY), "{world:?}");
    }
}

#[test]
fn priors_are_as_much_wider_than_the_posterior_as_their_names_say() {
    for (world, theta, ..) in &REFERENCES[..10] {
        let problem = world.build().unwrap();
        let width: f64 = world.name().rsplit('-').next().unwrap().parse().unwrap();
        let width = if *world == World::Logistic5 { 50.0 } else { width };
        let (_, covariance) = mode(&problem, theta);
        for i in 0..theta.len() {
            let ratio = 1.0 / covariance[i * (theta.len() + 1)].sqrt() / width;
            // Two digits.
            assert!((ratio - 1.0).abs() < 0.05, "{problem:?}, parameter {i}: {ratio}");
        }
    }
}

#[test]
fn smooth_shapes_have_the_evidence_of_a_grid() {
    for world in [World::Gaussian2, World::Rosenbrock] {
        let problem = world.build().unwrap();
        let theta = |u: &[f64; 2]| problem.prior.to_theta(u).unwrap();
        let grid = log_integral_2d(0.02, |u| (problem.log_likelihood)(&theta(u)));
        assert!((problem.log_z - grid).abs() < 1e-8, "{problem:?} {grid}");
    }
    // The middles of 400² squares, each a tenth of the narrowest width; what is lost at the edges is beyond 6 widths.
    let problem = World::FourModes.build().unwrap();
    let axis = || (0..400).map(|i| -10.0 + 0.05 * (f64::from(i) + 0.5));
    let terms = axis().flat_map(|x| axis().map(move |y| [x, y])).map(|x| (problem.log_likelihood)(&x));
    let grid = log_sum_exp(terms.collect::<Vec<_>>().into_iter()) - 160_000_f64.ln();
    assert!((problem.log_z - grid).abs() < 1e-7, "{problem:?} {grid}");
}

/// The midpoint rule on squares that lie along the line of the break, which is then no break within any of them.
#[test]
fn broken_shapes_have_the_evidence_of_a_grid_along_the_break() {
    for (world, offset, step) in [(World::Jump, -0.32, 0.01), (World::HalfSpace, 0.0, 0.002)] {
        let problem = world.build().unwrap();
        let reach = if world == World::Jump { 6.0 } else { 1.2 };
        let half = (reach / step) as i32;
        let mut terms = Vec::new();
        for i in -half..half {
            for j in -half..half {
                let (across, along) = (step * (f64::from(i) + 0.5), step * (f64::from(j) + 0.5));
                let along = if world == World::Jump { along } else { along + 1.0 };
                let theta = [0.6 * (offset + across) + 0.8 * along, 0.8 * (offset + across) - 0.6 * along];
                terms.push(log_joint(&problem, &theta));
            }
        }
        let grid = log_sum_exp(terms.into_iter()) + (step * step).ln();
        // Beside the break the error is second order: h²/24 times the slope of the density, 1e-5 at most.
        assert!((problem.log_z - grid).abs() < 5e-5, "{problem:?} {grid}");
    }
}

#[test]
fn a_half_space_is_half_of_the_space() {
    let problem = World::HalfSpace.build().unwrap();
    let mut stream = Stream::new(1, Purpose::Experiment, 4000);
    let none = (0..4_000).filter(|_| (problem.log_likelihood)(&stream.normals(2)) == f64::NEG_INFINITY).count();
    // Five standard deviations of a binomial count.
    assert!(none.abs_diff(2_000) < 160, "{none}");
}

#[test]
fn names_are_unique_and_survive_a_file() {
    let noisy = World::ALL.iter().flat_map(|w| Noise::ALL.map(|n| Choice::Noisy(*w, n)));
    let choices: Vec<Choice> = World::ALL.iter().map(|w| Choice::World(*w)).chain(noisy).collect();
    let names: HashSet<&str> = choices.iter().map(|c| c.name()).collect();
    assert_eq!(names.len(), choices.len());
    for choice in choices {
        let back: Choice = serde_json::from_value(serde_json::to_value(choice).unwrap()).unwrap();
        assert_eq!(back, choice);
        let problem = choice.build(1).unwrap();
        assert_eq!(problem.name, choice.name());
        assert!(problem.log_z.is_finite());
    }
}

#[test]
fn noise_has_its_standard_deviation_at_new_points_and_at_old_ones() {
    let exact = World::Gaussian2.build().unwrap();
    for sd in Noise::ALL.map(Noise::sd) {
        let problem = noisy(World::Gaussian2.build().unwrap(), sd, 3);
        assert_eq!(problem.log_z, exact.log_z);
        for moving in [1.0, 0.0] {
            let noise: Vec<f64> = (0..4_000)
                .map(|i| [0.1 + moving * f64::from(i) * 1e-9, -0.2])
                .map(|x| (problem.log_likelihood)(&x) - (exact.log_likelihood)(&x))
                .collect();
            let mean = noise.iter().sum::<f64>() / 4_000.0;
            let square = noise.iter().map(|e| e * e).sum::<f64>() / 4_000.0;
            // Five standard errors: sd/√n of the mean, √(2/n) of the variance.
            assert!(mean.abs() < 5.0 * sd / 4_000_f64.sqrt(), "{mean}");
            assert!((square / sd.powi(2) - 1.0).abs() < 5.0 * (2.0_f64 / 4_000.0).sqrt(), "{square}");
        }
    }
}

#[test]
fn noise_is_the_same_in_every_run_with_the_same_seed() {
    let make = |seed| Choice::Noisy(World::Gaussian2, Noise::Middle).build(seed).unwrap();
    let values =
        |problem: &Problem| [[0.1, 0.2], [0.3, 0.2], [0.1, 0.2]].map(|x| (problem.log_likelihood)(&x).to_bits());
    let once = values(&make(1));
    assert_eq!(once, values(&make(1)));
    assert_ne!(once[0], values(&make(2))[0]);
    assert_ne!(once[0], once[2]);
    // What was evaluated elsewhere before does not matter.
    assert_eq!((make(1).log_likelihood)(&[0.3, 0.2]).to_bits(), once[1]);
    let wall = noisy(World::HalfSpace.build().unwrap(), 1.0, 1);
    assert_eq!((wall.log_likelihood)(&[-1.0, -1.0]), f64::NEG_INFINITY);
}
