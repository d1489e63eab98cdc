//! Many workers and long runs: how busy the workers are, and the driver's processor time per evaluation; prints a Markdown table.
//!
//! `cargo bench --bench scale -- workers`, `-- long` or, for one run of so many workers, seconds and evaluations, `-- 256 0.5 5000`: see `README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    sync::Mutex,
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use batchquad::{
    Engine, Integration, Prior, Settings,
    journal::{Event, Told},
    prior::Distribution,
    run::Schedule,
    types::Outcome,
};
use cpu_time::ProcessTime;

fn prior(dim: usize) -> Prior {
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    Prior::independent((0..dim).map(|k| (format!("x{k}"), normal))).unwrap()
}

/// A normal distribution of standard deviation ½, bent a little so that it is not exactly quadratic.
fn bump(t: &[f64]) -> f64 {
    let square: f64 = t.iter().map(|t| (t - 0.5).powi(2)).sum();
    -2.0 * square + 0.3 * (2.0 * t[0]).sin() * t[1]
}

/// Who was busy from when to when, in seconds.
type Busy = Vec<(ThreadId, f64, f64)>;

/// The share of the workers' time in which they were busy, from when all have begun until the last evaluation is handed out.
fn share(busy: &Busy, workers: usize) -> (f64, f64) {
    let mut first = std::collections::HashMap::new();
    for (id, begin, _) in busy {
        let earliest = first.entry(*id).or_insert(*begin);
        *earliest = earliest.min(*begin);
    }
    let first = first.values().copied().fold(0.0, f64::max);
    let last = busy.iter().map(|b| b.1).fold(0.0, f64::max);
    let worked: f64 = busy.iter().map(|(_, begin, end)| (end.min(last) - begin.max(first)).max(0.0)).sum();
    (worked / (workers as f64 * (last - first)), last - first)
}

fn workers(workers: usize, seconds: f64, evaluations: usize) {
    let settings = Settings { max_evaluations: evaluations, schedule: Schedule::Async, ..Settings::default() };
    let busy: Mutex<Busy> = Mutex::default();
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let run = Integration::new(prior(4)).settings(settings).workers(workers).run(|theta| {
        let begin = start.elapsed().as_secs_f64();
        thread::sleep(Duration::from_secs_f64(seconds));
        busy.lock().unwrap().push((thread::current().id(), begin, start.elapsed().as_secs_f64()));
        bump(theta)
    });
    let (cpu, run) = (cpu.elapsed().as_secs_f64(), run.unwrap());
    let (share, span) = share(&busy.lock().unwrap(), workers);
    println!(
        "| {evaluations} evaluations of {seconds} s on {workers} workers | {:.1} % | {:.2} ms | {span:.1} s | {} | {} |",
        100.0 * share,
        1e3 * cpu / evaluations as f64,
        run.engine.ledger().batches().len(),
        run.estimate,
    );
    if std::env::var_os("BATCHES").is_some() {
        for asked in run.engine.ledger().batches() {
            eprintln!("{} points in {:.3} s", asked.jobs.len(), asked.seconds);
        }
    }
}

/// Seconds of processor time and of the clock that something takes, in words.
fn timed<T>(work: impl FnOnce() -> T) -> (T, String) {
    let (cpu, clock) = (ProcessTime::now(), Instant::now());
    let done = work();
    (done, format!("{:.2} ({:.2})", cpu.elapsed().as_secs_f64(), clock.elapsed().as_secs_f64()))
}

/// Chooses so many points and takes them in, with their values or as pending. How long choosing takes.
fn more(engine: &mut Engine, n: usize, told: bool) -> String {
    let (asked, seconds) = timed(|| engine.ask(n).unwrap());
    let jobs = asked.jobs.clone();
    engine.apply(&Event::Asked(asked)).unwrap();
    for job in jobs.iter().filter(|_| told) {
        let outcome = Outcome::from_log_likelihood(&job.theta, bump(&job.theta));
        engine.apply(&Event::Told(Told::new(job.id, outcome))).unwrap();
    }
    seconds
}

/// How long a belief takes.
fn believe(engine: &Engine) -> String {
    timed(|| engine.current().unwrap()).1
}

/// A run that knows so many values: fits, and batches without and with others pending.
fn long(dim: usize, known: usize, batch: usize) {
    let settings = Settings { max_evaluations: usize::MAX, initial_size: Some(known), ..Settings::default() };
    let mut engine = Engine::new(prior(dim), settings, 1).unwrap();
    more(&mut engine, known, true);
    let first = believe(&engine);
    more(&mut engine, 16, true);
    let again = believe(&engine);
    let (alone, beside) = (more(&mut engine, batch, false), more(&mut engine, batch, false));
    println!("| {known} values, {dim}-D, batch {batch} | {first} | {again} | {alone} | {beside} |");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["long"] => {
            println!(
                "| seconds of processor time (of the clock) | first fit | with 16 more | a batch | with a batch pending |\n|---|---:|---:|---:|---:|"
            );
            for (dim, known) in [(4, 500), (4, 2000), (10, 2000), (10, 5000), (20, 2000)] {
                long(dim, known, 64);
            }
        }
        ["long", dim, known, batch] => long(dim.parse().unwrap(), known.parse().unwrap(), batch.parse().unwrap()),
        [count, seconds, evaluations] => {
            workers(count.parse().unwrap(), seconds.parse().unwrap(), evaluations.parse().unwrap());
        }
        _ => {
            println!(
                "| | workers busy | processor time per evaluation | span | batches | log Z |\n|---|---:|---:|---:|---:|---:|"
            );
            for (count, seconds, evaluations) in [(64, 0.1, 2000), (64, 0.5, 2000), (256, 0.5, 5000)] {
                workers(count, seconds, evaluations);
            }
        }
    }
}
