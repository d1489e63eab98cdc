//! The belief about log ℓ: exact where it should be, honest where it cannot be.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::f64::consts::TAU;

use batchquad::{
    Config, Engine, Prior, Settings,
    choose::BatchRule,
    infer::Method,
    integrate,
    journal::{Event, Told},
    numeric::{Purpose, Stream},
    prior::Distribution,
    run::{Level, SurrogateChoice, diagnose},
    types::Outcome,
};

fn prior(d: usize) -> Prior {
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    Prior::independent((0..d).map(|k| (format!("x{k}"), normal))).unwrap()
}

fn go(
    d: usize,
    evaluations: usize,
    log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
) -> batchquad::Integral {
    let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: evaluations, ..Settings::default() };
    integrate(log_likelihood, prior(d), Config { settings, ..Config::default() }).unwrap()
}

/// A run with batches of at most half of the values, with which what single seeds do was measured.
fn halves(
    log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    prior: Prior,
    max_evaluations: usize,
    seed: u64,
) -> batchquad::Integral {
    let surrogate = SurrogateChoice::Log;
    let settings = Settings { surrogate, batch_growth: Some(0.5), max_evaluations, ..Settings::default() };
    integrate(log_likelihood, prior, Config { settings, seed, ..Config::default() }).unwrap()
}

/// `log N(x; mean, s²)` in each coordinate.
fn bell(theta: &[f64], mean: f64, s: f64) -> f64 {
    theta.iter().map(|t| -0.5 * ((t - mean) / s).powi(2) - 0.5 * (TAU * s * s).ln()).sum()
}

/// The evidence of [`bell`] under `N(0, I)`.
fn evidence(d: usize, mean: f64, s: f64) -> f64 {
    bell(&vec![0.0; d], mean, (1.0 + s * s).sqrt())
}

#[test]
fn normal_posteriors_far_narrower_than_the_prior_are_exact() {
    // A process with a quadratic is exact for these after (d + 1)(d + 2)/2 values; the limit is the noise that keeps the matrix well conditioned.
    for (d, s, n) in [(1, 0.02, 24), (2, 0.02, 40), (4, 0.05, 64), (6, 0.03, 96)] {
        let run = go(d, n, move |t| bell(t, 0.6, s));
        let error = run.estimate.log_z - evidence(d, 0.6, s);
        // Most of the bar is what may be where nobody has looked.
        assert!(error.abs() < 1e-3 && run.estimate.log_z_sd < 0.05, "{d}: {error:e} ± {:e}", run.estimate.log_z_sd);
        let belief = run.engine.current().unwrap().surrogate.log().unwrap().clone();
        assert!(belief.arrived());
    }
}

/// A normal likelihood of which four of six parameters are correlated, with standard deviations from 0.02 to 0.1.
fn slanted(x: &[f64]) -> f64 {
    let y = [x[0] - 2.0, x[1] + 4.0, x[2], x[3] - 6.0];
    let (a, b, c, d) = (y[0] + y[1], y[0] - y[1], y[2] + y[3], y[2] - y[3]);
    let (e, f) = (a + c, a - c);
    let s = std::f64::consts::SQRT_2;
    bell(&[e / 2.0], 0.0, 0.02) + bell(&[f / 2.0], 0.0, 0.05) + bell(&[b / s], 0.0, 0.1) + bell(&[d / s], 0.0, 0.03)
}

#[test]
fn normal_posteriors_under_priors_that_are_not_are_exact_too() {
    let uniform = || Distribution::uniform(-10.0, 10.0).unwrap();
    let (exponential, half) = (Distribution::exponential(0.2).unwrap(), Distribution::half_normal(3.0).unwrap());
    let all = [uniform(), uniform(), uniform(), uniform(), exponential, half];
    let prior = Prior::independent(all.into_iter().enumerate().map(|(k, d)| (format!("x{k}"), d))).unwrap();
    let log_likelihood = |x: &[f64]| slanted(&x[..4]) + bell(&x[4..5], 4.0, 0.05) + bell(&x[5..6], 2.0, 0.1);
    // ∫ N(x; m, s²) r e^(−rx) dx = r e^(−rm + r²s²/2), ∫ N(x; m, s²) 2N(x; 0, h²) dx = 2N(m; 0, s² + h²).
    let truth = -4.0 * 20_f64.ln() + 0.2_f64.ln() - 0.8
        + 0.5 * 0.01_f64.powi(2)
        + 2_f64.ln()
        + bell(&[2.0], 0.0, 3_f64.hypot(0.1));
    for seed in 1..4 {
        let settings = Settings { max_evaluations: 88, ..Settings::default() };
        let run = integrate(log_likelihood, prior.clone(), Config { settings, seed, ..Config::default() }).unwrap();
        let error = run.estimate.log_z - truth;
        assert!(error.abs() < 2e-3 && run.estimate.log_z_sd < 0.05, "{seed}: {error:e} ± {:e}", run.estimate.log_z_sd);
    }
}

#[test]
fn a_posterior_at_an_end_of_its_prior_is_exact() {
    let prior = || {
        let uniform = Distribution::uniform(0.0, 1.0).unwrap();
        Prior::independent((0..3).map(|k| (format!("x{k}"), uniform))).unwrap()
    };
    let settings = Settings { max_evaluations: 48, ..Settings::default() };
    let config = Config { settings, ..Config::default() };
    let run = integrate(|x: &[f64]| -x.iter().sum::<f64>() / 0.02, prior(), config).unwrap();
    let error = run.estimate.log_z - 3.0 * 0.02_f64.ln();
    assert!(error.abs() < 1e-3 && run.estimate.log_z_sd < 0.01, "{error:e} ± {:e}", run.estimate.log_z_sd);
}

#[test]
fn an_offset_moves_log_z_and_nothing_else() {
    let near = go(2, 48, |t| bell(t, 0.6, 0.1));
    let far = go(2, 48, |t| bell(t, 0.6, 0.1) - 1e6);
    // A double at a million has ten digits behind the point.
    assert!((near.estimate.log_z - far.estimate.log_z - 1e6).abs() < 1e-4);
}

#[test]
fn the_posterior_is_that_of_the_likelihood() {
    let run = go(2, 64, |t| bell(t, 0.6, 0.1));
    let posterior = run.engine.posterior().unwrap();
    assert_eq!(posterior.method(), Method::Draws);
    let (mean, sd) = (0.6 / 1.01, (0.01_f64 / 1.01).sqrt());
    for k in 0..2 {
        let marginal = posterior.marginal(k).unwrap();
        // Thousands of quasi-random draws, smoothed: a hundredth of a standard deviation and a few per cent of it.
        assert!((marginal.mean() - mean).abs() < 0.02 * sd, "{} {mean}", marginal.mean());
        assert!((marginal.sd() / sd - 1.0).abs() < 0.05, "{} {sd}", marginal.sd());
    }
    let square = posterior.expect(4096, 1, |t| vec![t[0] * t[0]]).unwrap();
    let truth = mean * mean + sd * sd;
    assert!((square.mean[0] - truth).abs() < 4.0 * square.error(0) + 1e-4, "{square:?} {truth}");
}

#[test]
fn noise_is_found_and_said_and_the_bar_holds() {
    let noisy = |t: &[f64]| {
        let bits = t.iter().fold(7_u64, |h, v| (h ^ v.to_bits()).wrapping_mul(0x100_0000_01b3).rotate_left(17));
        bell(t, 0.5, 0.4) + 0.3 * Stream::new(bits, Purpose::Experiment, 0).normal()
    };
    let run = go(2, 96, noisy);
    let error = run.estimate.log_z - evidence(2, 0.5, 0.4);
    assert!(error.abs() < 4.0 * run.estimate.log_z_sd && run.estimate.log_z_sd < 0.3, "{error} {:?}", run.estimate);
    let belief = run.engine.current().unwrap().surrogate.log().unwrap().clone();
    assert!(belief.noise() > 0.15 && belief.noise() < 0.6, "{}", belief.noise());
    let diagnosis = diagnose(&run.engine).unwrap();
    assert!(diagnosis.findings.iter().any(|f| f.name == "noise" && f.level == Level::Look));
}

#[test]
fn before_a_run_has_arrived_no_small_bar_is_stated() {
    // Ten values in six dimensions know nothing of a posterior a hundred times narrower than the prior.
    let run = go(6, 18, |t| bell(t, 0.9, 0.01));
    assert!(run.estimate.log_z_sd >= 20.0, "{:?}", run.estimate);
    let diagnosis = diagnose(&run.engine).unwrap();
    assert_eq!(diagnosis.verdict, Level::DoNotTrust);
    assert!(diagnosis.summary().contains("not arrived"), "{}", diagnosis.summary());
}

/// Two peaks of equal weight, far apart for their widths.
fn two_bells(theta: &[f64]) -> f64 {
    let (a, b) = (bell(theta, 0.9, 0.15), bell(theta, -0.9, 0.1));
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[test]
fn peaks_that_are_far_apart_have_a_process_each() {
    for d in [2, 3] {
        // Each is found by what is seen of it from far away; both are normal, so that what is found is exact.
        let run = halves(two_bells, prior(d), 112, 0);
        let current = run.engine.current().unwrap();
        let log = current.surrogate.log().unwrap();
        assert_eq!(log.peaks(), 2, "{d}");
        let (a, b) = (evidence(d, 0.9, 0.15), evidence(d, -0.9, 0.1));
        let truth = a.max(b) + (-(a - b).abs()).exp().ln_1p();
        assert!((run.estimate.log_z - truth).abs() < 1e-3, "{d}: {} {truth}", run.estimate.log_z);
        // The posterior has both: the mean of the first parameter is that of two normal distributions.
        let mean = |m: f64, s: f64| m / (1.0 + s * s);
        let expected = ((a - truth).exp()) * mean(0.9, 0.15) + ((b - truth).exp()) * mean(-0.9, 0.1);
        let found = run.engine.posterior().unwrap().marginal(0).unwrap().mean();
        assert!((found - expected).abs() < 0.01, "{d}: {found} {expected}");
    }
}

/// A second peak that is found late must not undo the first, and what is seen of its slopes must lead to it.
#[test]
fn narrow_peaks_in_four_dimensions_are_found_without_losing_one_another() {
    let log_likelihood = |theta: &[f64]| {
        let (a, b) = (bell(theta, 0.7, 0.07), bell(theta, -0.8, 0.1));
        a.max(b) + (-(a - b).abs()).exp().ln_1p()
    };
    let (a, b) = (evidence(4, 0.7, 0.07), evidence(4, -0.8, 0.1));
    let truth = a.max(b) + (-(a - b).abs()).exp().ln_1p();
    let mut both = 0;
    for seed in 2..=5 {
        let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: 112, ..Settings::default() };
        let run = integrate(log_likelihood, prior(4), Config { settings, seed, ..Config::default() }).unwrap();
        both += usize::from((run.estimate.log_z - truth).abs() < 1e-3);
    }
    // None of them had both before.
    assert!(both >= 3, "{both}");
}

#[test]
fn a_normal_posterior_in_ten_dimensions_is_exact_as_soon_as_a_quadratic_is_determined() {
    // It has 66 coefficients. With a single start the fit went on with another explanation: errors of 0.06 to 0.16.
    for seed in 1..=3 {
        let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: 72, ..Settings::default() };
        let bell = |t: &[f64]| bell(t, 0.3, 0.4);
        let run = integrate(bell, prior(10), Config { settings, seed, ..Config::default() }).unwrap();
        let error = run.estimate.log_z - evidence(10, 0.3, 0.4);
        assert!(error.abs() < 1e-3, "{seed}: {error} {:?}", run.estimate);
    }
}

/// Values between two peaks that were found are asked about until it is known to which they belong, so that the run comes to an end of it.
#[test]
fn a_run_that_has_both_peaks_arrives() {
    let unit = Distribution::uniform(0.0, 1.0).unwrap();
    let square = Prior::independent([("a", unit), ("b", unit)]).unwrap();
    let log_likelihood = |t: &[f64]| {
        let (a, b) = (bell(&[t[0] - 0.3, t[1] - 0.7], 0.0, 0.03), bell(&[t[0] - 0.75, t[1] - 0.3], 0.0, 0.05));
        a.max(b) + (-(a - b).abs()).exp().ln_1p() - 2.0_f64.ln()
    };
    let mut arrived = 0;
    for seed in 1..=6 {
        let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: 112, ..Settings::default() };
        let config = Config { settings, seed, ..Config::default() };
        let run = integrate(log_likelihood, square.clone(), config).unwrap();
        arrived += usize::from(run.estimate.log_z.abs() < 1e-3 && run.estimate.log_z_sd < 1.0);
    }
    assert!(arrived >= 5, "{arrived}");
}

/// A narrow peak on the slope of a wide one that is as large: few places of the prior show it, and values that lie under the wide one's slope are nearer, in
/// standard deviations, to no other.
#[test]
fn a_narrow_peak_beside_a_wide_one_is_found_once_a_value_shows_it() {
    let log_likelihood = |t: &[f64]| {
        let (wide, narrow) = (bell(&[t[0] + 0.6, t[1] - 0.4], 0.0, 0.2), bell(&[t[0] - 0.7, t[1] + 0.3], 0.0, 0.04));
        wide.max(narrow) + (-(wide - narrow).abs()).exp().ln_1p()
    };
    let under_prior = |m: [f64; 2], s: f64| bell(&m, 0.0, (1.0 + s * s).sqrt());
    let (wide, narrow) = (under_prior([-0.6, 0.4], 0.2), under_prior([0.7, -0.3], 0.04));
    let truth = wide + (narrow - wide).exp().ln_1p();
    let (mut right, mut wrong) = (0, 0);
    for seed in 1..=8 {
        let settings = Settings { max_evaluations: 128, ..Settings::default() };
        let run = integrate(log_likelihood, prior(2), Config { settings, seed, ..Config::default() }).unwrap();
        let error = (run.estimate.log_z - truth).abs();
        right += u32::from(error < 1e-3 && run.estimate.log_z_sd < 0.1);
        wrong += u32::from(error > 0.1 && run.estimate.log_z_sd < 1.0);
    }
    assert!(right >= 6 && wrong <= 1, "{right} right, {wrong} wrong");
}

/// Four equal peaks in three dimensions, a twelfth as wide as the prior.
fn four_peaks(theta: &[f64]) -> f64 {
    let corner = |a: f64, b: f64| bell(&[theta[0] - a, theta[1] - b, theta[2] - 0.2], 0.0, 0.08);
    let logs = [corner(0.8, 0.6), corner(0.8, -0.6), corner(-0.8, 0.6), corner(-0.8, -0.6)];
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + logs.iter().map(|l| (l - largest).exp()).sum::<f64>().ln() - 4.0_f64.ln()
}

#[test]
fn a_run_that_knows_of_another_peak_has_not_arrived() {
    let truth = bell(&[0.8, 0.6, 0.2], 0.0, (1.0 + 0.08 * 0.08_f64).sqrt());
    let at = |seed: u64, max_evaluations: usize| halves(four_peaks, prior(3), max_evaluations, seed);
    // Before values were asked about, all of these stated a bar below 0.01 with one or two of the peaks.
    let mut said = 0;
    for seed in [2, 3, 5, 6] {
        let run = at(seed, 72);
        let error = run.estimate.log_z - truth;
        assert!(error.abs() < 0.1 || run.estimate.log_z_sd > 1.0, "{seed}: {error} {:?}", run.estimate);
        let diagnosis = diagnose(&run.engine).unwrap();
        let sentence = &diagnosis.findings.iter().find(|f| f.name == "arrived").unwrap().sentence;
        assert!(sentence.contains("not arrived"), "{seed}: {sentence}");
        said += u32::from(sentence.contains("another peak") || sentence.contains("peaks have been found"));
    }
    // One whose posterior still moves may say that instead.
    assert!(said >= 3, "{said}");
    // With twice the evaluations some runs have found all four. Measured on twelve seeds: seven are right to 1e-5, four of them say so, no other does.
    let (mut exact, mut wrong) = (0, 0);
    for seed in 1..=6 {
        let estimate = at(seed, 144).estimate;
        let right = (estimate.log_z - truth).abs() < 0.01;
        exact += u32::from(right && estimate.log_z_sd < 0.1);
        wrong += u32::from(!right && estimate.log_z_sd < 1.0);
    }
    assert!(exact >= 2 && wrong == 0, "{exact} exact, {wrong} wrong");
}

/// Reaction rates by concentration (Treloar 1974, the treated cells of R's `Puromycin`). They are taken to be eight times as
/// uncertain as they are, so that the posterior is a long bent ridge.
const RATES: [(f64, f64); 12] = [
    (0.02, 76.0),
    (0.02, 47.0),
    (0.06, 97.0),
    (0.06, 107.0),
    (0.11, 123.0),
    (0.11, 139.0),
    (0.22, 159.0),
    (0.22, 152.0),
    (0.56, 191.0),
    (0.56, 201.0),
    (1.10, 207.0),
    (1.10, 200.0),
];
const RATE_SD: f64 = 80.0;
const HALF_RATES: (f64, f64) = (0.001, 10.0);
const TOP_RATES: [f64; 2] = [500.0, 100.0];

/// `log p(data | K)` for `rate = a c/(K + c) + b`, the coefficients `a` and `b` integrated out: the normal density of the rates.
fn log_marginal_of_rates(half: f64) -> f64 {
    let n = RATES.len();
    let basis: Vec<[f64; 2]> = RATES.iter().map(|(c, _)| [c / (half + c), 1.0]).collect();
    let mut l = vec![vec![0.0; n]; n];
    let (mut log_density, mut white) = (-0.5 * n as f64 * TAU.ln(), vec![0.0; n]);
    for i in 0..n {
        for j in 0..=i {
            let noise = if i == j { RATE_SD * RATE_SD } else { 0.0 };
            let prior: f64 = (0..2).map(|k| TOP_RATES[k].powi(2) * basis[i][k] * basis[j][k]).sum();
            let v = noise + prior - (0..j).map(|m| l[i][m] * l[j][m]).sum::<f64>();
            l[i][j] = if i == j { v.sqrt() } else { v / l[j][j] };
        }
        white[i] = (RATES[i].1 - (0..i).map(|m| l[i][m] * white[m]).sum::<f64>()) / l[i][i];
        log_density -= 0.5 * white[i] * white[i] + l[i][i].ln();
    }
    log_density
}

#[test]
fn a_bent_ridge_whose_top_is_found_is_mapped() {
    let cells = 20_000;
    let (low, high) = HALF_RATES;
    let logs: Vec<f64> = (0..cells)
        .map(|i| log_marginal_of_rates(low * (high / low).powf((f64::from(i) + 0.5) / f64::from(cells))))
        .collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let truth = largest + (logs.iter().map(|l| (l - largest).exp()).sum::<f64>() / f64::from(cells)).ln();
    let normal = |sd| Distribution::normal(0.0, sd).unwrap();
    let prior = Prior::independent([
        ("half".to_string(), Distribution::log_uniform(low, high).unwrap()),
        ("top".to_string(), normal(TOP_RATES[0])),
        ("background".to_string(), normal(TOP_RATES[1])),
    ])
    .unwrap();
    let mut wide = 0;
    for seed in 1..=4 {
        let log_likelihood = |theta: &[f64]| {
            let rate = |c: f64| theta[1] * c / (theta[0] + c) + theta[2];
            RATES.iter().map(|(c, r)| -0.5 * ((r - rate(*c)) / RATE_SD).powi(2) - (TAU.sqrt() * RATE_SD).ln()).sum()
        };
        let run = halves(log_likelihood, prior.clone(), 160, seed);
        let (error, sd) = (run.estimate.log_z - truth, run.estimate.log_z_sd);
        assert!(error.abs() < 3.0 * sd, "{seed}: {error} ± {sd}");
        wide += usize::from(sd > 0.5);
    }
    // While points went to the top alone, three of these were.
    assert!(wide <= 1, "{wide}");
}

/// Two coordinates whose width is `0.3 eᵛ`, with v the first.
fn funnel(theta: &[f64]) -> f64 {
    bell(&theta[1..], 0.0, 0.3 * theta[0].exp())
}

#[test]
fn a_funnel_is_straightened() {
    // Given v, a normal likelihood under a normal prior; v by the trapezoid rule, which is exact to rounding for what falls off so fast.
    let step = 0.01;
    let at = |v: f64| bell(&[v], 0.0, 1.0) + evidence(2, 0.0, 0.3 * v.exp());
    let truth = (-800..=800).map(|i| at(step * f64::from(i)).exp()).sum::<f64>().ln() + step.ln();
    let mut errors = Vec::new();
    for seed in 1..=8 {
        let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: 96, ..Settings::default() };
        let run = integrate(funnel, prior(3), Config { settings, seed, ..Config::default() }).unwrap();
        let (error, sd) = (run.estimate.log_z - truth, run.estimate.log_z_sd);
        assert!(error.abs() < 3.0 * sd, "{seed}: {error} ± {sd}");
        errors.push(error.abs());
    }
    // Without a bend the errors are 0.1 and more. Known to fall short: three of these eight are above 0.02, one of them with a bar of forty nats.
    errors.sort_by(f64::total_cmp);
    assert!(errors[4] < 0.02, "{errors:?}");
}

/// A fit that runs away with the surrogate does not take back what is known: these two stated bars of 0.03 and 0.003 at 96 evaluations, and forty nats at
/// 104 and 112.
#[test]
fn a_posterior_that_was_found_is_not_lost_to_a_fit() {
    for seed in [6, 7] {
        let settings = Settings { surrogate: SurrogateChoice::Log, max_evaluations: 104, ..Settings::default() };
        let run = integrate(funnel, prior(3), Config { settings, seed, ..Config::default() }).unwrap();
        assert!(run.estimate.log_z_sd < 0.1, "{seed}: {:?}", run.estimate);
    }
}

#[test]
fn a_belief_made_anew_from_the_record_has_the_same_bits() {
    resumes_to_the_same_bits(|t| bell(t, 0.4, 0.2) + 0.3 * (3.0 * t[0]).sin(), &prior(2), 5);
    resumes_to_the_same_bits(funnel, &prior(2), 9);
    resumes_to_the_same_bits(two_bells, &prior(2), 9);
    let (uniform, exponential) = (Distribution::uniform(-3.0, 5.0).unwrap(), Distribution::exponential(1.0).unwrap());
    let own = Prior::independent([("x0", uniform), ("x1", exponential)]).unwrap();
    resumes_to_the_same_bits(|t| bell(t, 0.4, 0.1) + 0.3 * (3.0 * t[0]).sin(), &own, 7);
}

fn resumes_to_the_same_bits(f: impl Fn(&[f64]) -> f64, prior: &Prior, batches: usize) {
    let settings = Settings { surrogate: SurrogateChoice::Log, ..Settings::default() };
    let mut engine = Engine::new(prior.clone(), settings.clone(), 5).unwrap();
    let mut events = Vec::new();
    for _ in 0..batches {
        let asked = engine.ask(engine.next_batch()).unwrap();
        let jobs = asked.jobs.clone();
        // As a journal would keep it.
        let kept = serde_json::to_string(&Event::Asked(asked)).unwrap();
        events.push(serde_json::from_str(&kept).unwrap());
        engine.apply(events.last().unwrap()).unwrap();
        for job in jobs {
            events.push(Event::Told(Told::new(job.id, Outcome::Value(f(&job.theta)))));
            engine.apply(events.last().unwrap()).unwrap();
        }
        // After every batch, and again when the next has been asked and nothing has come back.
        let asked = engine.ask(engine.next_batch()).unwrap();
        for further in [None, Some(Event::Asked(asked))] {
            let mut again = Engine::new(prior.clone(), settings.clone(), 5).unwrap();
            events.iter().chain(&further).for_each(|e| {
                again.apply(e).unwrap();
            });
            let (a, b) = (engine.current().unwrap(), again.current().unwrap());
            assert_eq!(a.estimate.log_z.to_bits(), b.estimate.log_z.to_bits());
            assert_eq!(a.estimate.log_z_sd.to_bits(), b.estimate.log_z_sd.to_bits());
            let next = |e: &Engine| e.ask(3).unwrap().jobs.iter().map(|j| j.theta.clone()).collect::<Vec<_>>();
            if further.is_none() {
                assert_eq!(next(&engine), next(&again));
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut engine =
                Engine::new(prior(3), Settings { surrogate: SurrogateChoice::Log, ..Settings::default() }, 2).unwrap();
            for _ in 0..4 {
                let asked = engine.ask(engine.next_batch()).unwrap();
                let jobs = asked.jobs.clone();
                engine.apply(&Event::Asked(asked)).unwrap();
                for job in jobs {
                    let value = bell(&job.theta, 0.3, 0.3) + 0.2 * (4.0 * job.theta[0]).cos();
                    engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(value)))).unwrap();
                }
            }
            let current = engine.current().unwrap();
            (current.estimate.log_z.to_bits(), current.estimate.log_z_sd.to_bits())
        })
    };
    assert_eq!(bits(1), bits(3));
}

#[test]
fn cones_keep_the_points_of_a_batch_apart() {
    // A bent posterior; its evidence by a sum over a grid.
    let bent = |t: &[f64]| -0.5 * ((t[0] / 0.6).powi(2) + ((t[1] - 0.8 * t[0] * t[0]) / 0.2).powi(2));
    let cells: Vec<f64> = (0..800).map(|i| -6.0 + 0.015 * (f64::from(i) + 0.5)).collect();
    let density = |x: f64, y: f64| (bent(&[x, y]) - 0.5 * (x * x + y * y)).exp() / TAU;
    let truth = cells.iter().flat_map(|x| cells.iter().map(move |y| density(*x, *y))).sum::<f64>() * 0.015 * 0.015;
    let run = |batch_rule: BatchRule| {
        let settings = Settings {
            surrogate: SurrogateChoice::Log,
            batch_rule,
            max_evaluations: 72,
            batch: 8,
            ..Settings::default()
        };
        integrate(bent, prior(2), Config { settings, ..Config::default() }).unwrap()
    };
    let [conditioned, cones] = [BatchRule::KrigingBeliever, BatchRule::LocalPenalisation].map(run);
    let points = |run: &batchquad::Integral| -> Vec<Vec<f64>> {
        run.engine.ledger().entries().map(|e| e.job.theta.clone()).collect()
    };
    let (conditioned, points) = (points(&conditioned), points(&cones));
    assert_ne!(conditioned, points);
    let error = cones.estimate.log_z - truth.ln();
    assert!(error.abs() < 0.02 && error.abs() < 3.0 * cones.estimate.log_z_sd, "{error} ± {}", cones.estimate.log_z_sd);
    // Without cones all points of a batch that are chosen by the variance of the integrand would be the same candidate's neighbours.
    for batch in points[40..].chunks(8) {
        for (i, a) in batch.iter().enumerate() {
            for b in &batch[..i] {
                let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                assert!(square.sqrt() > 0.02, "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn choices_that_only_the_others_have_lead_to_them() {
    use batchquad::{belief::Model, choose::BatchRule, run::Reference};
    let auto = Settings::default();
    assert_eq!(auto.model(2), None);
    assert_eq!(Settings { batch_rule: BatchRule::LocalPenalisation, ..auto.clone() }.model(2), Some(Model::WsabiL));
    assert_eq!(Settings { reference: Reference::Prior, ..auto.clone() }.model(2), Some(Model::WsabiL));
    assert_eq!(Settings { surrogate: SurrogateChoice::Plain, ..auto.clone() }.model(2), Some(Model::Plain));
    let error = Settings { surrogate: SurrogateChoice::WsabiL, noise_sd: Some(0.3), ..auto }.validate().unwrap_err();
    assert!(error.to_string().contains("noise_sd"), "{error}");
}
