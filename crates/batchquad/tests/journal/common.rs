//! A run to write down, and a disk that fails on demand.

use batchquad::journal::{Asked, Event, Header, LogValue, Medium, Recorded, Retried, Row, Store, Told};
use batchquad::types::{FailureKind, Job, JobId, Outcome};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub fn header() -> Header {
    let problem = json!({"prior": [{"normal": {"mean": 0, "sd": 1.5}}, {"uniform": {"low": -1, "high": 1}}]});
    let settings = json!({"max_evaluations": 100}).as_object().unwrap().clone();
    Header::new(vec!["x; touch pwned".into(), "θ\u{1b}[31m</script>\n".into()], u64::MAX, problem, settings).unwrap()
}

pub fn job(id: u64, theta: [f64; 2]) -> Job {
    Job { id: JobId(id), theta: theta.to_vec(), seed: u64::MAX - id }
}

pub fn asked(jobs: Vec<Job>) -> Event {
    Event::Asked(Asked { jobs, seconds: 0.25, info: json!({"rule": "local-penalisation"}), repeat: 0 })
}

pub fn value(id: u64, value: f64) -> Event {
    Event::Told(Told { seconds: 1.5, worker: Some("node-3".into()), ..Told::new(JobId(id), Outcome::Value(value)) })
}

pub fn failed(id: u64, attempt: u32, message: &str) -> Event {
    let outcome = Outcome::Failed { kind: FailureKind::Timeout, message: message.into() };
    Event::Told(Told { attempt, ..Told::new(JobId(id), outcome) })
}

/// A run with every kind of event and the numbers that are hardest to write down.
pub fn events() -> Vec<Event> {
    let row = |a, b, v| Row { theta: vec![a, b], log_likelihood: LogValue::new(v).unwrap(), sd: None };
    vec![
        Event::Imported { rows: vec![row(0.1, -0.0, f64::MIN), row(f64::MAX, 5e-324, f64::NEG_INFINITY)] },
        asked(vec![job(0, [1.0 / 3.0, -2.5e-308]), job(1, [1e300, 1e-300]), job(2, [0.0, 123_456_789.123_456_78])]),
        value(1, f64::NEG_INFINITY),
        Event::Retried(Retried {
            id: JobId(2),
            attempt: 1,
            failure: FailureKind::LostWorker,
            message: "worker \"7\" is gone\n\u{0}".into(),
        }),
        value(0, -0.1 - 0.2),
        failed(2, 2, "no answer after 3 s"),
        Event::Settings { changes: json!({"max_evaluations": 200}).as_object().unwrap().clone() },
        asked(vec![job(3, [0.5, 0.5]), job(7, [-0.5, f64::MIN_POSITIVE])]),
        Event::LeaseExpired { id: JobId(3) },
        value(2, -1e6),
        value(3, 4.0),
        value(3, 5.0),
        Event::Note { text: "moved to another machine".into() },
    ]
}

pub fn only(records: &[Recorded]) -> Vec<Event> {
    records.iter().map(|record| record.event.clone()).collect()
}

/// A directory that goes away, and the path of a store in it. In memory where that is possible: thousands of flushes of a
/// busy disk take minutes, and what they are for, a power failure, is not what these tests can try.
pub fn scratch() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = scratch.path().join("store");
    (scratch, dir)
}

/// The same on a disk.
#[cfg(unix)]
pub fn on_disk() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    (scratch, dir)
}

pub fn write_store(dir: &Path) {
    let mut store = Store::create(dir, &header()).unwrap();
    for event in events() {
        store.append(&event).unwrap();
    }
}

/// A store made of the given bytes.
pub fn store_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let (scratch, dir) = scratch();
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("journal.jsonl"), bytes).unwrap();
    (scratch, dir)
}

pub fn bytes_of(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("journal.jsonl")).unwrap()
}

/// The bytes of a whole store, written once.
pub fn whole() -> Vec<u8> {
    let (_scratch, dir) = scratch();
    write_store(&dir);
    bytes_of(&dir)
}

/// How far the failing operation gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    Half,
    All,
}

/// Fails the `at`-th operation; afterwards nothing works any more if it `kills`.
#[derive(Debug)]
pub struct Plan {
    pub at: u64,
    pub fault: Fault,
    pub kills: bool,
    count: AtomicU64,
    dead: AtomicBool,
}

impl Plan {
    pub fn new(at: u64, fault: Fault, kills: bool) -> Arc<Self> {
        Arc::new(Self { at, fault, kills, count: AtomicU64::new(0), dead: AtomicBool::new(false) })
    }

    pub fn fired(&self) -> bool {
        self.count.load(Ordering::SeqCst) > self.at
    }

    pub fn wrap(self: &Arc<Self>) -> impl Fn(Box<dyn Medium>) -> Box<dyn Medium> + use<> {
        let plan = Arc::clone(self);
        move |inner| Box::new(Faulty { inner, plan: Arc::clone(&plan) })
    }

    /// How far the next operation gets; `None` is all the way.
    fn next(&self) -> Option<Fault> {
        if self.dead.load(Ordering::SeqCst) {
            return Some(Fault::Nothing);
        }
        let fires = self.count.fetch_add(1, Ordering::SeqCst) == self.at;
        self.dead.store(fires && self.kills, Ordering::SeqCst);
        fires.then_some(self.fault)
    }
}

#[derive(Debug)]
struct Faulty {
    inner: Box<dyn Medium>,
    plan: Arc<Plan>,
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "injected: no space left")
}

impl Medium for Faulty {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.plan.next() {
            None => self.inner.append(bytes),
            Some(Fault::Nothing) => Err(broken()),
            Some(Fault::Half) => self.inner.append(&bytes[..bytes.len() / 2]).and(Err(broken())),
            Some(Fault::All) => self.inner.append(bytes).and(Err(broken())),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.plan.next() {
            None => self.inner.sync(),
            Some(_) => Err(broken()),
        }
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        match self.plan.next() {
            None => self.inner.cut(size),
            Some(Fault::All) => self.inner.cut(size).and(Err(broken())),
            Some(_) => Err(broken()),
        }
    }
}
