//! A run and its record.

mod lend;

use std::{path::PathBuf, sync::Arc};

use batchquad::{
    Error,
    journal::{Event, Lines, LogValue, Retried, Row, Store, Told, Topic},
    run::{self, Plan, Schedule, Step, Stop},
    types::{JobId, Outcome},
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::{prelude::*, types::PyBytes};
use serde_json::Value;

use crate::{
    belief::Belief,
    chooser::Chooser,
    desk::{Desk, Drawer},
    errors::fault,
    prior::{Prior, Raised, rows_of},
    report,
    words::{Asked, Ending, Opened, asked, clean, ending, read_kind, read_settings, read_status, word},
    work::interruptible,
};

/// Job id, value, number of the attempt, seconds, worker and standard deviation.
type Answer = (u64, f64, u32, f64, Option<String>, Option<f64>);

/// A run and its record: in memory, or a store on the disk.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Session {
    desk: Arc<Desk>,
    drawer: Arc<Drawer>,
    raised: Raised,
    path: Option<PathBuf>,
    opened: Opened,
    chooser: Chooser,
}

#[pymethods]
impl Session {
    /// A run of `prior`; with a `path` in a store there, which is made or resumed.
    #[new]
    #[pyo3(signature = (prior, settings, seed=None, path=None))]
    fn new(py: Python<'_>, prior: &Prior, settings: &str, seed: Option<u64>, path: Option<PathBuf>) -> PyResult<Self> {
        let settings = read_settings(py, settings)?;
        let plan = Plan { prior: prior.prior.clone(), problem: prior.problem.clone(), settings, seed };
        let at = path.clone();
        let opened = interruptible(py, move || match at {
            None => run::Session::in_memory(&plan).map(|session| (session, Opened::default())),
            Some(dir) if Store::exists(&dir) => {
                run::Session::resume(&dir, &plan).map(|(session, replay)| (session, Opened::new(&replay)))
            }
            Some(dir) => match run::Session::create(&dir, &plan) {
                // Somebody else has made it since we looked.
                Err(Error::StoreExists { .. }) => {
                    run::Session::resume(&dir, &plan).map(|(session, replay)| (session, Opened::new(&replay)))
                }
                created => created.map(|session| (session, Opened::default())),
            },
        });
        let (session, opened) = prior.raised.instead_of(opened)?;
        Ok(Self::adopt(session, prior.raised.clone(), path, opened))
    }

    /// The run in the store at `path`, whose header says what the problem is.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let dir = path.clone();
        let (session, replay) = interruptible(py, move || run::Session::open(&dir))?;
        Ok(Self::adopt(session, Raised::default(), Some(path), Opened::new(&replay)))
    }

    /// Goes on in memory with a run whose journal was kept. Where the prior is made of functions it has to be given again; settings replace those
    /// of the journal.
    #[staticmethod]
    #[pyo3(signature = (journal, prior=None, settings=None, seed=None))]
    fn recall(
        py: Python<'_>,
        journal: Vec<u8>,
        prior: Option<&Prior>,
        settings: Option<&str>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let settings = settings.map(|settings| read_settings(py, settings)).transpose()?;
        let raised = prior.map(|prior| prior.raised.clone()).unwrap_or_default();
        let given = prior.map(|prior| (prior.prior.clone(), prior.problem.clone()));
        let session = interruptible(py, move || {
            let Some((prior, problem)) = given else { return run::Session::recall(journal, None).map(|found| found.0) };
            let settings = match settings {
                Some(settings) => settings,
                None => {
                    let kept = Lines::read(journal.clone())?.1.ledger()?.settings().clone();
                    serde_json::from_value(Value::Object(kept))
                        .map_err(|e| Error::invalid("settings of the run", e.to_string(), "those of this release"))?
                }
            };
            let plan = Plan { prior, problem, settings, seed };
            run::Session::recall(journal, Some(&plan)).map(|found| found.0)
        });
        Ok(Self::adopt(raised.instead_of(session)?, raised, None, Opened::default()))
    }

    /// The journal of the run. It includes the belief at its end, so that a reader need not work it out again.
    fn journal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let path = self.path.clone();
        let bytes = self.long(py, move |session, _| {
            let mut lines = match (&session.transcript, path) {
                (Some(transcript), _) => transcript.lines()?,
                (None, Some(path)) => Lines::of_store(path)?.0,
                (None, None) => return Err(Error::invalid("run", "without a journal", "one in memory or in a store")),
            };
            for value in session.new_beliefs().unwrap_or_default() {
                lines.append(&Event::Remark { topic: Topic::Belief, value })?;
            }
            Ok(lines.bytes().to_vec())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The belief about the integrand given all values so far, unless there is none.
    fn belief(&self, py: Python<'_>) -> PyResult<Option<Belief>> {
        let belief = self.long(py, |session, _| {
            let engine = &session.engine;
            Ok(engine.current().ok().map(|current| (current.clone(), engine.prior().clone())))
        })?;
        Ok(belief.map(|(current, prior)| Belief::new(current, prior, self.raised.clone())))
    }

    /// The program's report of the run as a page of HTML; `journal` is that of this run.
    #[pyo3(signature = (journal, name, known_log_z=None))]
    fn page(&self, py: Python<'_>, journal: Vec<u8>, name: String, known_log_z: Option<f64>) -> PyResult<String> {
        self.long(py, move |session, _| {
            let (_, replay) = Lines::read(journal)?;
            batchquad_cli::report_page(&session.engine, &replay, &name, known_log_z)
                .map_err(|reason| Error::Numerical { what: "report".into(), reason })
        })
    }

    /// What was found on opening that the user should know.
    #[getter]
    fn remark(&self) -> Option<String> {
        self.opened.remark.clone()
    }

    /// Whether the process that had the store before was killed.
    #[getter]
    fn was_killed(&self) -> bool {
        self.opened.was_killed
    }

    /// The directory of the store.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// The names of the parameters, in order.
    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.quick(py, |session| Ok(session.engine.prior().names().to_vec()))
    }

    /// The seed of the run.
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        self.quick(py, |session| Ok(session.engine.seed()))
    }

    /// The settings in force, as JSON.
    #[getter]
    fn settings(&self, py: Python<'_>) -> PyResult<String> {
        let settings = self.quick(py, |session| Ok(session.engine.settings().clone()))?;
        serde_json::to_string(&settings).map_err(|e| fault(&e.to_string()))
    }

    /// Replaces the settings; what differs is recorded.
    fn change(&self, py: Python<'_>, settings: &str) -> PyResult<()> {
        let settings = read_settings(py, settings)?;
        self.quick(py, move |session| session.change(&settings))
    }

    /// Up to `n` points to evaluate, and why there are not more.
    fn ask<'py>(&self, py: Python<'py>, n: usize) -> PyResult<(Vec<Asked<'py>>, Option<Ending>)> {
        let (jobs, stop) = self.long(py, move |session, interrupt| session.ask(n, || interrupt.is_raised()))?;
        Ok((asked(py, jobs), stop.map(ending)))
    }

    /// What a driver does next: evaluate these jobs, end for this reason, or wait. With the asynchronous schedule points are chosen while others are
    /// evaluated: this returns at once unless nothing is in flight.
    fn step<'py>(
        &self,
        py: Python<'py>,
        workers: usize,
        in_flight: usize,
        seconds: f64,
    ) -> PyResult<(Vec<Asked<'py>>, Option<Ending>)> {
        if self.quick(py, |session| Ok(session.engine.settings().schedule))? == Schedule::Async {
            return self.step_ahead(py, (workers, in_flight), seconds);
        }
        let (jobs, stop) =
            self.long(py, move |session, interrupt| match run::next_step(&session.engine, in_flight, seconds) {
                Step::Wait => Ok((Vec::new(), None)),
                Step::Stop(stop) => Ok((Vec::new(), Some(stop))),
                Step::Ask { repeat, n } => {
                    session.ask_batch(repeat, n, || interrupt.is_raised()).map(|jobs| (jobs, None))
                }
            })?;
        Ok((asked(py, jobs), stop.map(ending)))
    }

    /// Whether points are being chosen while others are evaluated.
    #[getter]
    fn is_choosing(&self) -> bool {
        self.chooser.is_choosing()
    }

    /// Records a log-likelihood, with the standard deviation of its noise if that is known. NaN, +∞ and standard deviations that are none are
    /// recorded as failures, whose message is returned beside what the record did.
    #[pyo3(signature = (id, value, attempt=1, seconds=0.0, worker=None, sd=None, replace=false))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn tell(
        &self,
        py: Python<'_>,
        id: u64,
        value: f64,
        attempt: u32,
        seconds: f64,
        worker: Option<String>,
        sd: Option<f64>,
        replace: bool,
    ) -> PyResult<(&'static str, Option<String>)> {
        self.quick(py, move |session| {
            let theta = session.engine.ledger().entry(JobId(id))?.job.theta.clone();
            let (outcome, sd) = Outcome::from_log_likelihood(&theta, value).with_sd(&theta, sd);
            let message = match &outcome {
                Outcome::Failed { message, .. } => Some(message.clone()),
                Outcome::Value(_) => None,
            };
            let told = Told { id: JobId(id), outcome, sd, attempt, seconds, worker };
            let event = if replace { Event::Replaced(told) } else { Event::Told(told) };
            Ok((word(session.keep(&event)?), message))
        })
    }

    /// Records several log-likelihoods at once: job, value, number of the attempt, seconds, worker and standard deviation of each, as for `tell`.
    fn tell_all(&self, py: Python<'_>, answers: Vec<Answer>) -> PyResult<()> {
        self.quick(py, move |session| {
            let mut events = Vec::new();
            for (id, value, attempt, seconds, worker, sd) in answers {
                let theta = &session.engine.ledger().entry(JobId(id))?.job.theta;
                let (outcome, sd) = Outcome::from_log_likelihood(theta, value).with_sd(theta, sd);
                events.push(Event::Told(Told { id: JobId(id), outcome, sd, attempt, seconds, worker }));
            }
            session.engine.keep_all(session.record.as_mut(), events)
        })
    }

    /// Records that there is no value, and why.
    #[pyo3(signature = (id, kind, message, attempt=1, seconds=0.0, worker=None, replace=false))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn fail(
        &self,
        py: Python<'_>,
        id: u64,
        kind: &str,
        message: String,
        attempt: u32,
        seconds: f64,
        worker: Option<String>,
        replace: bool,
    ) -> PyResult<&'static str> {
        let kind = read_kind(py, kind)?;
        self.quick(py, move |session| {
            let outcome = Outcome::Failed { kind, message: clean(&message) };
            let told = Told { attempt, seconds, worker, ..Told::new(JobId(id), outcome) };
            let event = if replace { Event::Replaced(told) } else { Event::Told(told) };
            Ok(word(session.keep(&event)?))
        })
    }

    /// Records that an attempt failed and the job is tried again.
    fn retry(&self, py: Python<'_>, id: u64, attempt: u32, kind: &str, message: String) -> PyResult<()> {
        let failure = read_kind(py, kind)?;
        let event = Event::Retried(Retried { id: JobId(id), attempt, failure, message: clean(&message) });
        self.quick(py, move |session| session.keep(&event).map(|_| ()))
    }

    /// Records evaluations made elsewhere, a row of `theta` for each of the `values`; says how many were new. The standard deviations of their
    /// noise are NaN where they are not known.
    #[pyo3(signature = (theta, values, sds=None))]
    fn import_rows(
        &self,
        py: Python<'_>,
        theta: PyReadonlyArray2<'_, f64>,
        values: PyReadonlyArray1<'_, f64>,
        sds: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<usize> {
        let (points, values) = (rows_of(&theta), values.as_array().to_vec());
        let sds = sds.map_or_else(|| vec![f64::NAN; values.len()], |sds| sds.as_array().to_vec());
        self.long(py, move |session, _| {
            if points.len() != values.len() {
                return Err(Error::length("list of log-likelihoods", points.len(), values.len()));
            }
            if points.len() != sds.len() {
                return Err(Error::length("list of standard deviations", points.len(), sds.len()));
            }
            let mut rows = Vec::new();
            for (theta, (value, sd)) in points.into_iter().zip(values.into_iter().zip(sds)) {
                session.engine.prior().to_latent(&theta)?;
                let row = Row::new(theta, LogValue::new(value)?);
                rows.push(if sd.is_nan() { row } else { row.with_sd(sd)? });
            }
            let before = session.engine.ledger().imported().len();
            session.keep(&Event::Imported { rows })?;
            Ok(session.engine.ledger().imported().len() - before)
        })
    }

    /// Records what a function returned beside its value.
    fn blob(&self, py: Python<'_>, text: String) -> PyResult<()> {
        let event = Event::Remark { topic: Topic::Blob, value: text.into() };
        self.quick(py, move |session| session.keep(&event).map(|_| ()))
    }

    /// Records what plots and reports call the parameters: labels by name, as JSON.
    fn label(&self, py: Python<'_>, labels: &str) -> PyResult<()> {
        let labels: Value = serde_json::from_str(labels).map_err(|e| fault(&e.to_string()))?;
        self.quick(py, move |session| session.remark(Topic::Labels, &labels))
    }

    /// What functions returned beside their values, in order.
    fn blobs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.quick(py, |session| {
            let all = session.engine.ledger().remarks(Topic::Blob);
            Ok(all.filter_map(|text| text.as_str().map(str::to_owned)).collect())
        })
    }

    /// The jobs that were asked and not answered.
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Vec<Asked<'py>>> {
        let jobs = self.quick(py, |session| Ok(session.engine.ledger().pending().cloned().collect()))?;
        Ok(asked(py, jobs))
    }

    /// The highest number of an attempt of a job that has ended.
    fn attempts(&self, py: Python<'_>, id: u64) -> PyResult<u32> {
        self.quick(py, move |session| Ok(session.engine.ledger().entry(JobId(id))?.attempts))
    }

    /// How far the run is: evaluations answered, allowed and failed, and log Z with its sd as last believed.
    fn progress(&self, py: Python<'_>) -> PyResult<report::Progress> {
        self.quick(py, |session| Ok(report::progress(&session.engine)))
    }

    /// log Z and its standard deviation given all values so far.
    fn estimate(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        self.long(py, |session, _| {
            let estimate = session.engine.current()?.estimate;
            Ok((estimate.log_z, estimate.log_z_sd))
        })
    }

    /// Why the run is over, judged by its record alone.
    fn standing(&self, py: Python<'_>) -> PyResult<Option<Ending>> {
        Ok(self.long(py, |session, _| Ok(run::standing(&session.engine)))?.map(ending))
    }

    /// Begins to drive the run; says so if a failure has ended it already.
    fn begin(&self, py: Python<'_>) -> PyResult<Option<Ending>> {
        let begin = |session: &mut run::Session| {
            session.losses = run::Losses::default();
            Ok(run::aborted(&session.engine))
        };
        self.end();
        Ok(self.quick(py, begin)?.map(ending))
    }

    /// Breaks off what is being chosen ahead: nobody drives the run any more.
    fn end(&self) {
        self.chooser.end();
    }

    /// A reason to ask no more after the outcome of a job, which has been recorded.
    fn losing(&self, py: Python<'_>, id: u64) -> PyResult<Option<Ending>> {
        Ok(self.quick(py, move |session| session.losing(JobId(id)))?.map(ending))
    }

    /// The ending as it is to be reported: without evidence there is no success.
    fn honest(&self, py: Python<'_>, status: &str, reason: String) -> PyResult<Ending> {
        let status = read_status(status)?;
        Ok(ending(self.long(py, move |session, _| Ok(run::honest(&session.engine, Stop { status, reason })))?))
    }

    /// All that is known: a report as JSON, and the belief unless there is none. `ending` is how the run ended, if it has.
    fn report(&self, py: Python<'_>, ending: Option<(String, String)>) -> PyResult<(String, Option<Belief>)> {
        let stop =
            ending.map(|(status, reason)| read_status(&status).map(|status| Stop { status, reason })).transpose()?;
        let store = self.path.as_ref().map(|path| path.display().to_string());
        let (report, belief) = self.long(py, move |session, _| {
            let engine = &session.engine;
            let belief = engine.current().ok().map(|current| (current.clone(), engine.prior().clone()));
            Ok((report::report(engine, stop.as_ref(), store)?.to_string(), belief))
        })?;
        let belief = belief.map(|(current, prior)| Belief::new(current, prior, self.raised.clone()));
        Ok((report, belief))
    }

    /// Gives the store up: another process may have it. Never waits for a computation.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.drawer.close());
    }

    /// Before this process is forked: the record is put where the child can close it, whatever other threads are doing.
    fn before_fork(&self) {
        self.drawer.before_fork();
    }

    /// After a fork, in the parent.
    fn after_fork(&self) {
        self.drawer.after_fork();
    }

    /// After a fork, in the child: closes what it inherited, so that the parent's lock ends with the parent.
    fn disinherit(&self) {
        self.drawer.disinherit();
        self.desk.give_up_if_lent();
    }
}

impl Session {
    fn adopt(mut session: run::Session, raised: Raised, path: Option<PathBuf>, opened: Opened) -> Self {
        let drawer = Drawer::of(&mut session);
        Self { desk: Arc::new(Desk::new(session)), drawer, raised, path, opened, chooser: Chooser::default() }
    }
}
