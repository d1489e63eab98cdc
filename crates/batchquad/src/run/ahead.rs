//! Choosing while others evaluate: the asynchronous schedule.
//!
//! One thread chooses the next points from a snapshot of the run, another searches hyperparameters where that takes long. Whoever drives the run
//! takes in answers meanwhile and is never kept waiting: what was chosen counts whatever has arrived since.

use std::{
    ops::ControlFlow,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use crate::{
    error::{Error, Result},
    interrupt::{Heeded, Interrupt, heeding},
    journal::Asked,
    run::{
        engine::{Believed, Engine, MOST_ASKED},
        stop::{self, Stop},
    },
};

/// Of an evaluation's time, the share that its worker may wait for the next point before points are chosen ahead.
const WAIT: f64 = 0.02;

/// Of an evaluation's time, the share from which on a search for hyperparameters goes on beside the choosing.
const LONG: f64 = 0.1;

/// Choosing takes longer the more values there are: so much is allowed for.
const MARGIN: f64 = 1.25;

/// A search may take this many times as long as the last one.
const LONGER: f64 = 2.0;

/// How many of the last batches tell how long choosing may take.
const BATCHES: usize = 3;

/// Hyperparameters are searched again when the values have grown by this factor.
const GROWN: f64 = 1.05;

/// The seconds that the first choice from a belief may take, for each point that has been asked.
const FIRST: f64 = 1e-3;

/// The least seconds that an evaluation is taken to last.
const LEAST_SECONDS: f64 = 1e-3;

/// What has been decided.
#[derive(Debug)]
pub enum Ready {
    /// These points are next; they count once the event is kept.
    Asked(Asked),
    /// Ask no more.
    Stop(Stop),
}

/// Who does long work: [`on_this_thread`], or somebody with threads of his own.
pub type Hands = Arc<dyn Fn(&Interrupt, &mut (dyn FnMut() + Send)) + Send + Sync>;

/// Points that are being chosen, and hyperparameters that are being searched, for one driver.
pub struct Ahead {
    hands: Hands,
    choosing: Option<Lane<Choice>>,
    searching: Option<Lane<(Engine, f64)>>,
    /// The newest hyperparameters, and of which independent run.
    newest: Option<(usize, Believed)>,
    /// How long a search may take, and from how many values the last was.
    searched: (f64, usize),
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").field("choosing", &self.choosing.is_some()).finish_non_exhaustive()
    }
}

/// What came of choosing.
struct Choice {
    ready: Ready,
    snapshot: Engine,
    /// The seconds of its own search, and its belief, where it made one.
    searched: Option<(f64, usize, Believed)>,
}

/// Work on a thread of its own, which is broken off when nobody waits for it any more.
struct Lane<T> {
    done: mpsc::Receiver<Result<T>>,
    interrupt: Interrupt,
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        self.interrupt.raise();
    }
}

impl<T: Send + 'static> Lane<T> {
    fn start(hands: &Hands, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let (send, done) = mpsc::channel();
        let (interrupt, heeded, hands) = (Interrupt::default(), Heeded::here(), Arc::clone(hands));
        let own = interrupt.clone();
        let body = move || {
            let mut work = Some(work);
            let mut result = None;
            hands(&own, &mut || {
                if let Some(work) = work.take() {
                    result = Some(heeded.lend(work));
                }
            });
            // Nobody receives it after the end of a run.
            let _ = result.map(|result| send.send(result));
        };
        std::thread::Builder::new()
            .name("batchquad-ahead".into())
            .spawn(body)
            .map_err(|e| Error::Numerical { what: "starting a thread".into(), reason: e.to_string() })?;
        Ok(Self { done, interrupt })
    }

    /// What came of it, waiting for at most so long.
    fn result(&self, patience: Duration) -> Option<Result<T>> {
        match self.done.recv_timeout(patience) {
            Ok(result) => Some(result),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Some(Err(Error::Numerical { what: "choosing points".into(), reason: "it panicked".into() }))
            }
        }
    }
}

/// Long work without threads of one's own.
#[must_use]
pub fn on_this_thread() -> Hands {
    Arc::new(|interrupt, work| heeding(interrupt, work))
}

impl Ahead {
    /// Nothing is chosen yet; long work is done by these hands, on a thread of its own.
    #[must_use]
    pub fn new(hands: Hands) -> Self {
        Self { hands, choosing: None, searching: None, newest: None, searched: (0.0, 0) }
    }

    /// Breaks off what is under way: nobody wants it any more.
    pub fn end(&mut self) {
        (self.choosing, self.searching) = (None, None);
    }

    /// Whether points are being chosen: then what is [ready](Ahead::step) changes without an answer.
    #[must_use]
    pub fn is_choosing(&self) -> bool {
        self.choosing.is_some()
    }

    /// What has been decided, waiting for at most `patience` while it is being worked out. Begins to choose where workers are free for it, or soon
    /// will be, with `in_flight` evaluations queued or running on so many workers, `seconds` after the run began.
    ///
    /// # Errors
    /// When no belief can be formed.
    pub fn step(
        &mut self,
        engine: &mut Engine,
        (workers, in_flight): (usize, usize),
        seconds: f64,
        patience: Duration,
    ) -> Result<Option<Ready>> {
        self.take_search(engine);
        if self.choosing.is_none() {
            let pace = Pace::of(engine);
            let n = wanted(engine, &pace, workers, in_flight);
            if n == 0 {
                return Ok(None);
            }
            let repeat = engine.newest_repeat();
            let known = engine.is_beginning(repeat) || engine.left() == 0;
            if known && !stop::looks_at_beliefs(engine.settings()) {
                // Nothing to work out: this waits for nobody.
                return ready(engine, n, seconds).map(Some);
            }
            self.begin(engine, n, seconds, pace.evaluation)?;
        }
        let Some(found) = self.choosing.as_ref().and_then(|lane| lane.result(patience)) else { return Ok(None) };
        self.choosing = None;
        let Choice { ready, snapshot, searched } = found?;
        if let Some((seconds, values, believed)) = searched {
            self.searched = (may_take(seconds, self.searched.0), values);
            self.newest = Some((snapshot.newest_repeat(), believed));
        }
        engine.adopt(snapshot);
        Ok(Some(ready))
    }

    /// Begins to choose, and to search hyperparameters beside it where that takes long compared with an evaluation.
    fn begin(&mut self, engine: &Engine, n: usize, seconds: f64, evaluation: f64) -> Result<()> {
        let repeat = engine.newest_repeat();
        let values = engine.values_of(repeat);
        let newest = self.newest.as_ref().filter(|(of, _)| *of == repeat).map(|(_, believed)| believed.clone());
        let held = newest.filter(|_| self.searched.0 > LONG * evaluation);
        if held.is_some() && self.searching.is_none() && values as f64 > GROWN * self.searched.1 as f64 {
            let snapshot = engine.snapshot();
            self.searched.1 = values;
            let search = move || {
                let begin = Instant::now();
                snapshot.repeat(repeat).current()?;
                Ok((snapshot, begin.elapsed().as_secs_f64()))
            };
            self.searching = Some(Lane::start(&self.hands, search)?);
        }
        let mut snapshot = engine.snapshot();
        let choose = move || {
            let begin = Instant::now();
            let holds = match &held {
                Some(earlier) => snapshot.hold(repeat, earlier)?,
                None => false,
            };
            let mut searched = None;
            if !holds && let Ok(current) = snapshot.repeat(repeat).current() {
                searched = Some((begin.elapsed().as_secs_f64(), values, current.believed.clone()));
            }
            let mut ready = ready(&snapshot, n, seconds)?;
            if let Ready::Asked(asked) = &mut ready {
                asked.seconds = begin.elapsed().as_secs_f64();
            }
            Ok(Choice { ready, snapshot, searched })
        };
        self.choosing = Some(Lane::start(&self.hands, choose)?);
        Ok(())
    }

    /// Takes in the end of a search, if it has come.
    fn take_search(&mut self, engine: &mut Engine) {
        let Some(found) = self.searching.as_ref().and_then(|lane| lane.result(Duration::ZERO)) else { return };
        self.searching = None;
        // A search that fails leaves the hyperparameters as they are; who chooses without them says what is wrong.
        let Ok((snapshot, seconds)) = found else { return };
        let repeat = snapshot.newest_repeat();
        if let Some(current) = snapshot.repeat(repeat).known() {
            self.newest = Some((repeat, current.believed.clone()));
            self.searched.0 = may_take(seconds, self.searched.0);
        }
        engine.adopt(snapshot);
    }
}

/// How long the next search may take: as long as this one, or half as long as was expected before it. One that finds only what it knew is done at once,
/// and the next may find something new.
fn may_take(seconds: f64, before: f64) -> f64 {
    seconds.max(before / LONGER)
}

/// The next points of a run, at most `n`, or why there are none.
fn ready(engine: &Engine, n: usize, seconds: f64) -> Result<Ready> {
    match stop::next_repeat(engine, seconds) {
        ControlFlow::Break(stop) => Ok(Ready::Stop(stop)),
        ControlFlow::Continue(repeat) => {
            let begin = Instant::now();
            let mut asked = engine.ask_for(repeat, n.min(engine.repeat(repeat).left()).max(1))?;
            asked.seconds = begin.elapsed().as_secs_f64();
            Ok(Ready::Asked(asked))
        }
    }
}

/// How long things take in a run, by its own record.
struct Pace {
    /// The seconds of an evaluation; infinite while none is known.
    evaluation: f64,
    /// The seconds that choosing points may take: the most of the last few times.
    choice: f64,
}

impl Pace {
    fn of(engine: &Engine) -> Self {
        let run = engine.repeat(engine.newest_repeat());
        let answers = run.ledger().entries().rev().filter_map(|entry| entry.answer.as_ref());
        let mut recent: Vec<f64> = answers.take(RECENT).map(|told| told.seconds).collect();
        recent.sort_by(f64::total_cmp);
        let Some(&median) = recent.get(recent.len() / 2) else {
            return Self { evaluation: f64::INFINITY, choice: 0.0 };
        };
        let batches = run.ledger().batches().iter().rev().take(BATCHES);
        // Those of the beginning need no belief, and say nothing about one.
        let first = if run.has_believed() { 0.0 } else { FIRST * run.ledger().entries().len() as f64 };
        let choice = batches.map(|asked| asked.seconds).fold(first, f64::max);
        Self { evaluation: median.max(LEAST_SECONDS), choice }
    }
}

/// How many of the last answers tell how long an evaluation takes: their median, because the first of a worker includes its start.
const RECENT: usize = 32;

/// How many points to choose now; zero to wait. Enough for the free workers, and where choosing takes long compared with an evaluation, for those that
/// will be free by the time that it is done and by the time that it will be done again.
fn wanted(engine: &Engine, pace: &Pace, workers: usize, in_flight: usize) -> usize {
    let repeat = engine.newest_repeat();
    let Pace { evaluation, choice } = *pace;
    let ahead = if choice <= WAIT * evaluation {
        0.0
    } else if engine.values_of(repeat) < workers {
        // The first answers come together, and after a start that counts as part of them.
        f64::INFINITY
    } else {
        MARGIN * workers as f64 * choice / evaluation
    };
    // As for batches: on a poor model no more than a share of what it rests on, or will when these are chosen.
    let share = engine.settings().growth(engine.prior().dim());
    let most = 0.5 * share * (engine.values_of(repeat) + in_flight) as f64;
    let ahead = ahead.ceil().min(most.floor()) as usize;
    if in_flight >= workers + ahead {
        return 0;
    }
    (workers + 2 * ahead - in_flight).min(MOST_ASKED)
}
