//! Seconds of choosing plus refitting per chosen point, on the 4-D mixture of `mixture4d.json`; prints one JSON object.
//!
//! `cargo bench --bench choose` beside `python benches/emukit_loop.py`: see `README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{collections::BTreeMap, time::Instant};

use batchquad::{
    Points,
    belief::{FitOptions, Gaussian, Model, SquaredExponential, Surrogate},
    choose::{BatchRule, Search},
    numeric::{Purpose, Stream},
};
use serde_json::{Value, json};

/// Points that are chosen one after the other or in batches, at the least, and how often they are timed.
const POINTS: usize = 7;
const REPEATS: usize = 5;

/// The mixture's log-density in latent coordinates, `θ = 2u`.
fn log_likelihood(mixture: &Value, u: &[f64]) -> f64 {
    let numbers = |v: &Value| -> Vec<f64> { v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    let (variances, weights) = (numbers(&mixture["variances"]), numbers(&mixture["weights"]));
    let terms = mixture["means"].as_array().unwrap().iter().zip(variances).zip(weights).map(|((mean, v), w)| {
        let square: f64 = numbers(mean).iter().zip(u).map(|(m, u)| (2.0 * u - m).powi(2)).sum();
        w * (-0.5 * square / v).exp() / (std::f64::consts::TAU * v).powi(2)
    });
    terms.sum::<f64>().ln()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() {
    let mixture: Value = serde_json::from_str(include_str!("mixture4d.json")).unwrap();
    let sizes = std::env::args().filter_map(|a| a.parse().ok()).collect::<Vec<usize>>();
    let sizes = if sizes.is_empty() { vec![50, 100, 200, 400] } else { sizes };
    let options = FitOptions::default();
    let cheap = FitOptions { starts: vec![], ..FitOptions::default() };
    let mut table: BTreeMap<String, Value> = BTreeMap::new();
    for n in sizes {
        let mut stream = Stream::new(1, Purpose::Experiment, n as u64);
        let nodes = Points::new(4, stream.normals(4 * n)).unwrap();
        let logs: Vec<f64> = nodes.rows().map(|u| log_likelihood(&mixture, u)).collect();
        let measure = Gaussian::standard(4).unwrap();
        let none = Points::new(4, vec![]).unwrap();
        let believe = |nodes: &Points, logs: &[f64], options: &FitOptions, warm: Option<&SquaredExponential>| {
            Surrogate::fit(Model::WsabiL, measure.clone().into(), nodes, logs, options, warm).unwrap()
        };
        // As in the middle of a run: the hyperparameters are known.
        let before = believe(&nodes, &logs, &options, None);
        for (name, rule) in
            [("kriging-believer", BatchRule::KrigingBeliever), ("local-penalisation", BatchRule::LocalPenalisation)]
        {
            for batch in [1, 8, 16] {
                let (mut per_point, mut fits_per_point, mut evaluations_per_point) = (Vec::new(), 0.0, 0.0);
                // The same rounds several times, because the machine may be busy.
                for _ in 0..REPEATS {
                    let (mut nodes, mut logs, mut belief) = (nodes.clone(), logs.clone(), before.clone());
                    let (mut fitted, mut seconds, mut fits, mut evaluations, mut chosen) = (n, 0.0, 0, 0, 0);
                    // At least one search for hyperparameters, and as many points as there are between two of them.
                    while fits == 0 || chosen < POINTS.max(n / 20) {
                        let begin = Instant::now();
                        let search = Search { asked: (n + chosen) as u64, ..Search::default() };
                        let selection = rule.select(&belief, &none, batch, search).unwrap();
                        seconds += begin.elapsed().as_secs_f64();
                        evaluations += selection.evaluations;
                        chosen += batch;
                        nodes = nodes.concat(&selection.points).unwrap();
                        logs.extend(selection.points.rows().map(|u| log_likelihood(&mixture, u)));
                        // Lengthscales are searched for as in a run: when the values have grown by a twentieth, or one surprises.
                        let begin = Instant::now();
                        let new = nodes.len() - fitted;
                        let known = belief.kernel().clone();
                        let how = (known.lengthscales(), options.jitter);
                        let kept = if (new as f64) < 0.05 * fitted as f64 {
                            Surrogate::kept(Model::WsabiL, measure.clone().into(), &nodes, &logs, how, new).unwrap()
                        } else {
                            None
                        };
                        belief = kept.unwrap_or_else(|| {
                            (fits, fitted) = (fits + 1, nodes.len());
                            believe(&nodes, &logs, &cheap, Some(&known))
                        });
                        seconds += begin.elapsed().as_secs_f64();
                    }
                    per_point.push(seconds / chosen as f64);
                    fits_per_point = f64::from(fits) / chosen as f64;
                    evaluations_per_point = evaluations as f64 / chosen as f64;
                }
                let entry = json!({
                    "per_point": median(per_point),
                    "fits_per_point": fits_per_point,
                    "evaluations_per_point": evaluations_per_point,
                });
                table.entry(format!("{name}, batch {batch}")).or_insert(json!({}))[n.to_string()] = entry;
            }
        }
    }
    println!("{}", serde_json::to_string_pretty(&table).unwrap());
}
