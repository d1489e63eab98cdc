//! The posterior after a run, against the true one; parameters under every kind of prior; draws against closed forms.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Config, Engine, Error, Points, Prior, Settings,
    belief::{Gaussian, Model, SquaredExponential, Surrogate},
    infer::{Marginal, Method, Posterior},
    integrate,
    numeric::Jitter,
    prior::{Distribution, UnitCubeMap},
};

fn run(prior: Prior, evaluations: usize, model: Model, log_likelihood: fn(&[f64]) -> f64) -> Engine {
    let settings = Settings { max_evaluations: evaluations, surrogate: model.into(), ..Settings::default() };
    integrate(log_likelihood, prior, Config { settings, ..Config::default() }).unwrap().engine
}

/// A bent ridge over a positive and a bounded parameter.
fn bent(theta: &[f64]) -> f64 {
    let (a, b) = (theta[0].ln(), theta[1]);
    -0.5 * ((a - 0.4) / 0.5).powi(2) - 0.5 * ((b - 1.0 - 0.6 * a * a) / 0.4).powi(2)
}

fn bent_prior() -> Prior {
    let (a, b) = (Distribution::gamma(2.0, 1.0).unwrap(), Distribution::uniform(-3.0, 3.0).unwrap());
    Prior::independent([("a", a), ("b", b)]).unwrap()
}

/// Mean, sd, 2.5 % and 97.5 % of each parameter by the midpoint rule on the true posterior.
fn truth() -> [[f64; 4]; 2] {
    let n = 3000;
    let (a, b): (Vec<f64>, Vec<f64>) =
        (0..n).map(|i| (f64::from(i) + 0.5) / f64::from(n)).map(|p| (12.0 * p, 6.0 * p - 3.0)).unzip();
    let mut margins = [vec![0.0; a.len()], vec![0.0; b.len()]];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let density = (bent(&[*x, *y]) + x.ln() - x).exp();
            margins[0][i] += density;
            margins[1][j] += density;
        }
    }
    [(&a, &margins[0]), (&b, &margins[1])].map(|(at, margin)| {
        let total: f64 = margin.iter().sum();
        let mean = at.iter().zip(margin).map(|(t, m)| t * m).sum::<f64>() / total;
        let variance = at.iter().zip(margin).map(|(t, m)| (t - mean).powi(2) * m).sum::<f64>() / total;
        let quantile = |p: f64| {
            let mut sum = 0.0;
            at.iter()
                .zip(margin)
                .find(|(_, m)| {
                    sum += **m;
                    sum >= p * total
                })
                .map(|(t, _)| *t)
                .unwrap()
        };
        [mean, variance.sqrt(), quantile(0.025), quantile(0.975)]
    })
}

#[test]
fn a_converged_run_knows_the_true_posterior() {
    let engine = run(bent_prior(), 96, Model::WsabiL, bent);
    let posterior = engine.posterior().unwrap();
    for (k, [mean, sd, low, high]) in truth().into_iter().enumerate() {
        let marginal = posterior.marginal(k).unwrap();
        assert_eq!(marginal.method(), Method::ClosedForm);
        let found = (marginal.mean(), marginal.sd(), marginal.interval(0.95).unwrap());
        println!("{k}: {found:?} against {mean} {sd} {low} {high}");
        assert!((marginal.mean() - mean).abs() < 0.02 * sd, "{found:?} {mean}");
        assert!((marginal.sd() / sd - 1.0).abs() < 0.02, "{found:?} {sd}");
        let (a, b) = marginal.interval(0.95).unwrap();
        assert!(
            (a - low).abs() < 0.02 * (high - low) && (b - high).abs() < 0.02 * (high - low),
            "{found:?} {low} {high}"
        );
    }
}

/// One node with the value one and one very far away with the value zero: the integrand is exactly `exp(−(u − x)²/λ²)`.
fn bump(x: &[f64], lengthscale: f64, model: Model) -> Surrogate {
    let far: Vec<f64> = x.iter().map(|x| x + 1e3).collect();
    let nodes = Points::from_rows(&[x.to_vec(), far]).unwrap();
    let kernel = SquaredExponential::new(1.0, vec![lengthscale; x.len()]).unwrap();
    let measure = Gaussian::standard(x.len()).unwrap().into();
    Surrogate::with_kernel(
        model,
        measure,
        &nodes,
        &[0.0, f64::NEG_INFINITY],
        kernel,
        Jitter { nugget: 1e-14, rungs: 0 },
    )
    .unwrap()
}

/// Mean and variance of the posterior of [`bump`] in each coordinate.
fn bump_moments(x: f64, lengthscale: f64) -> (f64, f64) {
    let pull = 2.0 / lengthscale.powi(2);
    (x * pull / (1.0 + pull), 1.0 / (1.0 + pull))
}

#[test]
fn parameters_of_every_family_have_the_density_of_the_changed_variable() {
    let families = [
        Distribution::normal(3.0, 2.0),
        Distribution::log_normal(0.5, 0.7),
        Distribution::uniform(-1.0, 4.0),
        Distribution::log_uniform(0.01, 100.0),
        Distribution::beta(2.0, 0.8),
        Distribution::gamma(1.5, 2.0),
        Distribution::inverse_gamma(3.0, 1.0),
        Distribution::exponential(2.0),
        Distribution::half_normal(1.5),
        Distribution::student_t(4.0, 0.0, 1.0),
        Distribution::truncated_normal(0.0, 1.0, -0.5, 2.0),
    ];
    let (mean, variance) = bump_moments(0.9, 0.8);
    let sd = variance.sqrt();
    for family in families.map(Result::unwrap) {
        let prior = Prior::independent([("x", family)]).unwrap();
        let belief = bump(&[0.9], 0.8, Model::WsabiL);
        let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
        let marginal = posterior.marginal(0).unwrap();
        let name = family.family().name();
        for z in [-2.0, -0.3, 0.0, 1.1, 2.4] {
            let u = mean + sd * z;
            let theta = family.to_theta(u).unwrap();
            let p = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            assert!((marginal.cdf(theta).unwrap() - p).abs() < 1e-9, "{name} at {z}");
            assert!((family.to_latent(marginal.quantile(p).unwrap()).unwrap() - u).abs() < 1e-8, "{name} at {z}");
            // Bayes' rule in the user's own units: likelihood times prior over evidence.
            let likelihood = (-(u - 0.9).powi(2) / 0.64).exp();
            let evidence = belief.estimate().unwrap().mean;
            let bayes = likelihood * family.log_density(theta).exp() / evidence;
            assert!((marginal.density(theta).unwrap() / bayes - 1.0).abs() < 1e-8, "{name} at {z}");
            assert!(
                (marginal.prior_density(theta).unwrap().unwrap() / family.log_density(theta).exp() - 1.0).abs() < 1e-8
            );
        }
        // Moments by a fine Riemann sum over the known normal distribution.
        let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
            (-4000..=4000)
                .map(|i| f64::from(i) * 0.002)
                .map(|z| (-0.5 * z * z).exp() * of(family.to_theta(mean + sd * z).unwrap()))
                .sum::<f64>()
                * 0.002
                / std::f64::consts::TAU.sqrt()
        };
        let expected = sum(&|t| t);
        let spread = sum(&|t| (t - expected).powi(2)).sqrt();
        assert!(
            (marginal.mean() - expected).abs() < 1e-6 * (spread + expected.abs()),
            "{name}: {} {expected}",
            marginal.mean()
        );
        assert!((marginal.sd() / spread - 1.0).abs() < 1e-6, "{name}: {} {spread}", marginal.sd());
        highest_density(&marginal, name);
    }
}

/// The set has the mass it claims, all of it is denser than what is outside, and it is no longer than the central interval.
fn highest_density(marginal: &Marginal, name: &str) {
    let pieces = marginal.highest_density(0.9).unwrap();
    let mass: f64 = pieces.iter().map(|(a, b)| marginal.cdf(*b).unwrap() - marginal.cdf(*a).unwrap()).sum();
    assert!((mass - 0.9).abs() < 1e-8, "{name}: {mass} in {pieces:?}");
    let length: f64 = pieces.iter().map(|(a, b)| b - a).sum();
    let (a, b) = marginal.interval(0.9).unwrap();
    assert!(length <= (b - a) * (1.0 + 1e-9), "{name}: {pieces:?} against {:?}", (a, b));
    let curve = marginal.curve(400).unwrap();
    assert_eq!(curve.negative, 0, "{name}");
    let inside = |t: f64| pieces.iter().any(|(a, b)| t >= *a && t <= *b);
    let at = |of: bool| curve.theta.iter().zip(&curve.density).filter(move |(t, _)| inside(**t) == of).map(|(_, d)| *d);
    let (lowest_in, highest_out) = (at(true).fold(f64::INFINITY, f64::min), at(false).fold(0.0, f64::max));
    assert!(lowest_in >= highest_out * (1.0 - 1e-9), "{name}: {lowest_in} {highest_out}");
}

#[test]
fn two_summits_make_a_set_of_two_pieces() {
    let two = |t: &[f64]| {
        let lump = |c: f64, w: f64| w * (-0.5 * ((t[0] - c) / 0.3).powi(2)).exp();
        (lump(-1.5, 0.6) + lump(1.0, 1.0)).ln()
    };
    let prior = Prior::independent([("x", Distribution::normal(0.0, 1.5).unwrap())]).unwrap();
    let engine = run(prior, 40, Model::WsabiL, two);
    let marginal = engine.posterior().unwrap().marginal(0).unwrap();
    assert_eq!(marginal.highest_density(0.9).unwrap().len(), 2);
    highest_density(&marginal, "two summits");
}

#[test]
fn heavy_tails_have_no_mean_and_say_so() {
    // All values equal: α is most of the likelihood and the posterior is the prior.
    let prior = Prior::independent([("x", Distribution::cauchy(0.0, 1.0).unwrap())]).unwrap();
    let engine = run(prior, 16, Model::WsabiL, |_| 0.0);
    let marginal = engine.posterior().unwrap().marginal(0).unwrap();
    assert!(marginal.mean().is_nan() && marginal.sd().is_nan(), "{} {}", marginal.mean(), marginal.sd());
    let (low, high) = marginal.interval(0.5).unwrap();
    // The quartiles of the Cauchy distribution, as well as sixteen values know a constant.
    assert!((low + 1.0).abs() < 0.02 && (high - 1.0).abs() < 0.02, "{low} {high}");
}

#[test]
fn jointly_normal_parameters_are_affine_and_in_closed_form() {
    let covariance = vec![vec![1.0, 0.6], vec![0.6, 2.0]];
    let prior = Prior::multivariate_normal(["x", "y"], vec![10.0, -5.0], covariance.clone()).unwrap();
    let belief = bump(&[0.5, -1.0], 1.2, Model::WsabiL);
    let posterior = Posterior::new(belief.clone(), prior.clone(), 0).unwrap();
    let (m0, variance) = bump_moments(0.5, 1.2);
    let (m1, _) = bump_moments(-1.0, 1.2);
    let theta = prior.to_theta(&[m0, m1]).unwrap();
    for k in 0..2 {
        let marginal = posterior.marginal(k).unwrap();
        assert_eq!(marginal.method(), Method::ClosedForm);
        assert!(
            (marginal.mean() - theta[k]).abs() < 1e-9
                && (marginal.sd() - (variance * covariance[k][k]).sqrt()).abs() < 1e-9
        );
        let at = prior.to_theta(&[0.0, 0.0]).unwrap()[k];
        let density = 1.0 / (std::f64::consts::TAU * covariance[k][k]).sqrt();
        assert!((marginal.prior_density(at).unwrap().unwrap() - density).abs() < 1e-12);
    }
    let joint = posterior.joint(0, 1).unwrap();
    let (dx, dy) = (0.4, -0.3);
    let surface = joint.on(&[theta[0] + dx], &[theta[1] + dy]).unwrap();
    let determinant = variance * variance * (1.0 * 2.0 - 0.36);
    let form = (2.0 * dx * dx - 1.2 * dx * dy + dy * dy) / ((2.0 - 0.36) * variance);
    let expected = (-0.5 * form).exp() / (std::f64::consts::TAU * determinant.sqrt());
    assert!((surface.density[0] / expected - 1.0).abs() < 1e-9, "{surface:?} {expected}");
}

#[test]
fn what_a_map_couples_is_drawn_and_says_so() {
    let map = UnitCubeMap::from(|v: &[f64]| vec![v[0], v[0] + v[1]]);
    let cube = Prior::from_unit_cube(["first", "sum"], map).unwrap();
    let prior =
        Prior::product([cube, Prior::independent([("plain", Distribution::normal(0.0, 1.0).unwrap())]).unwrap()])
            .unwrap();
    let belief = bump(&[0.2, 0.0, -0.5], 1.0, Model::WsabiL);
    let posterior = Posterior::new(belief.clone(), prior.clone(), 3).unwrap();
    assert_eq!(posterior.marginal(2).unwrap().method(), Method::ClosedForm);
    let sum = posterior.marginal(1).unwrap();
    assert_eq!((sum.method(), posterior.joint(1, 2).unwrap().method()), (Method::Draws, Method::Draws));
    assert_eq!(sum.prior_density(1.0).unwrap(), None);
    // By simulation from the known normal posterior: two draws of Φ(m + s z) added up.
    let (m, v) = bump_moments(0.2, 1.0);
    let phi = |u: f64| 0.5 * libm::erfc(-u / std::f64::consts::SQRT_2);
    let mut stream = batchquad::numeric::Stream::new(1, batchquad::numeric::Purpose::Experiment, 0);
    let mut sums: Vec<f64> =
        (0..100_000).map(|_| phi(m + v.sqrt() * stream.normal()) + phi(v.sqrt() * stream.normal())).collect();
    sums.sort_by(f64::total_cmp);
    let mean = sums.iter().sum::<f64>() / 1e5;
    // Some thousand effective draws of an sd of 0.25, spread evenly; the smoothing of the quantiles adds to that.
    assert!((sum.mean() - mean).abs() < 0.01, "{} {mean}", sum.mean());
    let (low, high) = sum.interval(0.9).unwrap();
    assert!((low - sums[5_000]).abs() < 0.03 && (high - sums[95_000]).abs() < 0.03, "{low} {high}");
}

#[test]
fn the_other_models_are_drawn_and_agree_with_grids_of_the_same_belief() {
    let bell = |t: &[f64]| -2.0 * ((t[0] - 1.0).powi(2) + t[1].powi(2));
    for model in [Model::Plain, Model::WsabiM] {
        let normal = Distribution::normal(0.0, 1.0).unwrap();
        let engine = run(Prior::independent([("x", normal), ("y", normal)]).unwrap(), 48, model, bell);
        let posterior = engine.posterior().unwrap();
        assert_eq!(posterior.method(), Method::Draws);
        // Where the plain belief is negative there is no posterior.
        let grid: Vec<f64> = (-100..=100).map(|i| f64::from(i) * 0.06).collect();
        let points: Vec<Vec<f64>> = grid.iter().flat_map(|s| grid.iter().map(move |t| vec![*s, *t])).collect();
        let belief = engine.current().unwrap().surrogate.warped().unwrap();
        let entered = belief.frame().enter(&Points::from_rows(&points).unwrap()).unwrap();
        let values = belief.moments(&entered).unwrap();
        let weight = |i: usize| values[i].0.max(0.0) * belief.measure().log_density(entered.row(i)).exp();
        let weights: Vec<f64> = (0..points.len()).map(weight).collect();
        let total: f64 = weights.iter().sum();
        let draws = posterior.draws(4096, 1).unwrap();
        assert!(model == Model::WsabiM || draws.negative() > 0);
        for k in 0..2 {
            let average =
                |of: &dyn Fn(f64) -> f64| points.iter().zip(&weights).map(|(x, w)| w * of(x[k])).sum::<f64>() / total;
            let mean = average(&|t| t);
            let sd = average(&|t| (t - mean).powi(2)).sqrt();
            let marginal = posterior.marginal(k).unwrap();
            // Draws worth more than a thousand independent ones; quantiles are smoothed besides.
            assert!(draws.effective() > 1000.0);
            assert!((marginal.mean() - mean).abs() < 0.05 * sd && (marginal.sd() / sd - 1.0).abs() < 0.05, "{model:?}");
            let (low, high) = marginal.interval(0.9).unwrap();
            assert!((average(&|t| f64::from(u8::from(t < low))) - 0.05).abs() < 0.015, "{model:?}");
            assert!((average(&|t| f64::from(u8::from(t < high))) - 0.95).abs() < 0.015, "{model:?}");
        }
        let surface = posterior.joint(0, 1).unwrap().surface(40).unwrap();
        let levels = surface.levels(&[0.5, 0.95]).unwrap();
        let peak = surface.density.iter().copied().fold(0.0, f64::max);
        // For a normal distribution in the plane, which this nearly is, the contour of mass p has the height (1 − p) of the summit.
        assert!((levels[0] / peak - 0.5).abs() < 0.1 && (levels[1] / peak - 0.05).abs() < 0.03, "{levels:?} {peak}");
    }
}

#[test]
fn draws_have_the_moments_of_the_closed_form_on_ten_problems() {
    type Problem = (usize, fn(&[f64]) -> f64);
    let problems: [Problem; 10] = [
        (1, |t| -0.5 * (t[0] - 0.5).powi(2) / 0.09),
        (1, |t| (0.3 * (-2.0 * (t[0] + 1.0).powi(2)).exp() + (-8.0 * (t[0] - 1.0).powi(2)).exp() + 0.01).ln()),
        (1, |t| -(1.0 + (t[0] / 0.3).powi(2)).ln()),
        (2, |t| -2.0 * ((t[0] - 1.0).powi(2) + t[1].powi(2))),
        (2, |t| -0.5 * (t[0] - 0.5).powi(2) - 6.0 * (t[1] - t[0] * t[0] + 1.0).powi(2)),
        (2, |t| -8.0 * (t[0] + t[1]).powi(2) - (t[0] - t[1] - 1.0).powi(2)),
        (2, |t| {
            ((-3.0 * ((t[0] - 1.2).powi(2) + t[1].powi(2))).exp()
                + (-3.0 * ((t[0] + 1.2).powi(2) + t[1].powi(2))).exp())
            .ln()
        }),
        (3, |t| -1.5 * t.iter().map(|x| (x - 0.4).powi(2)).sum::<f64>()),
        (3, |t| -t.iter().map(|x| x.abs()).sum::<f64>()),
        (4, |t| -0.8 * t.iter().enumerate().map(|(k, x)| (x - 0.2 * k as f64).powi(2)).sum::<f64>()),
    ];
    for (i, (dim, log_likelihood)) in problems.into_iter().enumerate() {
        let prior =
            Prior::independent((0..dim).map(|k| (format!("p{k}"), Distribution::normal(0.0, 1.0).unwrap()))).unwrap();
        let engine = run(prior, 24 + 12 * dim, Model::WsabiL, log_likelihood);
        let posterior = engine.posterior().unwrap();
        let exact = posterior.latent_moments().unwrap();
        let draws = posterior.draws(4096, 11).unwrap();
        assert!(draws.effective() > 400.0 && draws.negative() == 0, "{i}: {}", draws.effective());
        let w: Vec<f64> = draws.log_weights().iter().map(|l| l.exp()).collect();
        assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for k in 0..dim {
            let u: Vec<f64> = draws.latent().rows().map(|u| u[k]).collect();
            for power in [1, 2] {
                let value = |u: f64| (u - exact.mean[k]).powi(power);
                let expected = if power == 1 { 0.0 } else { exact.covariance[k][k] };
                let mean: f64 = u.iter().zip(&w).map(|(u, w)| w * value(*u)).sum();
                let error = u.iter().zip(&w).map(|(u, w)| (w * (value(*u) - mean)).powi(2)).sum::<f64>().sqrt();
                // Four standard errors of independent draws; Sobol points are usually well inside one.
                assert!(
                    (mean - expected).abs() < 4.0 * error,
                    "problem {i}, coordinate {k}, power {power}: {mean} {expected} ± {error}"
                );
            }
        }
        // Equally weighted draws: the same mean within what resampling 2000 times may lose.
        let chosen = draws.resample(2000).unwrap();
        for k in 0..dim {
            let mean = chosen.iter().map(|&s| draws.latent().row(s)[k]).sum::<f64>() / 2000.0;
            let error = exact.covariance[k][k].sqrt() * (1.0 / draws.effective() + 1.0 / 2000.0).sqrt();
            assert!((mean - exact.mean[k]).abs() < 4.0 * error, "{i} {k}: {mean} {}", exact.mean[k]);
        }
    }
}

#[test]
fn draws_are_functions_of_the_seed_and_of_nothing_else() {
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    let prior = || Prior::independent([("x", normal), ("y", normal)]).unwrap();
    let bell = |t: &[f64]| -2.0 * ((t[0] - 1.0).powi(2) + t[1].powi(2));
    let engine = run(prior(), 32, Model::WsabiL, bell);
    let posterior = engine.posterior().unwrap();
    let take = |seed: u64| {
        let draws = posterior.draws(1000, seed).unwrap();
        (draws.theta().clone(), draws.log_weights().to_vec(), draws.resample(100).unwrap())
    };
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        let again = run(prior(), 32, Model::WsabiL, bell);
        let draws = again.posterior().unwrap().draws(1000, 5).unwrap();
        (draws.theta().clone(), draws.log_weights().to_vec(), draws.resample(100).unwrap())
    });
    assert_eq!(take(5), one);
    assert_ne!(take(6).0, one.0);
    assert!(matches!(posterior.draws(8, 0), Err(Error::Invalid { .. })));
    assert!(matches!(posterior.marginal(2), Err(Error::Invalid { .. })));
    assert!(matches!(posterior.joint(1, 1), Err(Error::Invalid { .. })));
    let x = posterior.marginal(0).unwrap();
    for p in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(x.quantile(p).is_err() && x.interval(p).is_err() && x.highest_density(p).is_err());
    }
    assert!(x.density(f64::NAN).is_err() && x.curve(1).is_err());
}
