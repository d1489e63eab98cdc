//! Would an O-ring have failed at 31 °F? A prediction with its error, from 64 evaluations, and averaged over two models.
//!
//! `cargo run --release -p batchquad --example predict`

use batchquad::{
    Config, Integral, Prior, Result, Settings,
    infer::{Expectation, average},
    integrate,
    prior::Distribution,
};

/// The 23 flights before the accident: °F at launch, and whether an O-ring had an incident.
const FLIGHTS: [(f64, bool); 23] = [
    (53.0, true),
    (57.0, true),
    (58.0, true),
    (63.0, true),
    (66.0, false),
    (67.0, false),
    (67.0, false),
    (67.0, false),
    (68.0, false),
    (69.0, false),
    (70.0, false),
    (70.0, true),
    (70.0, true),
    (70.0, false),
    (72.0, false),
    (73.0, false),
    (75.0, false),
    (75.0, true),
    (76.0, false),
    (76.0, false),
    (78.0, false),
    (79.0, false),
    (81.0, false),
];

/// `log(1/(1 + e^−z))`, without overflow on either side.
fn log_logistic(z: f64) -> f64 {
    z.min(0.0) - (-z.abs()).exp().ln_1p()
}

/// The log odds of an incident: `a`, or `a + b (°F − 70)/10`.
fn log_odds(theta: &[f64], fahrenheit: f64) -> f64 {
    theta[0] + theta.get(1).map_or(0.0, |b| b * (fahrenheit - 70.0) / 10.0)
}

/// The evidence of a model with parameters of these names, and its probability of an incident at 31 °F and at 70 °F.
fn model(names: &[&str]) -> Result<(Integral, Expectation)> {
    let normal = Distribution::normal(0.0, 5.0)?;
    let prior = Prior::independent(names.iter().map(|name| (*name, normal)))?;
    let log_likelihood = |theta: &[f64]| {
        let sign = |incident: bool| if incident { 1.0 } else { -1.0 };
        FLIGHTS.iter().map(|&(t, incident)| log_logistic(sign(incident) * log_odds(theta, t))).sum()
    };
    let settings = Settings { max_evaluations: 64, ..Settings::default() };
    let integral = integrate(log_likelihood, prior, Config { settings, ..Config::default() })?;
    let incident = |theta: &[f64]| [31.0, 70.0].map(|t| log_logistic(log_odds(theta, t)).exp()).to_vec();
    let expectation = integral.engine.posterior()?.expect(4096, 0, incident)?;
    Ok((integral, expectation))
}

fn main() -> Result<()> {
    let ((cold, with), (any, without)) = (model(&["a", "b"])?, model(&["a"])?);
    for (name, integral, prediction) in [("temperature matters", &cold, &with), ("it does not", &any, &without)] {
        let estimate = integral.estimate;
        println!("{name}: log Z = {:.4} ± {:.4}", estimate.log_z, estimate.log_z_sd);
        for (k, fahrenheit) in [31, 70].iter().enumerate() {
            let (mean, error) = (prediction.mean[k], prediction.error(k));
            println!("  P(incident at {fahrenheit} °F) = {mean:.4} ± {error:.4}");
        }
    }
    for marginal in cold.engine.posterior()?.marginals()? {
        let (low, high) = marginal.interval(0.95)?;
        println!(
            "{} = {:.2} ± {:.2}, 95 % between {low:.2} and {high:.2}",
            marginal.name(),
            marginal.mean(),
            marginal.sd()
        );
    }
    let mixed = average(&[(cold.estimate, &with), (any.estimate, &without)])?;
    println!("averaged over both: P(incident at 31 °F) = {:.4} ± {:.4}", mixed.mean[0], mixed.sd[0]);
    Ok(())
}
