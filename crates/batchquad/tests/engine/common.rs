//! A small problem, an evaluator in this thread, and records to look into.

use std::{collections::VecDeque, time::Duration};

use batchquad::{
    Engine, Error, Prior, Result, Settings,
    evaluate::{Evaluator, Finished, Interrupt},
    journal::Event,
    prior::Distribution,
    run::{Progress, Record, Run, Stop},
    types::{Job, Outcome},
};

pub(crate) fn prior(d: usize) -> Prior {
    let names = ["a", "b", "c", "d"];
    Prior::independent(names[..d].iter().map(|n| (*n, Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

pub(crate) fn bump(theta: &[f64]) -> f64 {
    -theta.iter().map(|t| (t - 0.5).powi(2)).sum::<f64>()
}

/// `∫ exp(−(t−½)²) N(t; 0, 1) dt = exp(−¼/3)/√3` in each dimension.
pub(crate) fn bump_truth(d: usize) -> f64 {
    d as f64 * (-0.25 / 3.0 - 0.5 * 3.0_f64.ln())
}

/// An evaluator in this thread that answers in the order it likes.
pub(crate) struct Fake<'a> {
    queue: VecDeque<Job>,
    workers: usize,
    backwards: bool,
    answer: &'a dyn Fn(&Job) -> Outcome,
}

impl<'a> Fake<'a> {
    pub(crate) fn new(workers: usize, backwards: bool, answer: &'a dyn Fn(&Job) -> Outcome) -> Self {
        Self { queue: VecDeque::new(), workers, backwards, answer }
    }
}

impl Evaluator for Fake<'_> {
    fn submit(&mut self, job: Job) -> Result<()> {
        self.queue.push_back(job);
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<Option<Finished>> {
        let job = if self.backwards { self.queue.pop_back() } else { self.queue.pop_front() };
        Ok(job.map(|job| Finished {
            id: job.id,
            outcome: (self.answer)(&job),
            sd: None,
            attempts: 1,
            retried: Vec::new(),
            seconds: 0.0,
            worker: 0,
            stderr_tail: String::new(),
        }))
    }
    fn workers(&self) -> usize {
        self.workers
    }
    fn in_flight(&self) -> usize {
        self.queue.len()
    }
    fn interrupt(&self) -> Interrupt {
        Interrupt::default()
    }
    fn shutdown(&mut self) {}
}

/// Keeps every event.
#[derive(Default)]
pub(crate) struct Tape(pub(crate) Vec<Event>);

impl Record for Tape {
    fn append(&mut self, event: &Event) -> Result<()> {
        self.0.push(event.clone());
        Ok(())
    }
}

pub(crate) fn value(job: &Job) -> Outcome {
    Outcome::Value(bump(&job.theta))
}

/// A record on a disk that is full.
pub(crate) struct Full;

impl Record for Full {
    fn append(&mut self, _: &Event) -> Result<()> {
        Err(Error::io("journal.jsonl", "append to", "no space left on device"))
    }
}

pub(crate) fn finish(engine: &mut Engine, evaluator: &mut dyn Evaluator, record: &mut dyn Record) -> Stop {
    let mut run = Run::new(engine, evaluator, record).unwrap();
    loop {
        if let Progress::Done(stop) = run.advance(Duration::from_secs(1)).unwrap() {
            return stop;
        }
    }
}

pub(crate) fn small() -> Settings {
    Settings { batch: 4, max_evaluations: 26, ..Settings::default() }
}

/// A job's id, point and value.
pub(crate) type Bits = (u64, Vec<u64>, Option<u64>);

/// Everything that a run knows, as bits; clocks left out.
pub(crate) fn bits(engine: &Engine) -> (u64, u64, Vec<Bits>) {
    let e = engine.current().unwrap().estimate;
    let jobs = engine
        .ledger()
        .entries()
        .map(|e| (e.job.id.0, e.job.theta.iter().map(|t| t.to_bits()).collect(), e.value().map(f64::to_bits)))
        .collect();
    (e.log_z.to_bits(), e.log_z_sd.to_bits(), jobs)
}
