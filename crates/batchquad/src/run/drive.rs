//! The loop: ask, record, evaluate, record, estimate, until a rule says stop.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::ControlFlow,
    time::{Duration, Instant},
};

use crate::{
    belief::estimate::Estimate,
    error::{Error, Result},
    evaluate::{Attempt, Evaluator, Finished},
    journal::{Asked, Event, Retried, Told},
    run::{
        ahead::{Ahead, Ready, on_this_thread},
        engine::{Engine, Round},
        record::Record,
        settings::{OnFailure, Schedule, Settings},
        stop::{self, Status, Stop},
    },
    types::{FailureKind, JobId, Outcome},
};

/// What one step of a run brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A batch was chosen and handed to the evaluator.
    Asked {
        /// How many points.
        jobs: usize,
        /// How long the choice took, fitting included.
        seconds: f64,
    },
    /// An evaluation came back.
    Told {
        /// Its job.
        id: JobId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Nothing happened within the time given.
    Waiting,
    /// The run is over.
    Done(Stop),
}

/// A run under way. Call [`Run::advance`] until it says [`Progress::Done`].
pub struct Run<'a> {
    engine: &'a mut Engine,
    evaluator: &'a mut dyn Evaluator,
    record: &'a mut dyn Record,
    started: Instant,
    ending: Option<Stop>,
    losses: Losses,
    suspects: VecDeque<JobId>,
    /// Whether the job in flight is to have nobody beside it.
    alone: bool,
    ahead: Ahead,
    /// Answers that are kept and not reported yet.
    news: VecDeque<Progress>,
}

/// How often it is looked whether points have been chosen, while answers are waited for.
const GLANCE: Duration = Duration::from_millis(5);

/// The most answers that become durable together.
const TOGETHER: usize = 1024;

impl<'a> Run<'a> {
    /// Starts or resumes a run: jobs that were asked and never answered are evaluated first. A run that a failure has ended stays ended
    /// while its settings say so.
    ///
    /// If the last driver was killed, one of those jobs may have done it. So each is tried on record, the least often tried first, its last
    /// time alone, and given up after [`Evaluator::retries`].
    ///
    /// # Errors
    /// When the evaluator does not take a job.
    pub fn new(engine: &'a mut Engine, evaluator: &'a mut dyn Evaluator, record: &'a mut dyn Record) -> Result<Self> {
        let ending = aborted(engine);
        let mut suspects: Vec<(u32, JobId)> = Vec::new();
        for job in engine.ledger().pending().filter(|_| ending.is_none()) {
            if record.was_killed() {
                suspects.push((engine.ledger().entry(job.id)?.attempts, job.id));
            } else {
                evaluator.submit(job.clone())?;
            }
        }
        suspects.sort_unstable();
        let suspects = suspects.into_iter().map(|(_, id)| id).collect();
        let (started, losses) = (Instant::now(), Losses::default());
        let (ahead, news) = (Ahead::new(on_this_thread()), VecDeque::new());
        Ok(Self { engine, evaluator, record, started, ending, losses, suspects, alone: false, ahead, news })
    }

    /// Asks no more; what is running is still waited for.
    pub fn finish_early(&mut self, stop: Stop) {
        self.ending.get_or_insert(stop);
        self.ahead.end();
    }

    /// Gives up what is running, in good order; called again, at once. Jobs given up stay pending, to be evaluated on resuming.
    pub fn interrupt(&self) {
        self.evaluator.interrupt().raise();
    }

    /// The state.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine
    }

    /// How many evaluations are queued or running.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.evaluator.in_flight()
    }

    /// How many workers are busy.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.evaluator.workers() - self.evaluator.idle()
    }

    /// One step: hands out a batch if workers are free for it, otherwise waits for answers, at most `patience`. Those that are there are kept together and
    /// reported one by one.
    ///
    /// # Errors
    /// When an event cannot be recorded, an evaluator has broken down, or no belief can be formed. Nothing recorded is lost.
    pub fn advance(&mut self, patience: Duration) -> Result<Progress> {
        if let Some(progress) = self.news.pop_front() {
            return Ok(progress);
        }
        self.try_suspects()?;
        self.alone &= self.evaluator.in_flight() > 0;
        if self.ending.is_none()
            && self.suspects.is_empty()
            && !self.alone
            && let Some(progress) = self.look_ahead(patience)?
        {
            return Ok(progress);
        }
        if self.evaluator.in_flight() > 0 {
            let patience = if self.ahead.is_choosing() { patience.min(GLANCE) } else { patience };
            return self.collect(patience);
        }
        match &self.ending {
            Some(stop) => Ok(Progress::Done(honest(self.engine, stop.clone()))),
            None => Ok(Progress::Waiting),
        }
    }

    /// Hands out points if there are any.
    fn look_ahead(&mut self, patience: Duration) -> Result<Option<Progress>> {
        let (workers, in_flight) = (self.evaluator.workers(), self.evaluator.in_flight());
        let seconds = self.started.elapsed().as_secs_f64();
        match self.engine.settings().schedule {
            Schedule::Batch => match next_step(self.engine, in_flight, seconds) {
                Step::Ask { repeat, n } => {
                    let begin = Instant::now();
                    let mut asked = self.engine.ask_for(repeat, n)?;
                    asked.seconds = begin.elapsed().as_secs_f64();
                    return self.ask(asked).map(Some);
                }
                Step::Stop(stop) => self.ending = Some(stop),
                Step::Wait => {}
            },
            Schedule::Async => {
                let patience = if in_flight > 0 { Duration::ZERO } else { patience };
                match self.ahead.step(self.engine, (workers, in_flight), seconds, patience)? {
                    Some(Ready::Asked(asked)) => return self.ask(asked).map(Some),
                    Some(Ready::Stop(stop)) => self.finish_early(stop),
                    None => {}
                }
            }
        }
        Ok(None)
    }

    /// Hands out jobs that were pending when a driver was killed, as far as there are workers for them.
    fn try_suspects(&mut self) -> Result<()> {
        while let Some(id) = self.suspects.front().copied().filter(|_| self.ending.is_none()) {
            let (retries, in_flight) = (self.evaluator.retries(), self.evaluator.in_flight());
            let entry = self.engine.ledger().entry(id)?;
            let (job, killed) = (entry.job.clone(), entry.attempts.saturating_add(1));
            let alone = killed > retries;
            if in_flight >= if alone { 1 } else { self.evaluator.workers() } {
                break;
            }
            self.suspects.pop_front();
            let times = if killed == 1 { "once".to_owned() } else { format!("{killed} times") };
            let message = format!("the driver was killed {times} while this was pending");
            if killed > retries.saturating_add(1) {
                let outcome = Outcome::Failed { kind: FailureKind::LostWorker, message };
                let told = Told { attempt: killed, ..Told::new(id, outcome.clone()) };
                self.engine.keep(self.record, &Event::Told(told))?;
                self.ending = self.losses.told(self.engine, id, &outcome);
            } else {
                // On record before it can happen again.
                let failure = FailureKind::LostWorker;
                self.engine.keep(self.record, &Event::Retried(Retried { id, attempt: killed, failure, message }))?;
                self.evaluator.submit(job)?;
                self.alone = alone;
            }
        }
        Ok(())
    }

    fn ask(&mut self, asked: Asked) -> Result<Progress> {
        let (jobs, seconds) = (asked.jobs.clone(), asked.seconds);
        self.engine.keep(self.record, &Event::Asked(asked))?;
        let progress = Progress::Asked { jobs: jobs.len(), seconds };
        for job in jobs {
            self.evaluator.submit(job)?;
        }
        Ok(progress)
    }

    /// Keeps all that has finished, and reports the first of it.
    fn collect(&mut self, patience: Duration) -> Result<Progress> {
        let mut all = Vec::new();
        let mut next = self.evaluator.wait(patience);
        while let Ok(Some(finished)) = next {
            all.push(finished);
            next = if all.len() < TOGETHER { self.evaluator.wait(Duration::ZERO) } else { Ok(None) };
        }
        self.tell(all)?;
        next?;
        // Jobs given up by an interrupted evaluator leave without an outcome.
        Ok(self.news.pop_front().unwrap_or(Progress::Waiting))
    }

    fn tell(&mut self, all: Vec<Finished>) -> Result<()> {
        let (mut events, mut outcomes) = (Vec::new(), Vec::new());
        for Finished { id, outcome, sd, attempts, retried, seconds, worker, .. } in all {
            let before = self.engine.ledger().entry(id)?.attempts;
            for Attempt { number, kind: failure, message } in retried {
                let attempt = before.saturating_add(number);
                events.push(Event::Retried(Retried { id, attempt, failure, message }));
            }
            let worker = Some(worker.to_string());
            let attempt = before.saturating_add(attempts);
            events.push(Event::Told(Told { id, outcome: outcome.clone(), sd, attempt, seconds, worker }));
            outcomes.push((id, outcome));
        }
        self.engine.keep_all(self.record, events)?;
        for (id, outcome) in outcomes {
            if let Some(stop) = self.losses.told(self.engine, id, &outcome) {
                self.finish_early(stop);
            }
            self.news.push_back(Progress::Told { id, outcome });
        }
        Ok(())
    }
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Choose a batch.
    Ask {
        /// For which of the independent runs, counted from zero.
        repeat: usize,
        /// How many points.
        n: usize,
    },
    /// Wait for evaluations.
    Wait,
    /// Ask no more.
    Stop(Stop),
}

/// What a run does next that waits for whole batches ([`Ahead`] is for the others), with `in_flight` evaluations queued or running, `seconds` after it
/// began.
#[must_use]
pub fn next_step(engine: &Engine, in_flight: usize, seconds: f64) -> Step {
    if in_flight > 0 {
        return Step::Wait;
    }
    match stop::next_repeat(engine, seconds) {
        ControlFlow::Break(stop) => Step::Stop(stop),
        ControlFlow::Continue(repeat) => {
            let run = engine.repeat(repeat);
            Step::Ask { repeat, n: run.next_batch().min(run.left()).max(1) }
        }
    }
}

/// No evidence, no success: whatever else ended the run.
#[must_use]
pub fn honest(engine: &Engine, stop: Stop) -> Stop {
    if matches!(stop.status, Status::Interrupted | Status::Failed) {
        return stop;
    }
    match engine.current() {
        // Nobody knows yet whether there is any.
        Err(Error::Interrupted) => Stop::new(Status::Interrupted, format!("{}; then it was interrupted", stop.reason)),
        _ => match no_evidence(engine) {
            Some(why) => Stop::new(Status::Failed, format!("{}; {why}", stop.reason)),
            None => stop,
        },
    }
}

/// Why there is no `log Z` from the values so far, for a person; `None` when there is one. Cost: that of [`Engine::current`].
#[must_use]
pub fn no_evidence(engine: &Engine) -> Option<String> {
    match engine.current() {
        Ok(current) => {
            let (log_z, sd) = (current.estimate.log_z, current.estimate.log_z_sd);
            let expected = "the values are too large or too few to integrate";
            (!(log_z.is_finite() && sd.is_finite())).then(|| format!("log Z came out as {log_z} ± {sd}: {expected}"))
        }
        Err(Error::NoFiniteValue { .. }) => Some(no_finite_value(engine)),
        Err(e) => Some(e.to_string()),
    }
}

/// What became of the evaluations of a run, none of which has a finite value.
fn no_finite_value(engine: &Engine) -> String {
    let ledger = engine.ledger();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first = None;
    for (job, told) in ledger.entries().filter_map(|entry| Some((&entry.job, entry.answer.as_ref()?))) {
        if let Outcome::Failed { kind, message } = &told.outcome {
            *kinds.entry(kind.as_str()).or_default() += 1;
            first.get_or_insert_with(|| format!("the first, evaluation {}: {message}", job.id));
        }
    }
    let zero = ledger.values().count() + ledger.imported().len();
    let mut what = Vec::new();
    if let Some(first) = first {
        let list: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        what.push(format!("{} failed ({}; {first})", kinds.values().sum::<usize>(), list.join(", ")));
    }
    if zero > 0 {
        what.push(format!("{zero} are -inf (likelihood zero)"));
    }
    match ledger.pending().count() {
        0 => {}
        n => what.push(format!("{n} are not answered")),
    }
    if what.is_empty() {
        what.push("there are none".into());
    }
    format!("no evaluation has a finite log-likelihood: {}", what.join(", "))
}

/// How a run stands, judged by its events alone; `None` when there is more to do.
#[must_use]
pub fn standing(engine: &Engine) -> Option<Stop> {
    if let Some(stop) = aborted(engine) {
        return Some(stop);
    }
    if engine.ledger().pending().next().is_some() {
        return None;
    }
    stop::next_repeat(engine, 0.0).break_value().map(|stop| honest(engine, stop))
}

/// The failure that ended a run whose failures are to end it.
#[must_use]
pub fn aborted(engine: &Engine) -> Option<Stop> {
    let mut answers =
        engine.ledger().entries().filter_map(|entry| Some((entry.job.id, &entry.answer.as_ref()?.outcome)));
    answers.find_map(|(id, outcome)| aborts(engine, id, outcome))
}

/// The end of the run if this outcome is to end it.
fn aborts(engine: &Engine, id: JobId, outcome: &Outcome) -> Option<Stop> {
    match (engine.settings().on_failure, outcome) {
        (OnFailure::Abort, Outcome::Failed { kind, message }) => {
            Some(Stop::new(Status::Failed, format!("evaluation {id} failed ({kind}): {message}")))
        }
        (OnFailure::Abort, Outcome::Value(_)) | (OnFailure::Exclude | OnFailure::AsZero, _) => None,
    }
}

/// Failures in a row, and when they end a run. One for each time that a run is driven: who has mended a likelihood begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    in_a_row: usize,
}

impl Losses {
    /// A reason to ask no more after this outcome, which the engine knows already: a failure that is to end the run, or as many failures in a
    /// row as the run begins with and no value at all, which is a mistake in the likelihood, not in the points.
    pub fn told(&mut self, engine: &Engine, id: JobId, outcome: &Outcome) -> Option<Stop> {
        let Outcome::Failed { message, .. } = outcome else {
            self.in_a_row = 0;
            return None;
        };
        self.in_a_row += 1;
        aborts(engine, id, outcome).or_else(|| {
            let enough = engine.initial_size().max(engine.settings().batch);
            let hopeless = self.in_a_row >= enough && engine.ledger().values().next().is_none();
            let reason = || format!("all {} evaluations so far failed, the last one: {message}", self.in_a_row);
            hopeless.then(|| Stop::new(Status::Failed, reason()))
        })
    }
}

/// How to integrate in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// All choices of the run.
    pub settings: Settings,
    /// Its seed.
    pub seed: u64,
    /// Threads that evaluate the likelihood; by default one per core.
    pub workers: usize,
}

impl Default for Config {
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { settings: Settings::default(), seed: 0, workers }
    }
}

/// The outcome of [`integrate`](crate::integrate).
#[derive(Debug)]
pub struct Integral {
    /// The belief about the evidence.
    pub estimate: Estimate,
    /// What was believed after every batch.
    pub rounds: Vec<Round>,
    /// Why it ended.
    pub stop: Stop,
    /// The whole run: evaluations, failures, the belief about the integrand.
    pub engine: Engine,
}
