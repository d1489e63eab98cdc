//! The whole loop in one call.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    error::{Error, Result},
    evaluate::ScopedEvaluator,
    journal::Store,
    prior::{Parameters, Prior},
    run::{
        drive::{Config, Integral, Progress, Run},
        engine::Engine,
        record::{Memory, Record},
        report::{Tally, duration, plus_minus},
        session::{Plan, Session},
        settings::Settings,
        stop::{Status, Stop},
    },
};

/// How long a step of a run waits for an answer before it looks around.
const PATIENCE: Duration = Duration::from_millis(200);

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    /// Evaluations answered or imported, failures included.
    pub evaluations: usize,
    /// How many there may be.
    pub max_evaluations: usize,
    /// How many of them failed.
    pub failures: usize,
    /// Evaluations queued or running.
    pub in_flight: usize,
    /// `log Z` and its standard deviation when the last batch was chosen.
    pub log_z: Option<(f64, f64)>,
    /// Since this process began with it.
    pub seconds: f64,
}

impl std::fmt::Display for Glance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let log_z = self.log_z.map_or_else(|| "unknown yet".into(), |(log_z, sd)| plus_minus(log_z, sd));
        write!(f, "{}/{} log Z {log_z}, {} in flight", self.evaluations, self.max_evaluations, self.in_flight)?;
        if self.failures > 0 {
            write!(f, ", {} failed", self.failures)?;
        }
        write!(f, ", {}", duration(self.seconds))
    }
}

type Watcher<'a> = Box<dyn FnMut(&Glance) -> ControlFlow<()> + 'a>;

/// A run in one call, with a store, with progress, or with both.
///
/// ```
/// use std::ops::ControlFlow;
/// use batchquad::{Integration, Prior, Settings, prior::Distribution};
/// # let scratch = tempfile::tempdir().unwrap();
/// # let store = scratch.path().join("run.batchquad");
/// let data = vec![0.8, 1.1, 0.9];
/// let prior = Prior::independent([("mu", Distribution::normal(0.0, 1.0)?)])?;
/// let run = Integration::new(prior)
///     .settings(Settings { max_evaluations: 32, ..Settings::default() })
///     .store(&store)
///     .progress(|so_far| {
///         eprintln!("{so_far}");
///         ControlFlow::Continue(())
///     })
///     .run(|theta| data.iter().map(|x: &f64| -0.5 * (x - theta[0]).powi(2)).sum())?;
/// println!("{}", run.estimate);
/// # Ok::<(), batchquad::Error>(())
/// ```
pub struct Integration<'a> {
    prior: Prior,
    config: Config,
    seed: Option<u64>,
    store: Option<PathBuf>,
    progress: Option<Watcher<'a>>,
}

impl<'a> Integration<'a> {
    /// A run under a prior, with the default settings, one worker per core and nothing kept.
    #[must_use]
    pub fn new(prior: Prior) -> Self {
        Self { prior, config: Config::default(), seed: None, store: None, progress: None }
    }

    /// All choices of the run.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.config.settings = settings;
        self
    }

    /// The seed; by default that of the store, or 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many evaluations run at the same time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.workers = workers;
        self
    }

    /// A directory in which everything is kept; the same run goes on where it was.
    #[must_use]
    pub fn store(mut self, dir: impl AsRef<Path>) -> Self {
        self.store = Some(dir.as_ref().to_owned());
        self
    }

    /// Somebody who is told after every step how far the run is. [`ControlFlow::Break`] ends the run: what is being
    /// evaluated is waited for, and all that is known is kept.
    #[must_use]
    pub fn progress(mut self, watcher: impl FnMut(&Glance) -> ControlFlow<()> + 'a) -> Self {
        self.progress = Some(Box::new(watcher));
        self
    }

    /// Runs to the end. The log-likelihood may borrow.
    ///
    /// # Errors
    /// As [`integrate`], [`Session::create`] and [`Session::resume`].
    pub fn run(self, log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync) -> Result<Integral> {
        self.go(|theta| (log_likelihood(theta), None))
    }

    /// [`Integration::run`] for a noisy log-likelihood, as in [`integrate_noisy`].
    ///
    /// # Errors
    /// As [`Integration::run`].
    pub fn run_noisy(self, log_likelihood: impl Fn(&[f64]) -> (f64, f64) + Send + Sync) -> Result<Integral> {
        self.go(|theta| {
            let (value, sd) = log_likelihood(theta);
            (value, Some(sd))
        })
    }

    /// `log_likelihood` returns its value, and the standard deviation of its noise if that is known.
    fn go(self, log_likelihood: impl Fn(&[f64]) -> (f64, Option<f64>) + Send + Sync) -> Result<Integral> {
        let Self { prior, config, seed, store, mut progress } = self;
        let (mut engine, mut record): (Engine, Box<dyn Record + Send>) = match &store {
            None => (Engine::new(prior, config.settings, seed.unwrap_or(0))?, Box::new(Memory)),
            Some(dir) => {
                let problem = serde_json::to_value(Parameters::of(&prior)?)
                    .map_err(|e| Error::invalid("prior", e.to_string(), "one that JSON can hold"))?;
                let plan = Plan { prior, problem, settings: config.settings, seed };
                let session =
                    if Store::exists(dir) { Session::resume(dir, &plan)?.0 } else { Session::create(dir, &plan)? };
                (session.engine, session.record)
            }
        };
        let begin = Instant::now();
        let stop = std::thread::scope(|scope| {
            let mut evaluator = ScopedEvaluator::with(scope, config.workers, &log_likelihood)?;
            let mut run = Run::new(&mut engine, &mut evaluator, record.as_mut())?;
            loop {
                if let Progress::Done(stop) = run.advance(PATIENCE)? {
                    return Ok(stop);
                }
                let Some(watcher) = &mut progress else { continue };
                if watcher(&glance(run.engine(), run.in_flight(), begin.elapsed().as_secs_f64())).is_break() {
                    run.finish_early(Stop::new(Status::Interrupted, "the progress function said stop"));
                    progress = None;
                }
            }
        })?;
        let estimate = engine.current()?.estimate;
        Ok(Integral { estimate, rounds: engine.rounds(), stop, engine })
    }
}

fn glance(engine: &Engine, in_flight: usize, seconds: f64) -> Glance {
    let tally = Tally::of(engine.ledger());
    let belief = engine.history().last().map(|round| &round.belief);
    Glance {
        evaluations: tally.done(),
        max_evaluations: engine.settings().most_evaluations(),
        failures: tally.failures,
        in_flight,
        log_z: belief.and_then(|belief| belief.log_z.zip(belief.log_z_sd)),
        seconds,
    }
}

/// The evidence `Z = ∫ ℓ(θ) π(θ) dθ` of a log-likelihood under a prior, evaluated on threads, a batch at a time.
///
/// [`Integration`] is the same with a store and with progress. The log-likelihood may borrow what outlives the call.
///
/// ```
/// use batchquad::{integrate, Config, prior::{Distribution, Prior}, run::Settings};
/// let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0)?), ("y", Distribution::normal(0.0, 1.0)?)])?;
/// // A Gaussian likelihood N(x; 1, ½²) N(y; 0, ½²): the evidence is N(1; 0, 1 + ¼) N(0; 0, 1 + ¼).
/// let centre = vec![1.0, 0.0];
/// let log_likelihood = |t: &[f64]| {
///     let square: f64 = t.iter().zip(&centre).map(|(t, c)| (t - c).powi(2)).sum();
///     -0.5 * square / 0.25 - (std::f64::consts::TAU * 0.25).ln()
/// };
/// let settings = Settings { max_evaluations: 48, ..Settings::default() };
/// let integral = integrate(log_likelihood, prior, Config { settings, ..Config::default() })?;
/// let truth = -0.5 / 1.25 - (std::f64::consts::TAU * 1.25).ln();
/// assert!((integral.estimate.log_z - truth).abs() < 0.01);
/// # Ok::<(), batchquad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] for settings out of range, [`Error::NoFiniteValue`] when no finite log-likelihood was
/// seen. A likelihood that panics or returns NaN at some points is not an error: those points are excluded and counted.
pub fn integrate(
    log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync,
    prior: Prior,
    config: Config,
) -> Result<Integral> {
    let Config { settings, seed, workers } = config;
    Integration::new(prior).settings(settings).seed(seed).workers(workers).run(log_likelihood)
}

/// [`integrate`] for a noisy log-likelihood, which returns its value and the standard deviation of its noise.
///
/// ```
/// use batchquad::{Config, integrate_noisy, prior::{Distribution, Prior}};
/// let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0)?)])?;
/// // A hash of the point stands for the noise of a simulation.
/// let noise = |x: f64| ((x.to_bits() >> 20) % 1000) as f64 / 500.0 - 1.0;
/// let integral = integrate_noisy(|t| (-0.5 * t[0] * t[0] + 0.1 * noise(t[0]), 0.06), prior, Config::default())?;
/// // ∫ exp(−x²/2) N(x; 0, 1) dx = 1/√2.
/// assert!((integral.estimate.log_z + 0.5 * 2f64.ln()).abs() < 4.0 * integral.estimate.log_z_sd);
/// # Ok::<(), batchquad::Error>(())
/// ```
///
/// # Errors
/// As [`integrate`]. A standard deviation that is not a finite number ≥ 0 is a failure of its evaluation.
pub fn integrate_noisy(
    log_likelihood: impl Fn(&[f64]) -> (f64, f64) + Send + Sync,
    prior: Prior,
    config: Config,
) -> Result<Integral> {
    let Config { settings, seed, workers } = config;
    Integration::new(prior).settings(settings).seed(seed).workers(workers).run_noisy(log_likelihood)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::Distribution;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn prior() -> Prior {
        Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap()
    }

    #[test]
    fn a_store_and_a_watcher_in_one_call_and_a_stop_that_keeps_what_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("run");
        let calls = AtomicUsize::new(0);
        let log_likelihood = |t: &[f64]| {
            calls.fetch_add(1, Ordering::SeqCst);
            -0.5 * (t[0] - 1.0).powi(2) / 0.25
        };
        let settings = Settings { max_evaluations: 40, batch: 4, ..Settings::default() };
        let mut seen = Vec::new();
        let watch = |so_far: &Glance| {
            seen.push(so_far.clone());
            if so_far.evaluations >= 14 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let first =
            Integration::new(prior()).settings(settings.clone()).store(&dir).progress(watch).run(log_likelihood);
        let first = first.unwrap();
        assert_eq!(
            (first.stop.status, first.stop.reason.as_str()),
            (Status::Interrupted, "the progress function said stop")
        );
        let evaluated = calls.load(Ordering::SeqCst);
        assert!((14..18).contains(&evaluated), "{evaluated}");
        assert!(seen.iter().any(|s| s.log_z.is_some()) && seen[0].to_string().starts_with("0/40 log Z unknown yet"));
        drop(first);

        let second = Integration::new(prior()).settings(settings.clone()).store(&dir).run(log_likelihood).unwrap();
        assert_eq!((second.stop.status, calls.load(Ordering::SeqCst)), (Status::Budget, 40));
        // In one go, without a store: the same bits.
        let whole = integrate(log_likelihood, prior(), Config { settings, ..Config::default() }).unwrap();
        assert_eq!(whole.estimate.log_z.to_bits(), second.estimate.log_z.to_bits());
    }

    #[test]
    fn priors_describe_themselves() {
        let normal =
            Prior::multivariate_normal(["a", "b"], vec![0.0, 1.0], vec![vec![1.0, 0.0], vec![0.0, 2.0]]).unwrap();
        let both = Prior::product([normal, prior()]).unwrap();
        let written = Parameters::of(&both).unwrap();
        assert_eq!(written.prior().unwrap().names(), ["a", "b", "x"]);
        let cube = Prior::from_unit_cube(["u"], |v: &[f64]| vec![2.0 * v[0]]).unwrap();
        assert!(Parameters::of(&cube).unwrap().prior().is_err());
    }
}
