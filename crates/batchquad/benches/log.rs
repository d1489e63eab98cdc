//! Milliseconds of fitting plus choosing per chosen point in runs with the belief about log ℓ; prints a Markdown table.
//!
//! `RAYON_NUM_THREADS=1 cargo bench --bench log`: see `README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{f64::consts::TAU, time::Instant};

use batchquad::{
    Engine, Prior, Settings,
    journal::{Event, Told},
    prior::Distribution,
    types::Outcome,
};

/// Where the time is taken, over the batches that begin in the last eighth before it.
const AT: [usize; 3] = [64, 128, 256];

const SEEDS: u64 = 3;

type Likelihood = fn(&[f64]) -> f64;

fn banana(t: &[f64]) -> f64 {
    -0.5 * (((t[0] - 0.5) / 0.8).powi(2) + ((t[1] - t[0] * t[0] + 1.0) / 0.2).powi(2))
}

/// Three normal distributions, whose widths differ.
fn mixture(t: &[f64]) -> f64 {
    let part = |mean: f64, s: f64| -> f64 {
        let square: f64 = t.iter().enumerate().map(|(k, t)| ((t - mean * (1.0 + k as f64 / 4.0)) / s).powi(2)).sum();
        (-0.5 * square).exp() / (TAU * s * s).powf(0.5 * t.len() as f64)
    };
    (0.5 * part(0.0, 0.6) + 0.3 * part(0.7, 0.4) + 0.2 * part(-0.7, 0.5)).ln()
}

/// A normal distribution, narrow along a chain of differences.
fn ridge(t: &[f64]) -> f64 {
    -0.5 * t.windows(2).map(|w| ((w[1] - 0.7 * w[0]) / 0.1).powi(2)).sum::<f64>() - 0.5 * (t[0] / 0.3).powi(2)
}

/// Seconds per point around each of [`AT`].
fn run(likelihood: Likelihood, dim: usize, batch: usize, seed: u64) -> Vec<f64> {
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    let prior = Prior::independent((0..dim).map(|k| (format!("x{k}"), normal))).unwrap();
    let settings = Settings { batch, max_evaluations: AT[2] + batch, ..Settings::default() };
    let mut engine = Engine::new(prior, settings, seed).unwrap();
    let mut spent = vec![(0.0, 0); AT.len()];
    let mut done = 0;
    while done < AT[2] {
        let begin = Instant::now();
        let asked = engine.ask(engine.next_batch()).unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        let jobs = asked.jobs.clone();
        engine.apply(&Event::Asked(asked)).unwrap();
        for (at, (sum, count)) in AT.iter().zip(&mut spent) {
            if done < *at && done + at / 8 + batch > *at {
                *sum += seconds;
                *count += jobs.len();
            }
        }
        done += jobs.len();
        for job in jobs {
            let outcome = Outcome::from_log_likelihood(&job.theta, likelihood(&job.theta));
            engine.apply(&Event::Told(Told::new(job.id, outcome))).unwrap();
        }
    }
    spent.into_iter().map(|(sum, count)| sum / f64::from(count as u32)).collect()
}

fn main() {
    let problems: [(&str, Likelihood, usize); 3] =
        [("banana, 2-D", banana, 2), ("mixture, 4-D", mixture, 4), ("ridge, 8-D", ridge, 8)];
    println!("| problem | batch | {} |", AT.map(|n| format!("N = {n}")).join(" | "));
    println!("|---|---:|---:|---:|---:|");
    for (name, likelihood, dim) in problems {
        for batch in [1, 8, 16, 64] {
            let runs: Vec<Vec<f64>> = (1..=SEEDS).map(|seed| run(likelihood, dim, batch, seed)).collect();
            let median = |k: usize| {
                let mut seconds: Vec<f64> = runs.iter().map(|r| r[k]).collect();
                seconds.sort_by(f64::total_cmp);
                format!("{:.1}", 1e3 * seconds[seconds.len() / 2])
            };
            println!("| {name} | {batch} | {} |", (0..AT.len()).map(median).collect::<Vec<_>>().join(" | "));
        }
    }
}
