//! Markov chains and evidences made of them, against closed forms, central differences and ArviZ.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use batchquad::numeric::{Purpose, Stream};
use experiments::{
    branin,
    mcmc::{
        Chain, Draw, Length, Sampler, Target,
        diagnose::{effective_size, split_r_hat},
        evidence::{Gaussian, bridge, harmonic_mean, propose, reciprocal},
    },
    model_evidence::{self, Estimator, GpLikelihood, Spec, sample},
    plan::Plan,
    runs::Workshop,
    stats::mean,
};

/// `log ℓ(u) = offset + log N(u; mean, [[a, c], [c, a]])`: with the prior `N(0, I)`, everything about it is known.
struct Ellipse {
    mean: [f64; 2],
    a: f64,
    c: f64,
    offset: f64,
    calls: AtomicUsize,
}

impl Ellipse {
    fn new(mean: [f64; 2], a: f64, c: f64, offset: f64) -> Self {
        Self { mean, a, c, offset, calls: AtomicUsize::new(0) }
    }

    /// Along the diagonals the matrix is `a + c` and `a − c`, and everything is a product of two problems on a line.
    fn along(&self) -> [(f64, f64); 2] {
        let [m, n] = self.mean;
        [((m + n) / 2_f64.sqrt(), self.a + self.c), ((m - n) / 2_f64.sqrt(), self.a - self.c)]
    }

    fn log_z(&self) -> f64 {
        let line = |(m, v): (f64, f64)| -0.5 * (m * m / (v + 1.0) + (std::f64::consts::TAU * (v + 1.0)).ln());
        self.offset + self.along().map(line).iter().sum::<f64>()
    }

    /// Means, and the moments `E u₁²`, `E u₁u₂`, `E u₂²` of the posterior.
    fn moments(&self) -> [f64; 5] {
        let [(p, v), (q, w)] = self.along().map(|(m, v)| (m / (1.0 + v), v / (1.0 + v)));
        let (x, y) = ((p + q) / 2_f64.sqrt(), (p - q) / 2_f64.sqrt());
        let (spread, shared) = ((v + w) / 2.0, (v - w) / 2.0);
        [x, y, spread + x * x, shared + x * y, spread + y * y]
    }
}

impl Target for Ellipse {
    fn dim(&self) -> usize {
        2
    }

    fn log_likelihood(&self, u: &[f64]) -> f64 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (x, y) = (u[0] - self.mean[0], u[1] - self.mean[1]);
        let det = self.a * self.a - self.c * self.c;
        let square = (self.a * (x * x + y * y) - 2.0 * self.c * x * y) / det;
        self.offset - 0.5 * (square + det.ln()) - std::f64::consts::TAU.ln()
    }

    fn log_likelihood_gradient(&self, u: &[f64]) -> Option<(f64, Vec<f64>)> {
        let (x, y) = (u[0] - self.mean[0], u[1] - self.mean[1]);
        let det = self.a * self.a - self.c * self.c;
        let slope = vec![-(self.a * x - self.c * y) / det, -(self.a * y - self.c * x) / det];
        Some((self.log_likelihood(u), slope))
    }
}

fn series(chains: &[Chain], f: impl Fn(&Draw) -> f64) -> Vec<Vec<f64>> {
    chains.iter().map(|c| c.draws.iter().map(&f).collect()).collect()
}

/// The mean of a quantity over all draws and its standard error, the latter from the effective sample size.
fn with_error(series: &[Vec<f64>]) -> (f64, f64, f64) {
    let all = series.concat();
    let m = mean(&all);
    let variance = mean(&all.iter().map(|v| (v - m).powi(2)).collect::<Vec<_>>());
    let size = effective_size(series);
    (m, (variance / size).sqrt(), size)
}

fn pooled(chains: &[Chain]) -> Vec<&Draw> {
    chains.iter().flat_map(|c| &c.draws).collect()
}

const LONG: Length = Length { burn_in: 500, draws: 4_000 };

#[test]
fn both_samplers_recover_the_moments_of_a_correlated_gaussian() {
    // The posterior's correlation is 0.88.
    let target = Ellipse::new([1.0, -0.5], 2.0, 1.9, -700.0);
    for sampler in Sampler::ALL {
        let chains = sampler.chains(&target, 11, 4, LONG).unwrap();
        let quantities: [fn(&Draw) -> f64; 5] =
            [|d| d.u[0], |d| d.u[1], |d| d.u[0] * d.u[0], |d| d.u[0] * d.u[1], |d| d.u[1] * d.u[1]];
        for (f, truth) in quantities.into_iter().zip(target.moments()) {
            let quantity = series(&chains, f);
            let (m, error, size) = with_error(&quantity);
            // Of 16 000 draws a random walk keeps a tenth; 4.5 standard errors are exceeded once in 150 000 times.
            assert!(size > 800.0, "{sampler:?}: effective size {size}");
            assert!((m - truth).abs() < 4.5 * error, "{sampler:?}: {m} ± {error}, truth {truth}");
            assert!((split_r_hat(&quantity) - 1.0).abs() < 0.02, "{sampler:?}");
        }
    }
}

#[test]
fn every_evaluation_is_counted() {
    let length = Length { burn_in: 30, draws: 40 };
    let target = Ellipse::new([0.0; 2], 1.0, 0.5, 0.0);
    let walk = &Sampler::MetropolisHastings.chains(&target, 3, 1, length).unwrap()[0];
    // One to start from, one per draw.
    assert_eq!(target.calls.load(Ordering::Relaxed), 71);
    assert_eq!((walk.evaluations(0), walk.evaluations(40)), (31, 71));
    let target = Ellipse::new([0.0; 2], 1.0, 0.5, 0.0);
    let nuts = &Sampler::Nuts.chains(&target, 3, 1, length).unwrap()[0];
    // The likelihood at each of the 70 draws is known from the trajectory, and asked for again to be handed on.
    assert_eq!(target.calls.load(Ordering::Relaxed) - 70, nuts.evaluations(40));
    assert!(nuts.evaluations(40) > 2 * 70, "a trajectory is more than one step");
    assert!(nuts.draws.windows(2).all(|d| d[0].evaluations < d[1].evaluations));
}

#[test]
fn chains_are_determined_by_seed_and_number_alone() {
    let target = Ellipse::new([1.0, 0.0], 1.0, 0.8, 0.0);
    let length = Length { burn_in: 50, draws: 20 };
    for sampler in Sampler::ALL {
        let on = |threads: usize, seed: u64, count: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sampler.chains(&target, seed, count, length)).unwrap()
        };
        let eight = on(1, 5, 8);
        assert_eq!(eight, on(3, 5, 8));
        assert_eq!(eight[..3], on(2, 5, 3));
        assert_ne!(eight[0].draws, eight[1].draws);
        assert_ne!(eight[0].draws, on(1, 6, 1)[0].draws);
    }
}

/// Zero where `u₁ ≤ edge`, one elsewhere.
struct Cliff {
    edge: f64,
}

impl Target for Cliff {
    fn dim(&self) -> usize {
        1
    }

    fn log_likelihood(&self, u: &[f64]) -> f64 {
        if u[0] > self.edge { 0.0 } else { f64::NEG_INFINITY }
    }

    fn log_likelihood_gradient(&self, u: &[f64]) -> Option<(f64, Vec<f64>)> {
        (u[0] > self.edge).then(|| (0.0, vec![0.0]))
    }
}

#[test]
fn a_likelihood_of_zero_is_never_visited() {
    for sampler in Sampler::ALL {
        let chains = sampler.chains(&Cliff { edge: 0.0 }, 2, 4, LONG).unwrap();
        assert!(pooled(&chains).iter().all(|d| d.u[0] > 0.0), "{sampler:?}");
        // Half of a normal distribution has the mean √(2/π).
        let (m, error, _) = with_error(&series(&chains, |d| d.u[0]));
        let truth = (2.0 / std::f64::consts::PI).sqrt();
        assert!((m - truth).abs() < 4.5 * error, "{sampler:?}: {m} ± {error}, truth {truth}");
        let nowhere = sampler.chains(&Cliff { edge: 100.0 }, 2, 1, LONG).unwrap_err();
        assert!(nowhere.to_string().contains("zero"), "{nowhere}");
    }
}

#[test]
fn evidences_of_gaussians_are_recovered() {
    // Narrow and far from the prior's centre, wide, correlated; with offsets that no double holds without logarithms.
    for (k, (mean, a, c, offset)) in
        [([2.0, 1.0], 0.05, 0.03, 0.0), ([0.0, 0.5], 3.0, -2.0, -1e6), ([1.0, -0.5], 1.0, 0.95, 800.0)]
            .into_iter()
            .enumerate()
    {
        let target = Ellipse::new(mean, a, c, offset);
        for sampler in Sampler::ALL {
            let chains = sampler.chains(&target, k as u64, 4, Length { burn_in: 500, draws: 2_000 }).unwrap();
            let (first, second): (Vec<&Draw>, Vec<&Draw>) = (
                chains.iter().flat_map(|c| &c.draws[..1_000]).collect(),
                chains.iter().flat_map(|c| &c.draws[1_000..]).collect(),
            );
            let proposal = Gaussian::fit(&first).unwrap();
            let proposed = propose(&target, &proposal, &mut Stream::new(1, Purpose::Experiment, 3_000), 4_000);
            let bridged = bridge(&proposal, &second, &proposed).unwrap();
            let reciprocal = reciprocal(&proposal, &second).unwrap();
            // The proposal is the posterior but for moments that some hundred effective draws determine to 5 %; what it gets wrong
            // enters the weights with a spread of 0.1, and 400 or more effective draws average it.
            for (name, found) in [("bridge", bridged), ("reciprocal", reciprocal)] {
                assert!(
                    (found - target.log_z()).abs() < 0.025,
                    "{sampler:?} {name}: {found}, truth {}",
                    target.log_z()
                );
            }
        }
    }
}

#[test]
fn the_bridge_forgives_a_poor_proposal() {
    // Twice too wide and off by half a width: the bridge's weights are bounded, and 4 000 draws leave about 0.02.
    let target = Ellipse::new([2.0, 1.0], 0.05, 0.03, 0.0);
    let chains = Sampler::Nuts.chains(&target, 8, 4, Length { burn_in: 500, draws: 1_000 }).unwrap();
    let mut poor: Vec<Draw> = pooled(&chains).into_iter().cloned().collect();
    let centre = target.moments()[0];
    for d in &mut poor {
        d.u = vec![2.0 * (d.u[0] - centre) + centre + 0.1, 2.0 * d.u[1] - 1.0];
    }
    let proposal = Gaussian::fit(&poor).unwrap();
    let proposed = propose(&target, &proposal, &mut Stream::new(2, Purpose::Experiment, 3_000), 4_000);
    let found = bridge(&proposal, &pooled(&chains), &proposed).unwrap();
    assert!((found - target.log_z()).abs() < 0.1, "{found}, truth {}", target.log_z());
}

#[test]
fn the_harmonic_mean_is_right_where_its_variance_is_finite() {
    // E[1/ℓ²] exists under the posterior only when the likelihood is wider than the prior: here twice as wide.
    let target = Ellipse::new([0.5, 0.0], 4.0, 0.0, 40.0);
    for sampler in Sampler::ALL {
        let chains = sampler.chains(&target, 4, 4, LONG).unwrap();
        let found = harmonic_mean(&pooled(&chains)).unwrap();
        let (m, error, _) = with_error(&series(&chains, |d| (-d.log_likelihood + 40.0).exp()));
        assert!((found - (40.0 - m.ln())).abs() < 1e-10);
        assert!(error / m < 0.01, "{sampler:?}: {error} of {m}");
        assert!((found - target.log_z()).abs() < 4.5 * error / m, "{sampler:?}: {found}, truth {}", target.log_z());
    }
}

#[test]
fn estimators_without_enough_draws_say_so() {
    let none: [Draw; 0] = [];
    assert!(harmonic_mean(&none).is_none());
    assert!(Gaussian::fit(&none).is_none());
    let at = |x: f64, y: f64| Draw { u: vec![x, y], log_likelihood: 0.0, evaluations: 1 };
    assert!(Gaussian::fit(&[at(0.0, 0.0), at(1.0, 0.3)]).is_none());
    assert!(Gaussian::fit(&[at(0.0, 0.0), at(1.0, 0.3), at(2.0, 0.6), at(0.1, 0.03)]).is_none());
    let proposal = Gaussian::fit(&[at(0.0, 0.0), at(1.0, 0.3), at(2.0, 0.7)]).unwrap();
    assert!(reciprocal(&proposal, &none).is_none());
    assert!(bridge(&proposal, &[at(1.0, 0.3)], &[]).is_none());
}

#[test]
fn diagnostics_are_those_of_arviz() {
    #[derive(serde::Deserialize)]
    struct Case {
        chains: Vec<Vec<f64>>,
        effective_size: f64,
        split_r_hat: f64,
    }
    #[derive(serde::Deserialize)]
    struct Reference {
        cases: Vec<Case>,
    }
    let reference: Reference = serde_json::from_str(include_str!("data/diagnose_reference.json")).unwrap();
    assert_eq!(reference.cases.len(), 4);
    for case in reference.cases {
        // The same sums in another order.
        let (size, r_hat) = (effective_size(&case.chains), split_r_hat(&case.chains));
        assert!((size / case.effective_size - 1.0).abs() < 1e-10, "{size} {}", case.effective_size);
        assert!((r_hat / case.split_r_hat - 1.0).abs() < 1e-12, "{r_hat} {}", case.split_r_hat);
    }
}

#[test]
fn the_gradient_of_the_evidence_is_that_of_central_differences() {
    let target = GpLikelihood::new().unwrap();
    let data = branin::committed().unwrap();
    let y = branin::standardise(&data);
    for i in -3..=3 {
        for j in -3..=3 {
            let u = [f64::from(i), f64::from(j)];
            let (value, slope) = target.log_likelihood_gradient(&u).unwrap();
            assert_eq!(value, target.log_likelihood(&u));
            for a in 0..2 {
                // Truncation of order h⁴ with two steps; rounding of the values, some 1e4 at most, over h.
                let h = 1e-3;
                let at = |k: f64| {
                    let mut v = u;
                    v[a] += k * h;
                    target.log_likelihood(&v)
                };
                let central = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
                let tolerance = 1e-7 * (1.0 + value.abs() + slope[a].abs());
                assert!((slope[a] - central).abs() < tolerance, "at {u:?}: {} {central}", slope[a]);
            }
        }
    }
    // In the kernel's own parameters the prior's scale is absent.
    let (_, in_theta) = branin::log_marginal_gradient(&data, &y, -1.2, 0.0).unwrap();
    let in_u = target.log_likelihood_gradient(&[0.0, 0.0]).unwrap().1;
    assert!((in_u[0] - in_theta[0]).abs() < 1e-12 && (in_u[1] - 1.5 * in_theta[1]).abs() < 1e-12);
}

#[test]
fn accounts_are_kept_of_every_evaluation() {
    let spec =
        Spec { sampler: Sampler::MetropolisHastings, seed: 4, chains: vec![1, 4], burn_in: 100, read_at: vec![4, 20] };
    let sampled = sample(&spec).unwrap();
    assert_eq!(sampled.readings.len(), 4 * 2 * 2);
    let find = |estimator: Estimator, chains: usize, draws: usize| {
        let mut all = sampled.readings.iter();
        all.find(|r| (r.estimator, r.chains, r.draws) == (estimator, chains, draws)).unwrap()
    };
    // A start, burn-in and draws for each chain; a bridge evaluates as many proposals as it has draws to meet.
    for (estimator, extra) in [
        (Estimator::HarmonicMean, 0),
        (Estimator::Reciprocal, 0),
        (Estimator::Bridge, 10),
        (Estimator::BridgeFromBurnIn, 20),
    ] {
        let r = find(estimator, 4, 20);
        assert_eq!((r.batches, r.batches_in_all, r.evaluations), (20 + extra, 121 + extra, 4 * (121 + extra)));
        assert!(r.error.unwrap().abs() < 5.0, "{r:?}");
    }
    // Two draws lie on a line: no proposal, no estimate, nothing spent on it.
    let r = find(Estimator::Bridge, 1, 4);
    assert_eq!((r.error, r.batches), (None, 4));
    // The chains of one are the first of four.
    let alone = sample(&Spec { chains: vec![1], ..spec.clone() }).unwrap();
    let same = |r: &&model_evidence::Reading| r.chains == 1;
    assert!(alone.readings.iter().eq(sampled.readings.iter().filter(same)));
}

/// Interruption is that of every experiment, and tested there.
#[test]
fn the_number_of_threads_does_not_change_the_files() {
    let plan = Plan { runs: Some(1), seed: 3, budget: Some(16), settings: batchquad::Settings::default() };
    let made = [1, 3].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        model_evidence::run(&plan, &Workshop { out: dir.path().into(), threads }).unwrap();
        let read = |name: &str| std::fs::read(dir.path().join("model-evidence").join(name)).unwrap();
        ["chains.csv", "readings.csv", "summary.json", "chains-paper.svg", "chains-counted.png"].map(read)
    });
    assert_eq!(made[0], made[1]);
    let rows = String::from_utf8(made[0][0].clone()).unwrap();
    // Two samplers, two lengths of burn-in, four estimators, four numbers of chains, fourteen readings, and the head.
    assert_eq!(rows.lines().count(), 2 * 2 * 4 * 4 * 14 + 1);
}
