//! Ask, apply, estimate: the bridge between beliefs on one side and journal and evaluators on the other.
//!
//! The state is the fold of the run's events ([`Ledger`]); a live run and a resumed one go through the same
//! [`Engine::apply`]. [`Engine::ask`] changes nothing: it gives the event to be recorded.

mod basis;
mod believe;

pub use basis::{Believed, Repairs, Round};
pub use believe::MOST_NODES;

use std::{cell::OnceCell, collections::BTreeMap, ops::Range, sync::Arc};

use basis::{Basis, read_basis};
use believe::{Memories, Values, believe, recall};
use serde_json::Value;

use crate::{
    belief::{
        any::{self, Belief},
        estimate::Estimate,
        residuals::Residual,
    },
    choose::batch::batch,
    error::{Error, Result},
    infer::posterior::{Posterior, mass_nearest},
    journal::{Applied, Asked, Event, Header, Ledger, Told},
    numeric::rng::job_seed,
    points::Points,
    prior::Prior,
    run::{
        record::{Memory, Record},
        settings::{OnFailure, Settings},
    },
    types::{Job, JobId, Outcome},
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
    recalled: Option<Believed>,
    history: Vec<Round>,
    fallbacks: usize,
    current: OnceCell<Current>,
    posterior: OnceCell<Posterior>,
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
            recalled: None,
            history: Vec::new(),
            fallbacks: 0,
            current: OnceCell::new(),
            posterior: OnceCell::new(),
            ledger,
        };
        for (batches, asked) in engine.ledger.batches().to_vec().iter().enumerate() {
            engine.take_basis(asked, read_basis(asked)?, batches);
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
            Event::Asked(asked) => Read::Basis(Box::new(read_basis(asked)?)),
            Event::Settings { changes } => {
                let mut settings = self.ledger.settings().clone();
                settings.extend(changes.clone());
                let settings = read_settings(&settings, self.prior.dim())?;
                if settings.start != self.settings.start {
                    let expected = format!("the one that the run began with, {:?}", self.settings.start);
                    return Err(Error::invalid("start", settings.start, expected));
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
        match (event, read) {
            (Event::Asked(asked), Read::Basis(basis)) => {
                self.take_basis(asked, *basis, self.ledger.batches().len() - 1);
            }
            (_, Read::Settings(settings)) => self.settings = *settings,
            _ => {}
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
            self.history.push(Round { batches, belief: belief.clone() });
            self.last = Some(belief);
        }
        self.fallbacks += basis.fallbacks;
    }

    /// Chooses up to `n` further points, with everything that is still being evaluated as pending, and gives the event
    /// that records them. Nothing changes until that event is applied; asking twice gives the same answer.
    ///
    /// The first points are those of [`Settings::start`], then the initial design. When it is used up before any finite
    /// value is known, it goes on.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `n = 0`; numerical errors when no belief can be formed.
    pub fn ask(&self, n: usize) -> Result<Asked> {
        if n == 0 {
            return Err(Error::invalid("number of points to ask", n, "at least 1"));
        }
        if n > MOST_ASKED {
            return Err(Error::invalid("number of points to ask", n, format!("at most {MOST_ASKED} at a time")));
        }
        let asked = self.ledger.entries().len();
        let initial = self.initial_size();
        let (points, belief, fallbacks) = if asked < initial || !self.has_value() {
            let n = if asked < initial { n.min(initial - asked) } else { n };
            (self.design(asked..asked + n)?, None, 0)
        } else {
            let current = self.current()?;
            let search = self.settings.search(self.seed(), asked as u64);
            let chosen = batch(&current.surrogate, &*self.settings.rule(), &self.avoided()?, n, search)?;
            (chosen.points, Some(current.believed.clone()), chosen.fallbacks)
        };
        let first = self.ledger.next_id().0;
        let mut jobs = Vec::new();
        for (k, u) in points.rows().enumerate() {
            let id = JobId(first + k as u64);
            let theta = match self.starts.get(asked + k) {
                // To the bit as it was given.
                Some((theta, _)) => theta.clone(),
                None => self.prior.to_theta(u)?,
            };
            jobs.push(Job { id, theta, seed: job_seed(self.seed(), id) });
        }
        let basis = Basis { latent: points.rows().map(<[f64]>::to_vec).collect(), belief, fallbacks };
        let info = serde_json::to_value(basis)
            .map_err(|e| Error::Numerical { what: "record of a batch".into(), reason: e.to_string() })?;
        Ok(Asked { jobs, seconds: 0.0, info })
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

    /// How many points the next batch should have: the whole batch for an initial design, then no more than the share
    /// of the values known that [`Settings::batch_growth`] allows.
    #[must_use]
    pub fn next_batch(&self) -> usize {
        if self.ledger.entries().len() < self.initial_size() {
            return self.settings.batch;
        }
        let values = self.ledger.values().count() + self.ledger.imported().len();
        self.settings.batch.min((self.settings.batch_growth * values as f64) as usize).max(1)
    }

    /// Reminds the engine of a belief it came to earlier, so that its hyperparameters need not be searched for again.
    /// It counts only for the very values and choices that it rests on, and then gives the same bits; any other is
    /// passed over.
    pub fn remind(&mut self, belief: Believed) {
        self.recalled = Some(belief);
        self.forget();
    }

    /// Drops what was worked out from values that are no longer all.
    fn forget(&mut self) {
        self.current = OnceCell::new();
        self.posterior = OnceCell::new();
    }

    /// The belief given all values so far, with its estimate of the evidence. Worked out once and kept until an event
    /// arrives.
    ///
    /// # Errors
    /// [`Error::NoFiniteValue`] when there is nothing to integrate yet; numerical errors when no belief can be formed.
    pub fn current(&self) -> Result<&Current> {
        if let Some(current) = self.current.get() {
            return Ok(current);
        }
        let values = self.data(None)?;
        let memories = Memories { last: self.last.as_ref(), recalled: self.recalled.as_ref() };
        let current = believe(&self.settings, (self.prior.dim(), self.seed()), &values, memories)?;
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
        let posterior = Posterior::new(Arc::clone(&self.current()?.surrogate), self.prior.clone(), self.seed())?;
        Ok(self.posterior.get_or_init(|| posterior))
    }

    /// The belief that the hyperparameters recorded with a batch give to all that was asked before job `first`.
    pub(crate) fn belief_before(&self, first: JobId, believed: &Believed) -> Result<any::Earlier> {
        recall(&self.settings, self.prior.dim(), &self.data(Some(first))?, believed)
    }

    /// Latent coordinates with their log-likelihoods: imported rows first, then jobs by id, up to one if that is named.
    fn data(&self, before: Option<JobId>) -> Result<Values> {
        let mut data = Values::default();
        let mut add = |row: Vec<f64>, log: f64, sd: Option<f64>| {
            data.rows.push(row);
            data.logs.push(log);
            data.sds.push(sd);
        };
        for row in self.ledger.imported() {
            add(self.prior.to_latent(&row.theta)?, row.log_likelihood.get(), row.sd);
        }
        for entry in self.ledger.entries().take_while(|entry| before.is_none_or(|id| entry.job.id < id)) {
            let failed = matches!(entry.answer, Some(Told { outcome: Outcome::Failed { .. }, .. }));
            if failed && self.settings.on_failure == OnFailure::AsZero {
                add(self.latent_of(entry.job.id)?.to_vec(), f64::NEG_INFINITY, None);
            }
            for (value, sd) in entry.values() {
                add(self.latent_of(entry.job.id)?.to_vec(), value, sd);
            }
        }
        if !data.logs.iter().any(|l| l.is_finite()) {
            return Err(Error::NoFiniteValue { count: data.logs.len() });
        }
        Ok(data)
    }

    fn has_value(&self) -> bool {
        let finite = |v: f64| v.is_finite();
        self.ledger.values().any(|(_, v)| finite(v))
            || self.ledger.imported().iter().any(|r| finite(r.log_likelihood.get()))
    }

    /// Points that must not be asked again: those being evaluated, and those that failed for good.
    fn avoided(&self) -> Result<Points> {
        let zero = self.settings.on_failure == OnFailure::AsZero;
        let mut flat = Vec::new();
        for entry in self.ledger.entries() {
            let failed = entry.answer.is_some() && entry.value().is_none();
            if entry.is_pending() || (failed && !zero) {
                flat.extend_from_slice(self.latent_of(entry.job.id)?);
            }
        }
        Points::new(self.prior.dim(), flat)
    }

    /// The latent coordinates of a job.
    ///
    /// # Errors
    /// [`Error::UnknownJob`].
    pub fn latent_of(&self, id: JobId) -> Result<&[f64]> {
        self.latent.get(&id).map(Vec::as_slice).ok_or(Error::UnknownJob { id })
    }

    /// How many points a run begins with: those to start from, and an initial design, of which none are needed when
    /// values were imported.
    #[must_use]
    pub fn initial_size(&self) -> usize {
        let wanted = self.settings.design_size(self.prior.dim());
        self.starts.len() + wanted.saturating_sub(self.ledger.imported().len())
    }

    /// The seed of the run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.ledger.header().seed()
    }

    /// The prior.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All that has happened.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was believed each time a batch was chosen.
    #[must_use]
    pub fn history(&self) -> &[Round] {
        &self.history
    }

    /// The share of the prior that is nearer to a point whose evaluation failed than to any value: what the
    /// belief can only guess. None when nothing failed, or when failures count as likelihood zero.
    ///
    /// # Errors
    /// When an imported point cannot be mapped to latent coordinates.
    pub fn excluded_mass(&self) -> Result<Option<f64>> {
        let (mut failed, mut known) = (Vec::new(), Vec::new());
        for entry in self.ledger.entries().filter(|entry| !entry.is_pending()) {
            let points = if entry.value().is_some() { &mut known } else { &mut failed };
            points.extend_from_slice(self.latent_of(entry.job.id)?);
        }
        if failed.is_empty() || self.settings.on_failure == OnFailure::AsZero {
            return Ok(None);
        }
        for row in self.ledger.imported() {
            known.extend(self.prior.to_latent(&row.theta)?);
        }
        let (failed, known) = (Points::new(self.prior.dim(), failed)?, Points::new(self.prior.dim(), known)?);
        mass_nearest(&failed, &known, 4096, self.seed()).map(Some)
    }

    /// How many points were space-filling because the acquisition had none to offer.
    #[must_use]
    pub fn fallbacks(&self) -> usize {
        self.fallbacks
    }
}

fn read_settings(map: &serde_json::Map<String, Value>, dim: usize) -> Result<Settings> {
    let mut map = map.clone();
    // Runs from before there was a choice integrated against the prior.
    map.entry("reference").or_insert_with(|| Value::from("prior"));
    let settings: Settings = serde_json::from_value(Value::Object(map))
        .map_err(|e| Error::invalid("settings", e.to_string(), "settings of this release"))?;
    settings.validate()?;
    match &settings.known_kernel {
        Some(known) if known.lengthscales.len() != dim => {
            Err(Error::length("known_kernel.lengthscales", dim, known.lengthscales.len()))
        }
        _ => Ok(settings),
    }
}
