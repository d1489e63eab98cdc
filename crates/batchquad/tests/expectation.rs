//! Ratios of integrals: their value, their stated error, and whether it is honest.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Config, Engine, Error, Points, Prior, Settings,
    belief::{Gaussian, Kernel, Mixture, Model, SquaredExponential, Surrogate},
    infer::Posterior,
    integrate,
    numeric::{Jitter, Order, Purpose, Stream},
    prior::Distribution,
};

fn standard_prior(dim: usize) -> Prior {
    Prior::independent((0..dim).map(|k| (format!("p{k}"), Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

fn belief(model: Model, measure: Mixture) -> Surrogate {
    let nodes = Points::new(2, Stream::new(3, Purpose::Experiment, 0).normals(2 * 14)).unwrap();
    let logs: Vec<f64> = nodes.rows().map(|x| -(x[0] - 0.6).powi(2) - 0.5 * (x[1] + 0.3 * x[0]).powi(2)).collect();
    let kernel = SquaredExponential::new(0.9, vec![1.0, 1.2]).unwrap();
    Surrogate::with_kernel(model, measure.into(), &nodes, &logs, kernel, Jitter { nugget: 1e-8, rungs: 0 }).unwrap()
}

/// Two functions of the parameters, one of them nothing like a polynomial.
fn functions(x: &[f64]) -> Vec<f64> {
    vec![x[0] - 0.5 * x[1], 1.0 / (1.0 + (-3.0 * (x[0] + x[1])).exp())]
}

/// Ratios, their covariance and the covariance with log Z by double sums over a grid, from predictions alone.
fn brute(belief: &Surrogate) -> (Vec<f64>, [[f64; 3]; 3]) {
    let step = 0.25;
    let grid: Vec<f64> = (-26..=26).map(|i| f64::from(i) * step).collect();
    let rows: Vec<Vec<f64>> = grid.iter().flat_map(|s| grid.iter().map(move |t| vec![*s, *t])).collect();
    let points = Points::from_rows(&rows).unwrap();
    let gp = belief.gp();
    let mean = gp.predict(&points, Order::Value).unwrap().mean;
    let variance = gp.predict(&points, Order::Value).unwrap().variance;
    // A plain belief that is negative is no part of the posterior.
    let inside = |m: f64| f64::from(u8::from(belief.model() != Model::Plain || m > 0.0));
    let density: Vec<f64> = points
        .rows()
        .zip(&mean)
        .map(|(x, m)| inside(*m) * belief.measure().log_density(x).exp() * step * step)
        .collect();
    let integrand = |i: usize| match belief.model() {
        Model::Plain => mean[i].max(0.0),
        Model::WsabiL => belief.alpha() + 0.5 * mean[i].powi(2),
        Model::WsabiM => belief.alpha() + 0.5 * (mean[i].powi(2) + variance[i]),
    };
    let total: f64 = (0..rows.len()).map(|i| density[i] * integrand(i)).sum();
    let ratio: Vec<f64> = (0..2)
        .map(|k| (0..rows.len()).map(|i| density[i] * integrand(i) * functions(&rows[i])[k]).sum::<f64>() / total)
        .collect();
    let mut half = gp.kernel().gram(gp.nodes(), &points).unwrap();
    gp.factor().half_solve(&mut half);
    let deviations: Vec<[f64; 3]> = rows
        .iter()
        .enumerate()
        .map(|(i, x)| [functions(x)[0] - ratio[0], functions(x)[1] - ratio[1], 1.0].map(|d| d * density[i] / total))
        .collect();
    let mut covariance = [[0.0; 3]; 3];
    for i in (0..rows.len()).filter(|i| density[*i] > 1e-9) {
        for j in (0..rows.len()).filter(|j| density[*j] > 1e-9) {
            let known: f64 = half.col(i).iter().zip(half.col(j)).map(|(a, b)| a * b).sum();
            let c = gp.kernel().value(&rows[i], &rows[j]) - known;
            let of_integrand = match belief.model() {
                Model::Plain => c,
                Model::WsabiL => mean[i] * c * mean[j],
                Model::WsabiM => mean[i] * c * mean[j] + 0.5 * c * c,
            };
            for a in 0..3 {
                for b in 0..3 {
                    covariance[a][b] += deviations[i][a] * of_integrand * deviations[j][b];
                }
            }
        }
    }
    (ratio, covariance)
}

#[test]
fn ratios_and_their_covariances_are_the_double_integrals() {
    let mixture = Mixture::new(vec![
        (0.6, Gaussian::standard(2).unwrap()),
        (0.4, Gaussian::new(vec![0.5, 0.0], &[vec![0.5, 0.2], vec![0.2, 0.6]]).unwrap()),
    ])
    .unwrap();
    let standard: Mixture = Gaussian::standard(2).unwrap().into();
    for (model, measure) in [
        (Model::WsabiL, standard.clone()),
        (Model::WsabiL, mixture),
        (Model::WsabiM, standard.clone()),
        (Model::Plain, standard),
    ] {
        let belief = belief(model, measure);
        let (ratio, covariance) = brute(&belief);
        let prior = standard_prior(2);
        let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
        let found = posterior.expect(8192, 1, functions).unwrap();
        for k in 0..2 {
            // Four standard errors, or the rounding of what needs no draws; where a belief is cut off, the grid errs too.
            let slack = if model == Model::Plain { 0.02 } else { 4.0 * found.monte_carlo[k] + 1e-9 };
            assert!((found.mean[k] - ratio[k]).abs() < slack, "{model:?} {k}: {found:?} {ratio:?}");
            // Thousands of evenly spread draws know a double integral to some percent.
            assert!(
                (found.sd[k] / covariance[k][k].sqrt() - 1.0).abs() < 0.05,
                "{model:?} {k}: {found:?} {covariance:?}"
            );
            let scale = (covariance[k][k] * covariance[2][2]).sqrt();
            assert!(
                (found.with_log_z[k] - covariance[k][2]).abs() < 0.05 * scale,
                "{model:?} {k}: {found:?} {covariance:?}"
            );
        }
        let scale = (covariance[0][0] * covariance[1][1]).sqrt();
        assert!((found.covariance[0][1] - covariance[0][1]).abs() < 0.05 * scale);
        assert_eq!(found.covariance[0][1], found.covariance[1][0]);
        // The last of the brute force is the variance of log Z, which has a closed form.
        let estimate = belief.estimate().unwrap();
        assert!(
            model == Model::Plain
                || (covariance[2][2] / (estimate.variance / estimate.mean.powi(2)) - 1.0).abs() < 1e-3
        );
    }
}

#[test]
fn polynomials_of_degree_two_are_left_to_no_draw() {
    let belief = belief(Model::WsabiL, Gaussian::standard(2).unwrap().into());
    let prior = standard_prior(2);
    let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
    let found = posterior.expect(1024, 0, |x| vec![x[0], x[0] * x[1] + 3.0 * x[1]]).unwrap();
    let moments = posterior.latent_moments().unwrap();
    let quadratic = [vec![0.0, 1.0], vec![0.0, 0.0]];
    let exact = [moments.mean[0], moments.expect_quadratic(0.0, &[0.0, 3.0], &quadratic).unwrap()];
    for k in 0..2 {
        assert!((found.mean[k] - exact[k]).abs() < 1e-9 && found.monte_carlo[k] < 1e-9, "{found:?} {exact:?}");
    }
}

#[test]
fn functions_that_are_wrong_are_named() {
    let belief = belief(Model::WsabiL, Gaussian::standard(2).unwrap().into());
    let prior = standard_prior(2);
    let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
    assert!(matches!(posterior.expect(1024, 0, |_| vec![]), Err(Error::Length { .. })));
    assert!(matches!(
        posterior.expect(1024, 0, |x| vec![1.0; if x[0] > 0.0 { 1 } else { 2 }]),
        Err(Error::Length { .. })
    ));
    assert!(matches!(posterior.expect(1024, 0, |x| vec![x[0].ln()]), Err(Error::Invalid { .. })));
    assert!(matches!(posterior.expect(10, 0, |x| vec![x[0]]), Err(Error::Invalid { .. })));
}

/// The flights before the accident, as in `examples/orings`: (temperature, incidents).
fn flights() -> Vec<(f64, bool)> {
    include_str!("../../../examples/orings/orings.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').map(|c| c.trim_matches('"')).collect();
            let number = |k: usize| cells[k].parse::<f64>().unwrap();
            (number(ORING_COLUMNS.0), number(ORING_COLUMNS.1) > 0.0)
        })
        .collect()
}

fn log_logistic(z: f64) -> f64 {
    z.min(0.0) - (-z.abs()).exp().ln_1p()
}

fn logistic_run(data: Vec<(f64, bool)>, evaluations: usize, seed: u64) -> Engine {
    let log_likelihood = move |t: &[f64]| {
        data.iter().map(|&(x, y)| log_logistic(if y { t[0] + t[1] * x } else { -t[0] - t[1] * x })).sum::<f64>()
    };
    let normal = Distribution::normal(0.0, 5.0).unwrap();
    let prior = Prior::independent([("a", normal), ("b", normal)]).unwrap();
    let settings = Settings { max_evaluations: evaluations, ..Settings::default() };
    integrate(log_likelihood, prior, Config { settings, seed, ..Config::default() }).unwrap().engine
}

#[test]
fn the_o_rings_at_31_degrees() {
    let data: Vec<(f64, bool)> = flights().into_iter().map(|(t, y)| ((t - 70.0) / 10.0, y)).collect();
    assert_eq!(data.len(), 23);
    for seed in 0..4 {
        let engine = logistic_run(data.clone(), 64, seed);
        let estimate = engine.current().unwrap().estimate;
        assert!((estimate.log_z + 14.01941).abs() < 0.02, "{estimate:?}");
        let predict = |t: &[f64]| vec![log_logistic(t[0] + t[1] * (31.0 - 70.0) / 10.0).exp()];
        let found = engine.posterior().unwrap().expect(4096, 0, predict).unwrap();
        let error = found.mean[0] - 0.987_446;
        println!(
            "seed {seed}: log Z {:.5} ± {:.5}, p {:.6} ± {:.6} (draws {:.6}), error {error:+.6}",
            estimate.log_z, estimate.log_z_sd, found.mean[0], found.sd[0], found.monte_carlo[0]
        );
        assert!(error.abs() < 0.003, "{found:?}");
        // Honest: neither far too small nor so large that it says nothing.
        assert!(error.abs() < 3.0 * found.error(0) && found.error(0) < 0.01, "{found:?}");
    }
}

/// Where the columns of the data stand.
const ORING_COLUMNS: (usize, usize) = (1, 4);

#[test]
fn stated_errors_cover_the_truth_over_many_problems() {
    let (mut inside_one, mut inside_two, mut count) = (0, 0, 0);
    for problem in 0..24_u64 {
        let mut stream = Stream::new(problem, Purpose::Experiment, 9);
        let (a, b) = (0.7 * stream.normal(), -1.0 + 0.5 * stream.normal());
        let data: Vec<(f64, bool)> = (0..20)
            .map(|_| {
                let x = stream.normal();
                (x, stream.uniform() < log_logistic(a + b * x).exp())
            })
            .collect();
        let engine = logistic_run(data.clone(), 28, problem);
        let predict = |t: &[f64]| [-2.0, 0.5, 3.0].map(|x| log_logistic(t[0] + t[1] * x).exp()).to_vec();
        let found = engine.posterior().unwrap().expect(4096, 0, predict).unwrap();
        let truth = by_grid(&data, &predict);
        for k in 0..3 {
            let z = (found.mean[k] - truth[k]).abs() / found.error(k);
            count += 1;
            inside_one += usize::from(z < 1.0);
            inside_two += usize::from(z < 2.0);
        }
    }
    println!("{inside_one} and {inside_two} of {count} within one and two stated errors");
    // A perfect error bar has 68 % and 95 %; the linearised model is somewhat too sure of itself.
    assert!(inside_one * 100 >= 50 * count, "{inside_one} of {count}");
    assert!(inside_two * 100 >= 75 * count, "{inside_two} of {count}");
}

/// Posterior expectations by the trapezoidal rule over ±6 prior standard deviations.
fn by_grid(data: &[(f64, bool)], f: &dyn Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let grid: Vec<f64> = (-300..=300).map(|i| f64::from(i) * 0.1).collect();
    let (mut total, mut sums) = (0.0, vec![0.0; 3]);
    for a in &grid {
        for b in &grid {
            let log_prior = -0.5 * (a * a + b * b) / 25.0;
            if log_prior < -18.0 {
                continue;
            }
            let log_likelihood: f64 =
                data.iter().map(|&(x, y)| log_logistic(if y { a + b * x } else { -a - b * x })).sum();
            let weight = (log_likelihood + log_prior).exp();
            if weight < 1e-25 {
                continue;
            }
            total += weight;
            for (s, v) in sums.iter_mut().zip(f(&[*a, *b])) {
                *s += weight * v;
            }
        }
    }
    sums.iter().map(|s| s / total).collect()
}
