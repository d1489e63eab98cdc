//! A batch of 64 in 20 dimensions with 2000 nodes: how long it takes and how much memory.
//!
//! `cargo run --release -p batchquad --example wide`

use std::time::Instant;

use batchquad::{
    Points,
    belief::{FitOptions, Gaussian, Model, Surrogate},
    choose::{BatchRule, Search},
    numeric::{Purpose, Stream},
};

/// The peak resident memory of this process, from the kernel's own books.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("VmHWM: unknown").to_owned()
}

fn main() -> batchquad::Result<()> {
    let (d, n, batch) = (20, 2000, 64);
    let mut stream = Stream::new(1, Purpose::Experiment, 0);
    let nodes = Points::new(d, stream.normals(n * d))?;
    let logs: Vec<f64> = nodes.rows().map(|x| -0.25 * x.iter().map(|v| v * v).sum::<f64>()).collect();
    let begin = Instant::now();
    let measure = Gaussian::standard(d)?.into();
    let belief = Surrogate::fit(Model::WsabiL, measure, &nodes, &logs, &FitOptions::default(), None)?;
    println!("fit from three starts: {:.1} s, {}", begin.elapsed().as_secs_f64(), peak_memory());
    let none = Points::new(d, vec![])?;
    for rule in [BatchRule::KrigingBeliever, BatchRule::LocalPenalisation] {
        let begin = Instant::now();
        let chosen = rule.select(&belief, &none, batch, Search::default())?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{rule:?}: {} points in {seconds:.1} s, {} fallbacks, {}",
            chosen.points.len(),
            chosen.fallbacks,
            peak_memory()
        );
    }
    Ok(())
}
