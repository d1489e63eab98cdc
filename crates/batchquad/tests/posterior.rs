//! The posterior that a belief implies: against brute-force grids of the same belief, and against true posteriors.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use batchquad::{
    Config, Points, Prior, Settings,
    belief::{Belief, Gaussian, Mixture, Model, SquaredExponential, Surrogate},
    infer::{Marginal, Method, Posterior},
    integrate,
    numeric::{Jitter, Purpose, Stream},
    prior::Distribution,
    run::SurrogateChoice,
};
use common::{normal_trapezoid, tensor_for_mixture};

// A posterior owns what it needs, and threads can share it.
const _: () = {
    const fn shared<T: Send + Sync + 'static>() {}
    shared::<Posterior>();
    shared::<Belief>();
};

/// Two lumps of different size, never far below their top: `α` is a tenth of it and matters.
fn log_value(x: &[f64]) -> f64 {
    let lump = |centre: f64, size: f64| size * (-x.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / 0.8).exp();
    (0.1 + lump(0.8, 1.0) + lump(-1.0, 0.4)).ln()
}

/// Random nodes; a jitter that keeps weights moderate, since cancelling ones would only test rounding.
fn belief(dim: usize, n: usize, measure: &Mixture, model: Model) -> Surrogate {
    let nodes = Points::new(dim, Stream::new(7, Purpose::Experiment, dim as u64).normals(n * dim)).unwrap();
    let logs: Vec<f64> = nodes.rows().map(log_value).collect();
    let lengthscales = (0..dim).map(|k| 0.7 + 0.2 * k as f64).collect();
    let kernel = SquaredExponential::new(0.8, lengthscales).unwrap();
    Surrogate::with_kernel(model, measure.clone().into(), &nodes, &logs, kernel, Jitter { nugget: 1e-6, rungs: 4 })
        .unwrap()
}

/// `N(0, I)`, a Gaussian with full covariance away from it, and a mixture of three.
fn measures(dim: usize) -> Vec<Mixture> {
    let turned = |scale: f64, tie: f64, at: f64| {
        let rows: Vec<Vec<f64>> = (0..dim)
            .map(|i| (0..dim).map(|j| scale * if i == j { 1.0 + 0.3 * i as f64 } else { tie }).collect())
            .collect();
        Gaussian::new((0..dim).map(|k| at + 0.2 * k as f64).collect(), &rows).unwrap()
    };
    vec![
        Gaussian::standard(dim).unwrap().into(),
        turned(0.6, 0.5, 0.3).into(),
        Mixture::new(vec![
            (0.2, Gaussian::standard(dim).unwrap()),
            (0.5, turned(0.3, -0.2, 0.7)),
            (0.3, turned(0.1, 0.4, -0.8)),
        ])
        .unwrap(),
    ]
}

fn standard_prior(dim: usize) -> Prior {
    Prior::independent((0..dim).map(|k| (format!("p{k}"), Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

/// `(α + ½m²) μ` at latent points, from predictions and densities alone, but for the factor `|L|` of the belief's frame.
fn density(belief: &Surrogate, points: &[Vec<f64>]) -> Vec<f64> {
    let points = belief.frame().enter(&Points::from_rows(points).unwrap()).unwrap();
    let mean = belief.gp().predict(&points, batchquad::numeric::Order::Value).unwrap().mean;
    let value = |(m, x): (&f64, &[f64])| (belief.alpha() + 0.5 * m * m) * belief.measure().log_density(x).exp();
    mean.iter().zip(points.rows()).map(value).collect()
}

/// The trapezoidal rule has converged to rounding: the narrowest Gaussian of a component has a width above 0.2.
const STEP: f64 = 0.05;

fn axis() -> Vec<f64> {
    (-160..=160).map(|i| f64::from(i) * STEP).collect()
}

fn assert_close(what: &str, ours: f64, brute: f64) {
    // The bar is 1e-6; what is left between two sums of this many terms is rounding.
    assert!((ours - brute).abs() < 1e-9 * (1.0 + brute.abs()), "{what}: {ours} against {brute}");
}

/// Density, distribution function and quantiles of a latent marginal against its values on the grid.
fn check_marginal(what: &str, marginal: &Marginal, grid: &[f64], values: &[f64]) {
    assert_eq!(marginal.method(), Method::ClosedForm);
    let total: f64 = values.iter().sum::<f64>() * STEP;
    let (mut mean, mut square) = (0.0, 0.0);
    for (t, v) in grid.iter().zip(values) {
        assert_close(&format!("{what}: density at {t}"), marginal.density(*t).unwrap(), v / total);
        mean += t * v * STEP / total;
        square += t * t * v * STEP / total;
    }
    assert_close(&format!("{what}: mean"), marginal.mean(), mean);
    assert_close(&format!("{what}: sd"), marginal.sd(), (square - mean * mean).sqrt());
    // Up to the middle between two grid points, with the midpoint rule of the same grid and its ends by the density's own slope.
    for p in [0.025, 0.3, 0.5, 0.975] {
        let q = marginal.quantile(p).unwrap();
        assert_close(&format!("{what}: quantile {p}"), marginal.cdf(q).unwrap(), p);
        assert_close(&format!("{what}: mass below {q}"), brute_cdf(grid, values, q) / total, p);
    }
}

/// `∫_{−∞}^q` of what has the given values on a regular grid: its sinc interpolant, integrated on a finer grid by Simpson's rule.
fn brute_cdf(grid: &[f64], values: &[f64], q: f64) -> f64 {
    let at = |t: f64| -> f64 {
        grid.iter()
            .zip(values)
            .map(|(g, v)| {
                let z = std::f64::consts::PI * (t - g) / STEP;
                v * if z.abs() < 1e-12 { 1.0 } else { z.sin() / z }
            })
            .sum()
    };
    let n = 2000;
    let h = (q - grid[0]) / f64::from(n);
    let weight = |i: i32| {
        if i == 0 || i == n {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=n).map(|i| weight(i) * at(grid[0] + f64::from(i) * h)).sum::<f64>() * h / 3.0
}

#[test]
fn one_dimension_is_the_density_itself() {
    for (i, measure) in measures(1).iter().enumerate() {
        let belief = belief(1, 12, measure, Model::WsabiL);
        let prior = standard_prior(1);
        let grid = axis();
        let values = density(&belief, &grid.iter().map(|t| vec![*t]).collect::<Vec<_>>());
        let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
        check_marginal(&format!("measure {i}"), &posterior.latent_marginal(0).unwrap(), &grid, &values);
        // The total mass is the estimate's.
        let total: f64 = values.iter().sum::<f64>() * STEP;
        assert_close("mass", belief.estimate().unwrap().mean, total);
    }
}

#[test]
fn two_dimensions_by_summing_over_the_other() {
    for (i, measure) in measures(2).iter().enumerate() {
        let belief = belief(2, 40, measure, Model::WsabiL);
        let prior = standard_prior(2);
        let grid = axis();
        let points: Vec<Vec<f64>> = grid.iter().flat_map(|s| grid.iter().map(move |t| vec![*s, *t])).collect();
        let values = density(&belief, &points);
        let n = grid.len();
        let rows: Vec<f64> = (0..n).map(|a| (0..n).map(|b| values[a * n + b]).sum::<f64>() * STEP).collect();
        let columns: Vec<f64> = (0..n).map(|b| (0..n).map(|a| values[a * n + b]).sum::<f64>() * STEP).collect();
        let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
        check_marginal(&format!("measure {i}, first"), &posterior.latent_marginal(0).unwrap(), &grid, &rows);
        check_marginal(&format!("measure {i}, second"), &posterior.latent_marginal(1).unwrap(), &grid, &columns);
        let total: f64 = rows.iter().sum::<f64>() * STEP;
        let some: Vec<f64> = grid.iter().copied().step_by(10).collect();
        let surface = posterior.joint(0, 1).unwrap().on(&some, &some).unwrap();
        assert_eq!(surface.negative, 0);
        for (a, _) in some.iter().enumerate() {
            for (b, _) in some.iter().enumerate() {
                let brute = values[a * 10 * n + b * 10] / total;
                assert_close(
                    &format!("measure {i} at {} {}", some[a], some[b]),
                    surface.density[a * some.len() + b],
                    brute,
                );
            }
        }
        let moments = posterior.latent_moments().unwrap();
        let average = |of: &dyn Fn(&[f64]) -> f64| {
            points.iter().zip(&values).map(|(x, v)| v * of(x)).sum::<f64>() * STEP * STEP / total
        };
        check_moments(&format!("measure {i}"), &moments, average);
    }
}

fn check_moments(
    what: &str,
    moments: &batchquad::infer::LatentMoments,
    average: impl Fn(&dyn Fn(&[f64]) -> f64) -> f64,
) {
    let d = moments.mean.len();
    let mean: Vec<f64> = (0..d).map(|k| average(&|x| x[k])).collect();
    for a in 0..d {
        assert_close(&format!("{what}: mean {a}"), moments.mean[a], mean[a]);
        for b in 0..d {
            let brute = average(&|x| (x[a] - mean[a]) * (x[b] - mean[b]));
            assert_close(&format!("{what}: covariance {a} {b}"), moments.covariance[a][b], brute);
        }
    }
    let linear: Vec<f64> = (0..d).map(|k| 0.3 - k as f64).collect();
    let quadratic: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| (i + 2 * j) as f64 - 1.0).collect()).collect();
    let polynomial = |x: &[f64]| {
        let form: f64 = (0..d).map(|i| (0..d).map(|j| quadratic[i][j] * x[i] * x[j]).sum::<f64>()).sum();
        2.0 + linear.iter().zip(x).map(|(l, x)| l * x).sum::<f64>() + form
    };
    assert_close(what, moments.expect_quadratic(2.0, &linear, &quadratic).unwrap(), average(&polynomial));
}

#[test]
fn three_dimensions_have_their_moments_and_margins() {
    for (i, measure) in measures(3).iter().enumerate() {
        let belief = belief(3, 60, measure, Model::WsabiL);
        let prior = standard_prior(3);
        // The rule is that of each component, so the density of the measure is not asked for.
        let rule = tensor_for_mixture(&normal_trapezoid(0.25), measure);
        let points: Vec<Vec<f64>> = rule.iter().map(|(x, _)| x.clone()).collect();
        let mean =
            belief.gp().predict(&Points::from_rows(&points).unwrap(), batchquad::numeric::Order::Value).unwrap().mean;
        let values: Vec<f64> = mean.iter().zip(&rule).map(|(m, (_, w))| w * (belief.alpha() + 0.5 * m * m)).collect();
        let total: f64 = values.iter().sum();
        let average =
            |of: &dyn Fn(&[f64]) -> f64| points.iter().zip(&values).map(|(x, v)| v * of(x)).sum::<f64>() / total;
        let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
        check_moments(&format!("measure {i}"), &posterior.latent_moments().unwrap(), average);
        // Margins of margins: the moments of each marginal are those of the whole.
        let moments = posterior.latent_moments().unwrap();
        for k in 0..3 {
            let marginal = posterior.latent_marginal(k).unwrap();
            assert_close("marginal mean", marginal.mean(), moments.mean[k]);
            assert_close("marginal sd", marginal.sd(), moments.covariance[k][k].sqrt());
        }
        // One and two coordinates fixed, the others by the trapezoidal rule over the density itself.
        let coarse: Vec<f64> = (-36..=36).map(|i| f64::from(i) * 0.2).collect();
        let cell: f64 = 0.2;
        let mass = belief.estimate().unwrap().mean;
        for t in [-1.3, 0.0, 0.75] {
            let plane: Vec<Vec<f64>> =
                coarse.iter().flat_map(|a| coarse.iter().map(move |b| vec![*a, t, *b])).collect();
            let brute = density(&belief, &plane).iter().sum::<f64>() * cell * cell / mass;
            assert_close(
                &format!("measure {i} at {t}"),
                posterior.latent_marginal(1).unwrap().density(t).unwrap(),
                brute,
            );
            let joint = posterior.joint(2, 0).unwrap();
            for s in [-0.6, 0.9] {
                let line: Vec<Vec<f64>> = coarse.iter().map(|a| vec![s, *a, t]).collect();
                let brute = density(&belief, &line).iter().sum::<f64>() * cell / mass;
                let ours = joint.on(&[t], &[s]).unwrap();
                assert_eq!(ours.negative, 0);
                assert_close(&format!("measure {i} at {t} {s}"), ours.density[0], brute);
            }
        }
        // Distribution function and quantiles by summing the marginal.
        let marginal = posterior.latent_marginal(0).unwrap();
        let grid = axis();
        let values: Vec<f64> = grid.iter().map(|t| marginal.density(*t).unwrap()).collect();
        check_marginal(&format!("measure {i}, summed"), &marginal, &grid, &values);
    }
}

/// A run with its own hyperparameters and the jitter that runs have: weights cancel to a millionth of their size, and more.
#[test]
fn fitted_beliefs_in_one_and_two_dimensions() {
    type Problem = (usize, usize, fn(&[f64]) -> f64);
    let problems: [Problem; 4] = [
        (1, 40, |t| ((-5.0 * (t[0] - 1.0).powi(2)).exp() + 0.6 * (-5.0 * (t[0] + 1.5).powi(2)).exp()).ln()),
        (1, 96, |t| -0.5 * (t[0] - 0.5).powi(2)),
        (2, 96, |t| -2.0 * ((t[0] - 0.5).powi(2) + (t[1] + 1.0).powi(2))),
        (2, 64, |t| -0.5 * (t[0] - 0.5).powi(2) - 6.0 * (t[1] - t[0] * t[0] + 1.0).powi(2)),
    ];
    for (i, (dim, evaluations, log_likelihood)) in problems.into_iter().enumerate() {
        let settings =
            Settings { max_evaluations: evaluations, surrogate: SurrogateChoice::WsabiL, ..Settings::default() };
        let run = integrate(log_likelihood, standard_prior(dim), Config { settings, ..Config::default() }).unwrap();
        let (belief, posterior) = (&run.engine.current().unwrap().surrogate, run.engine.posterior().unwrap());
        let grid = axis();
        let points: Vec<Vec<f64>> = if dim == 1 {
            grid.iter().map(|t| vec![*t]).collect()
        } else {
            grid.iter().flat_map(|s| grid.iter().map(move |t| vec![*s, *t])).collect()
        };
        let values = density(belief.warped().unwrap(), &points);
        let rows: Vec<f64> = values.chunks(values.len() / grid.len()).map(|v| v.iter().sum()).collect();
        let total: f64 = rows.iter().sum::<f64>() * STEP;
        let marginal = posterior.latent_marginal(0).unwrap();
        for (t, v) in grid.iter().zip(&rows) {
            let ours = marginal.density(*t).unwrap();
            // What is left is the rounding of m itself.
            assert!((ours - v / total).abs() < 1e-7, "problem {i} at {t}: {ours} {}", v / total);
        }
        for p in [0.025, 0.5, 0.975] {
            let q = marginal.quantile(p).unwrap();
            let brute = brute_cdf(&grid, &rows, q) / total;
            assert!((brute - p).abs() < 1e-7, "problem {i}: {brute} below the quantile {p}");
        }
        let moments = posterior.latent_moments().unwrap();
        let mean = grid.iter().zip(&rows).map(|(t, v)| t * v).sum::<f64>() * STEP / total;
        let variance = grid.iter().zip(&rows).map(|(t, v)| (t - mean).powi(2) * v).sum::<f64>() * STEP / total;
        assert!(
            (moments.mean[0] - mean).abs() < 1e-6 && (moments.covariance[0][0] - variance).abs() < 1e-6,
            "problem {i}: {moments:?} {mean} {variance}"
        );
    }
}

#[test]
fn a_posterior_outlives_its_run_and_is_shared_between_threads() {
    let posterior = {
        let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
        let run = integrate(|t| -t[0] * t[0], prior.clone(), Config::default()).unwrap();
        let current = run.engine.current().unwrap();
        Posterior::new(std::sync::Arc::clone(&current.surrogate), prior, 0).unwrap()
    };
    let mean = |_| posterior.marginal(0).unwrap().mean().to_bits();
    let alone = mean(0);
    let together: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|k| scope.spawn(move || mean(k))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(together, [alone; 4]);
}

#[test]
fn the_covariance_is_that_of_the_true_posterior() {
    // Two correlated coordinates under N(0, I): the posterior of a Gaussian likelihood with precision P is N(·, (I + P)⁻¹).
    let prior = standard_prior(2);
    let precision = [[4.0, 1.5], [1.5, 2.0]];
    let log_likelihood = move |t: &[f64]| {
        let (x, y) = (t[0] - 0.5, t[1] + 0.3);
        -0.5 * (precision[0][0] * x * x + 2.0 * precision[0][1] * x * y + precision[1][1] * y * y)
    };
    let settings = Settings { max_evaluations: 60, ..Settings::default() };
    let integral = integrate(log_likelihood, prior, Config { settings, ..Config::default() }).unwrap();
    let posterior = integral.engine.posterior().unwrap();
    let covariance = posterior.covariance().unwrap();
    let (a, b, c) = (1.0 + precision[0][0], precision[0][1], 1.0 + precision[1][1]);
    let determinant = a * c - b * b;
    let truth = [[c / determinant, -b / determinant], [-b / determinant, a / determinant]];
    let scale = (truth[0][0] * truth[1][1]).sqrt();
    let worth = posterior.draws(batchquad::infer::DRAWS, integral.engine.seed()).unwrap().effective();
    assert!(worth > 1200.0, "{worth}");
    assert_eq!(covariance.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    for (found, truth) in covariance.iter().flatten().zip(truth.iter().flatten()) {
        // The correlation comes from draws, whose worth is asserted above: 1/√1200 < 0.03 is a standard error.
        assert!(((found - truth) / scale).abs() < 0.03, "{covariance:?} {truth}");
    }
    assert!((covariance[0][1] - covariance[1][0]).abs() < 1e-14);
    // The diagonal is that of the marginals, to rounding.
    let sd = posterior.moments().unwrap().sd;
    assert!((covariance[0][0] - sd[0] * sd[0]).abs() < 1e-14);
}

#[test]
fn a_parameter_between_two_ends_always_has_a_mean() {
    // The likelihood rises with θ, so that the posterior leans against the upper end of its support.
    let prior = Prior::independent([
        ("rate", Distribution::log_uniform(1e-3, 10.0).unwrap()),
        ("share", Distribution::beta(1.0, 1.0).unwrap()),
    ])
    .unwrap();
    for surrogate in [SurrogateChoice::WsabiL, SurrogateChoice::Auto] {
        let settings = Settings { surrogate, max_evaluations: 64, ..Settings::default() };
        let config = Config { settings, ..Config::default() };
        let run = integrate(|t| 0.3 * t[0] + 2.0 * t[1], prior.clone(), config).unwrap();
        let found = run.engine.posterior().unwrap().moments().unwrap();
        // ∫θ e^{0.3θ} dθ/θ over ∫e^{0.3θ} dθ/θ from 10⁻³ to 10, and ∫θe^{2θ}dθ over ∫e^{2θ}dθ from 0 to 1, by the trapezoidal rule.
        let average = |low: f64, high: f64, weight: &dyn Fn(f64) -> f64| {
            let n = 200_000;
            let (mut sum, mut total) = (0.0, 0.0);
            for i in 0..=n {
                let t = low + (high - low) * f64::from(i) / f64::from(n);
                let w = if i == 0 || i == n { 0.5 } else { 1.0 } * weight(t);
                sum += w * if low < 0.0 { t.exp() } else { t };
                total += w;
            }
            sum / total
        };
        let rate = average(1e-3_f64.ln(), 10.0_f64.ln(), &|t| (0.3 * t.exp()).exp());
        let share = average(0.0, 1.0, &|t| (2.0 * t).exp());
        assert!((found.mean[0] / rate - 1.0).abs() < 0.05, "{surrogate:?}: {found:?}, expected {rate}");
        assert!((found.mean[1] - share).abs() < 0.02, "{surrogate:?}: {found:?}, expected {share}");
        assert!(found.sd.iter().all(|sd| sd.is_finite()), "{found:?}");
    }
}
