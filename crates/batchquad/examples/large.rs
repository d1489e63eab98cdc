//! Five thousand nodes: how long the parts of a round take, and the most memory the process has held (Linux).
//!
//! `cargo run --release -p batchquad --example large [nodes]`

use std::{env, fs, time::Instant};

use batchquad::{
    Points, Result,
    belief::{Gaussian, Model, SquaredExponential, Surrogate, log_marginal_likelihood},
    numeric::{Jitter, Order, Purpose, Stream},
};

const DIM: usize = 4;

/// The high-water mark of resident memory, as the kernel gives it.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
    kib.map_or_else(|| "unknown".to_owned(), |k| format!("{} MiB", k / 1024))
}

fn timed<T>(what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let out = run()?;
    println!("{what}: {:.1} s, peak memory so far {}", start.elapsed().as_secs_f64(), peak_memory());
    Ok(out)
}

fn main() -> Result<()> {
    let n = env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(5000);
    let kernel = SquaredExponential::new(1.3, vec![0.9, 1.1, 1.3, 1.6])?;
    let mut stream = Stream::new(1, Purpose::Experiment, 0);
    let nodes = Points::new(DIM, stream.normals(n * DIM))?;
    let log_values: Vec<f64> = nodes.rows().map(|x| -0.5 * x.iter().map(|v| (v - 0.3).powi(2)).sum::<f64>()).collect();
    let targets: Vec<f64> = log_values.iter().map(|l| (2.0 * l.exp()).sqrt()).collect();
    println!("{n} nodes in {DIM} dimensions; one matrix takes {} MiB", (n * n * 8) >> 20);
    timed("gradient of the marginal likelihood", || {
        log_marginal_likelihood(&kernel, &nodes, &targets, Jitter::default())
    })?;
    let measure = Gaussian::standard(DIM)?;
    let belief = timed("posterior", || {
        Surrogate::with_kernel(Model::WsabiL, measure.into(), &nodes, &log_values, kernel, Jitter::default())
    })?;
    let queries = Points::new(DIM, stream.normals(64 * DIM))?;
    timed("prediction with gradients at 64 points", || belief.gp().predict(&queries, Order::Gradient))?;
    let estimate = timed("estimate, WSABI-L", || belief.estimate())?;
    let more = Points::new(DIM, stream.normals(16 * DIM))?;
    timed("16 further nodes", || belief.condition(&more, &[0.5; 16]))?;
    timed("estimate, WSABI-M", || belief.estimate_as(Model::WsabiM))?;
    println!("log Z = {:.6} ± {:.1e}", estimate.log_z, estimate.log_z_sd);
    Ok(())
}
