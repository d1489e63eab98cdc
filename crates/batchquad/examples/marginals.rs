//! How long the posterior of a large run takes, on one thread: all marginals of one and of two parameters, draws, a prediction.
//!
//! `cargo run --release -p batchquad --example marginals [nodes] [dimensions] [lengthscale]`

use std::env;

use batchquad::{
    Points, Prior, Result,
    belief::{Gaussian, Model, SquaredExponential, Surrogate},
    infer::Posterior,
    numeric::{Jitter, Purpose, Stream},
    prior::Distribution,
};
use cpu_time::ThreadTime;

fn timed<T>(what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = ThreadTime::now();
    let out = run()?;
    println!("{what}: {:.2} s of processor time", start.elapsed().as_secs_f64());
    Ok(out)
}

fn main() -> Result<()> {
    let number = |i: usize, default: f64| env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, dim, lengthscale) = (number(1, 2000.0) as usize, number(2, 4.0) as usize, number(3, 0.9));
    // One thread, so that the figure does not depend on the machine's cores.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let work = || -> Result<()> {
        let nodes = Points::new(dim, Stream::new(1, Purpose::Experiment, 0).normals(n * dim))?;
        let logs: Vec<f64> = nodes.rows().map(|x| -x.iter().map(|v| (v - 0.3).powi(2)).sum::<f64>()).collect();
        let kernel = SquaredExponential::new(1.0, vec![lengthscale; dim])?;
        let measure = Gaussian::standard(dim)?.into();
        let normal = Distribution::normal(0.0, 1.0)?;
        let prior = Prior::independent((0..dim).map(|k| (format!("p{k}"), normal)))?;
        let belief = timed("fit with known hyperparameters", || {
            Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &logs, kernel, Jitter::default())
        })?;
        let posterior = timed("posterior", || Posterior::new(belief.clone(), prior.clone(), 0))?;
        let moments = timed("latent moments", || posterior.latent_moments())?;
        let marginals = timed("all marginals of one parameter, with moments", || posterior.marginals())?;
        timed("their curves and 95 % intervals, both kinds", || {
            for marginal in &marginals {
                marginal.curve(200)?;
                marginal.interval(0.95)?;
                marginal.highest_density(0.95)?;
            }
            Ok(())
        })?;
        timed("all marginals of two parameters on 50 × 50 points", || {
            for k in 0..dim {
                for l in 0..k {
                    posterior.joint(l, k)?.surface(50)?;
                }
            }
            Ok(())
        })?;
        let draws = timed("4096 draws", || posterior.draws(4096, 0))?;
        let found = timed("a prediction from 4096 draws", || posterior.expect(4096, 0, |x| vec![x[0].tanh()]))?;
        println!(
            "mean {:.4}, effective draws {:.0}, prediction {:.4} ± {:.1e}",
            moments.mean[0],
            draws.effective(),
            found.mean[0],
            found.error(0)
        );
        Ok(())
    };
    match pool {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
