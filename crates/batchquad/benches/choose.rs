//! Seconds of choosing plus refitting per chosen point, on the 4-D mixture of `mixture4d.json`; prints one JSON object.
//!
//! `cargo bench --bench choose` beside `python benches/emukit_loop.py`: see `README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{collections::BTreeMap, time::Instant};

use batchquad::{
    Points,
    belief::{FitOptions, Gaussian, Model, Surrogate},
    choose::{BatchRule, Search},
    numeric::{Purpose, Stream},
};
use serde_json::{Value, json};

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
        // As in the middle of a run: the hyperparameters of a few points ago are known.
        let earlier = Points::new(4, nodes.as_slice()[..4 * (n - 8)].to_vec()).unwrap();
        let before =
            Surrogate::fit(Model::WsabiL, measure.clone().into(), &earlier, &logs[..n - 8], &options, None).unwrap();
        let warm = before.gp().kernel().clone();
        let none = Points::new(4, vec![]).unwrap();
        for (name, rule) in
            [("kriging-believer", BatchRule::KrigingBeliever), ("local-penalisation", BatchRule::LocalPenalisation)]
        {
            for batch in [1, 8, 16] {
                let mut per_point = Vec::new();
                let (mut fitting, mut evaluations) = (Vec::new(), 0);
                for repeat in 0..7 {
                    let begin = Instant::now();
                    let belief =
                        Surrogate::fit(Model::WsabiL, measure.clone().into(), &nodes, &logs, &cheap, Some(&warm))
                            .unwrap();
                    fitting.push(begin.elapsed().as_secs_f64());
                    let search = Search { asked: n as u64 + repeat, ..Search::default() };
                    let chosen = rule.select(&belief, &none, batch, search).unwrap();
                    evaluations += chosen.evaluations;
                    per_point.push(begin.elapsed().as_secs_f64() / batch as f64);
                }
                let entry = json!({
                    "per_point": median(per_point),
                    "fit": median(fitting),
                    "evaluations_per_point": evaluations as f64 / (7 * batch) as f64,
                });
                table.entry(format!("{name}, batch {batch}")).or_insert(json!({}))[n.to_string()] = entry;
            }
        }
    }
    println!("{}", serde_json::to_string_pretty(&table).unwrap());
}
