//! Ask, apply, estimate: the bridge between beliefs on one side and journal and evaluators on the other.
//!
//! The state is the fold of the run's events ([`Ledger`]); a live run and a resumed one go through the same
//! [`Engine::apply`]. [`Engine::ask`] changes nothing: it gives the event to be recorded.

mod agreement;
mod basis;
mod believe;
mod cuts;
mod data;
mod lend;
mod look;
mod repeats;

pub use agreement::Agreement;
pub use basis::{Believed, Repairs, Round};
pub use believe::MOST_NODES;

use std::{cell::OnceCell, collections::BTreeMap, ops::Range, sync::Arc};

use basis::{Basis, read_basis};
use cuts::require_cuts;
use look::read_settings;
use serde_json::Value;

use crate::{
    belief::{any::Belief, estimate::Estimate, residuals::Residual},
    choose::batch::batch,
    error::{Error, Result},
    infer::posterior::Posterior,
    journal::{Applied, Asked, Event, Header, Ledger},
    numeric::rng::job_seed,
    points::Points,
    prior::Prior,
    run::{
        record::{Memory, Record},
        settings::Settings,
    },
    types::{Job, JobId},
};

/// More points than anybody evaluates together; beyond it a typing error is the likely cause.
pub const MOST_ASKED: usize = 10_000;

/// A belief with the state that describes it.
#[derive(Debug, Clone)]
pub struct Current {
    /// The belief about the integrand, in the coordinates of its frame.
    pub surrogate: Arc<Belief>,
    /// The belief about the evidence: the model's mean, with its variance, the jackknife's and, where the integral is
    /// by sampling, the sampling's.
    pub estimate: Estimate,
    /// The standard deviation of `log Z` by the model alone.
    pub model_sd: f64,
    /// How each value is predicted from all the others, in the order of the surrogate's nodes.
    pub residuals: Vec<Residual>,
    /// Hyperparameters and repairs.
    pub believed: Believed,
    /// Whether independent runs agree, where there are several; if not, the estimate's variance includes their scatter.
    pub agreement: Option<Agreement>,
    /// Whether the hyperparameters are those of an earlier belief: good for choosing points, not for the record.
    pub(crate) held: bool,
}

/// The state of a run and all that can be asked of it.
#[derive(Debug)]
pub struct Engine {
    prior: Prior,
    settings: Settings,
    /// The points to begin with, each with its latent coordinates.
    starts: Vec<(Vec<f64>, Vec<f64>)>,
    ledger: Ledger,
    latent: BTreeMap<JobId, Vec<f64>>,
    last: Option<Believed>,
    recalled: Vec<Believed>,
    history: Vec<Round>,
    fallbacks: usize,
    /// Which of several independent runs this is; zero for one alone and for all together.
    number: usize,
    /// The independent runs that this one is the whole of, each with its own values only; none where there is one.
    repeats: Vec<Engine>,
    current: OnceCell<Current>,
    posterior: OnceCell<Posterior>,
    /// How often what was worked out had to be dropped: a snapshot with the same number knows the same values.
    revision: u64,
}

/// What an event says beyond the ledger's part of it.
enum Read {
    Basis(Box<Basis>),
    Settings(Box<Settings>),
    Nothing,
}

impl Engine {
    /// A run in memory, in which nothing has happened yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings out of range.
    pub fn new(prior: Prior, settings: Settings, seed: u64) -> Result<Self> {
        let header = Header::new(prior.names().to_vec(), seed, Value::Null, settings.to_map()?)?;
        Self::from_ledger(prior, Ledger::new(header))
    }

    /// A run from its ledger: settings are the ledger's.
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings or batches that cannot be read, [`Error::Length`] for a prior of another
    /// dimension.
    pub fn from_ledger(prior: Prior, ledger: Ledger) -> Result<Self> {
        let mut engine = Self::one_run(prior, ledger, 0)?;
        engine.repeats = engine.split()?;
        Ok(engine)
    }

    /// The run of all jobs in a ledger.
    fn one_run(prior: Prior, ledger: Ledger, number: usize) -> Result<Self> {
        if prior.dim() != ledger.header().dim() {
            return Err(Error::length("prior", ledger.header().dim(), prior.dim()));
        }
        let settings = read_settings(ledger.settings(), prior.dim())?;
        let mut engine = Self {
            starts: settings.start_points(&prior)?,
            settings,
            prior,
            latent: BTreeMap::new(),
            last: None,
            recalled: Vec::new(),
            history: Vec::new(),
            fallbacks: 0,
            number,
            repeats: Vec::new(),
            current: OnceCell::new(),
            posterior: OnceCell::new(),
            revision: 0,
            ledger,
        };
        for (batches, asked) in engine.ledger.batches().to_vec().iter().enumerate() {
            let basis = read_basis(asked)?;
            require_cuts(&engine.prior, basis.belief.as_ref().map_or(&[], |b| b.cuts.as_slice()))?;
            engine.take_basis(asked, basis, batches);
        }
        Ok(engine)
    }

    /// Records an event and then lets it count: the one way in which a run moves on. What is known already is not
    /// recorded again.
    ///
    /// # Errors
    /// As [`Engine::apply`] (then nothing is recorded) and [`Record::append`] (then it does not count).
    pub fn keep(&mut self, record: &mut dyn Record, event: &Event) -> Result<Applied> {
        let (applied, read) = self.judge(event)?;
        if applied != Applied::Repeated {
            record.append(event)?;
            self.take(event, read)?;
        }
        Ok(applied)
    }

    /// [`Engine::keep`] for several events at once, which become durable together. Each is judged by the state before the first, so they have to be
    /// about different jobs, or about attempts at a job and then its answer.
    ///
    /// # Errors
    /// As [`Engine::keep`]; then none of them counts.
    pub fn keep_all(&mut self, record: &mut dyn Record, events: Vec<Event>) -> Result<()> {
        let mut news = Vec::new();
        for event in events {
            let (applied, read) = self.judge(&event)?;
            if applied != Applied::Repeated {
                news.push((event, read));
            }
        }
        let (events, reads): (Vec<Event>, Vec<Read>) = news.into_iter().unzip();
        record.append_all(&events)?;
        events.iter().zip(reads).try_for_each(|(event, read)| self.take(event, read))
    }

    /// Takes in an event that is kept elsewhere, or nowhere.
    ///
    /// # Errors
    /// As [`Ledger::judge`]; [`Error::Invalid`] for a batch or settings that cannot be read. The state is then as it
    /// was.
    pub fn apply(&mut self, event: &Event) -> Result<Applied> {
        self.keep(&mut Memory, event)
    }

    /// What an event would do, and what it says.
    fn judge(&self, event: &Event) -> Result<(Applied, Read)> {
        let read = match event {
            Event::Asked(asked) => {
                self.require_repeat(asked.repeat)?;
                let basis = read_basis(asked)?;
                require_cuts(&self.prior, basis.belief.as_ref().map_or(&[], |b| b.cuts.as_slice()))?;
                Read::Basis(Box::new(basis))
            }
            Event::Settings { changes } => {
                let mut settings = self.ledger.settings().clone();
                settings.extend(changes.clone());
                let settings = read_settings(&settings, self.prior.dim())?;
                if settings.start != self.settings.start {
                    let expected = format!("the one that the run began with, {:?}", self.settings.start);
                    return Err(Error::invalid("start", settings.start, expected));
                }
                if settings.repeats() < self.settings.repeats() {
                    let expected = format!("at least {}, which the run has already", self.settings.repeats());
                    return Err(Error::invalid("repeats", settings.repeats(), expected));
                }
                Read::Settings(Box::new(settings))
            }
            _ => Read::Nothing,
        };
        Ok((self.ledger.judge(event)?, read))
    }

    /// Lets an event count that was judged to do something.
    fn take(&mut self, event: &Event, read: Read) -> Result<()> {
        self.ledger.take(event)?;
        let repeats = self.settings.repeats();
        match (event, read) {
            (Event::Asked(asked), Read::Basis(basis)) => {
                self.take_basis(asked, *basis, self.ledger.batches().len() - 1);
            }
            (_, Read::Settings(settings)) => self.settings = *settings,
            _ => {}
        }
        if self.settings.repeats() == repeats {
            self.hand_down(event)?;
        } else if self.number == 0 {
            self.repeats = self.split()?;
        }
        if !matches!(event, Event::Asked(_) | Event::Note { .. } | Event::Remark { .. }) {
            self.forget();
        }
        Ok(())
    }

    /// Remembers what a batch was chosen from; `batches` had been asked before it.
    fn take_basis(&mut self, asked: &Asked, basis: Basis, batches: usize) {
        for (job, latent) in asked.jobs.iter().zip(basis.latent) {
            self.latent.insert(job.id, latent);
        }
        if let Some(belief) = basis.belief {
            self.history.push(Round { batches, repeat: asked.repeat, belief: belief.clone() });
            self.last = Some(belief);
        }
        self.fallbacks += basis.fallbacks;
    }

    /// Chooses up to `n` further points, with everything that is still being evaluated as pending, and gives the event
    /// that records them. Nothing changes until that event is applied; asking twice gives the same answer.
    ///
    /// The first points are those of [`Settings::start`], then the initial design. When it is used up before any finite value is known, it
    /// goes on. Of several independent runs they are for the one that was last asked for.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `n = 0`; numerical errors when no belief can be formed.
    pub fn ask(&self, n: usize) -> Result<Asked> {
        self.ask_for(self.newest_repeat(), n)
    }

    /// [`Engine::ask`] for one of the independent runs, counted from zero.
    ///
    /// # Errors
    /// As [`Engine::ask`]; [`Error::Invalid`] for one that there is not.
    pub fn ask_for(&self, repeat: usize, n: usize) -> Result<Asked> {
        self.require_repeat(repeat)?;
        self.repeat(repeat).choose(n, self.ledger.next_id())
    }

    /// Points of this run alone, the first of which is job `first`.
    fn choose(&self, n: usize, JobId(first): JobId) -> Result<Asked> {
        if n == 0 {
            return Err(Error::invalid("number of points to ask", n, "at least 1"));
        }
        if n > MOST_ASKED {
            return Err(Error::invalid("number of points to ask", n, format!("at most {MOST_ASKED} at a time")));
        }
        let asked = self.ledger.entries().len();
        let initial = self.initial_size();
        let mut seen = self.prior.clone();
        let (points, belief, fallbacks) = if asked < initial || !self.has_value() {
            let n = if asked < initial { n.min(initial - asked) } else { n };
            (self.design(asked..asked + n)?, None, 0)
        } else {
            let current = self.current()?;
            seen = seen.cut_at(&current.believed.cuts)?;
            let search = self.settings.search(self.seed(), asked as u64);
            let avoided = self.avoided(&current.believed.cuts)?;
            let chosen = batch(&*self.sketch(current)?, &*self.settings.rule(), &avoided, n, search)?;
            (self.new_among(chosen.points)?, Some(current.believed.clone()), chosen.fallbacks)
        };
        let mut jobs = Vec::new();
        for (k, u) in points.rows().enumerate() {
            let id = JobId(first + k as u64);
            let theta = match self.starts.get(asked + k) {
                // To the bit as it was given.
                Some((theta, _)) => theta.clone(),
                None => self.prior.wrapped(&seen.to_theta(u)?)?,
            };
            jobs.push(Job { id, theta, seed: job_seed(self.seed(), id) });
        }
        let basis = Basis { latent: points.rows().map(<[f64]>::to_vec).collect(), belief, fallbacks };
        let info = serde_json::to_value(basis)
            .map_err(|e| Error::Numerical { what: "record of a batch".into(), reason: e.to_string() })?;
        Ok(Asked { jobs, seconds: 0.0, info, repeat: self.number })
    }

    /// Latent points of the start and of the initial design after it, by their numbers.
    fn design(&self, numbers: Range<usize>) -> Result<Points> {
        let starts = self.starts.len();
        let design = match numbers.end.saturating_sub(starts) {
            0 => Points::new(self.prior.dim(), Vec::new())?,
            n => self.settings.initial_design.latent(self.prior.dim(), n, self.seed())?,
        };
        let row = |i: usize| if i < starts { self.starts[i].1.as_slice() } else { design.row(i - starts) };
        Points::from_rows(&numbers.map(row).collect::<Vec<_>>())
    }

    /// Reminds the engine of a belief it came to earlier, so that its hyperparameters need not be searched for again.
    /// It counts only for the very values and choices that it rests on, and then gives the same bits; any other is
    /// passed over.
    pub fn remind(&mut self, belief: Believed) {
        for run in &mut self.repeats {
            run.remind(belief.clone());
        }
        self.recalled.push(belief);
        self.forget();
    }

    /// Drops what was worked out from values that are no longer all.
    fn forget(&mut self) {
        self.revision += 1;
        self.current = OnceCell::new();
        self.posterior = OnceCell::new();
    }

    /// The belief given all values so far, those of all independent runs together, with its estimate of the evidence. Worked out once and kept until an event arrives.
    ///
    /// # Errors
    /// [`Error::NoFiniteValue`] when there is nothing to integrate yet; numerical errors when no belief can be formed.
    pub fn current(&self) -> Result<&Current> {
        if let Some(current) = self.current.get() {
            return Ok(current);
        }
        let current = if self.repeats.is_empty() { self.believed_from(self.last.as_ref())? } else { self.pooled()? };
        Ok(self.current.get_or_init(|| current))
    }

    /// [`Engine::current`], if it has been worked out already.
    #[must_use]
    pub fn known(&self) -> Option<&Current> {
        self.current.get()
    }

    /// What the belief given all values so far says about the parameters. Worked out once and kept until an event
    /// arrives.
    ///
    /// # Errors
    /// As [`Engine::current`].
    pub fn posterior(&self) -> Result<&Posterior> {
        if let Some(posterior) = self.posterior.get() {
            return Ok(posterior);
        }
        let current = self.current()?;
        let prior = self.prior.cut_at(&current.believed.cuts)?;
        let posterior = Posterior::new(Arc::clone(&current.surrogate), prior, self.seed())?;
        Ok(self.posterior.get_or_init(|| posterior))
    }
}
