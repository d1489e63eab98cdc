//! What is looked at, and from where on it matters.

use super::{Finding, Forecast, Level, Residual};
use crate::{
    embed::product_mul,
    engine::{Current, Engine},
    error::Result,
    gp::Order,
    points::Points,
    posterior::Draws,
    surrogate::Surrogate,
};

/// Draws that stand for the posterior.
const DRAWS: usize = 2048;

/// Draws at which the belief's own uncertainty is worked out, which costs more.
const FEW: usize = 256;

/// Everything, in a fixed order.
pub(super) fn all(
    engine: &Engine,
    current: &Current,
    residuals: &[Residual],
    forecasts: &[Forecast],
) -> Result<Vec<Finding>> {
    let belief = &current.surrogate;
    let draws = engine.posterior()?.draws(DRAWS, engine.seed())?;
    let mut out = Vec::new();
    let mut push =
        |name: &'static str, value: f64| out.push(Finding { name, value, sentence: String::new(), level: Level::Fine });
    let rms = |v: &[f64]| (v.iter().map(|r| r * r).sum::<f64>() / v.len().max(1) as f64).sqrt();
    let max = |v: &[f64]| v.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
    let r: Vec<f64> = residuals.iter().map(|r| r.standardised).collect();
    push("loo_rms", rms(&r));
    push("loo_max", max(&r));
    let f: Vec<f64> = forecasts.iter().map(|f| f.standardised).collect();
    let last = forecasts.last().map_or(0, |f| f.batch);
    let recent: Vec<f64> = f[f.len() - f.len() / 2..].to_vec();
    let newest: Vec<f64> = forecasts.iter().filter(|f| f.batch == last).map(|f| f.standardised).collect();
    push("fc_rms", rms(&f));
    push("fc_recent_rms", rms(&recent));
    push("fc_recent_max", max(&recent));
    push("fc_newest_rms", rms(&newest));
    push("fc_newest_max", max(&newest));
    // how far the newest forecast was off in log likelihood relative to top
    let shares = nearest_shares(belief, &draws);
    push("eff_nodes", 1.0 / shares.iter().map(|s| s * s).sum::<f64>());
    push("top_share", max(&shares));
    let chosen = draws.resample(FEW)?;
    let rows: Vec<&[f64]> = chosen.iter().map(|&i| draws.latent().row(i)).collect();
    let p = belief.gp().predict(&Points::from_rows(&rows)?, Order::Value)?;
    let sigma2 = belief.gp().kernel().sigma2();
    let mut spread: Vec<f64> = p.mean.iter().zip(&p.variance).map(|(m, c)| 2.0 * c.sqrt() / m.abs()).collect();
    spread.sort_by(f64::total_cmp);
    push("logl_sd_median", spread[FEW / 2]);
    push("logl_sd_90", spread[FEW * 9 / 10]);
    push("prior_share", p.variance.iter().map(|c| c / sigma2).sum::<f64>() / FEW as f64);
    let w: Vec<f64> = draws.log_weights().iter().map(|l| l.exp()).collect();
    let beyond =
        |k: usize| draws.latent().rows().zip(&w).filter(|(u, _)| u[k].abs() > 3.0).map(|(_, w)| w).sum::<f64>();
    push("edge", (0..draws.latent().dim()).map(beyond).fold(0.0, f64::max));
    push("lengthscale", belief.gp().kernel().lengthscales().iter().copied().fold(f64::INFINITY, f64::min));
    push("ess", draws.effective());
    let rounds = crate::run::rounds(engine);
    let now = current.estimate.log_z;
    let drift: Vec<f64> = rounds
        .iter()
        .rev()
        .skip(1)
        .take(3)
        .filter_map(|r| Some((now - r.belief.log_z?) / r.belief.log_z_sd?))
        .collect();
    push("drift_max", max(&drift));
    push("drift_last", drift.first().copied().unwrap_or(0.0).abs());
    let moved: Vec<f64> = rounds.iter().rev().skip(1).take(3).filter_map(|r| Some(now - r.belief.log_z?)).collect();
    push("moved_max", max(&moved));
    let inverse = belief.gp().factor().inverse_lower();
    let (pw, sizes) = product_mul(belief.gp().kernel(), belief.measure(), belief.gp().nodes(), belief.gp().weights())?;
    let solved = belief.gp().factor().solve_vec(&pw);
    let influence: Vec<f64> = (0..r.len())
        .map(|i| belief.gp().weights()[i] / inverse.get(i, i) * solved[i] / current.estimate.mean)
        .collect();
    push("influence_max", max(&influence) / current.estimate.log_z_sd);
    push("influence_rms", influence.iter().map(|v| v * v).sum::<f64>().sqrt() / current.estimate.log_z_sd);
    push("condition", belief.gp().factor().condition().log10());
    push("cancel", (0.5 * sizes / current.estimate.mean).log10());
    push("clamped", f64::from(u8::from(current.believed.repairs.clamped_variance)));
    push("at_bound", f64::from(u8::from(current.believed.repairs.lengthscale_at_bound)));
    push("rungs", current.believed.repairs.jitter_rungs as f64);
    push("fallbacks", engine.fallbacks() as f64);
    push("sd", current.estimate.log_z_sd);
    Ok(out)
}

/// The share of the posterior that is nearest to each node, distances being in lengthscales.
fn nearest_shares(belief: &Surrogate, draws: &Draws) -> Vec<f64> {
    let (nodes, lengthscales) = (belief.gp().nodes(), belief.gp().kernel().lengthscales());
    let mut shares = vec![0.0; nodes.len()];
    for (x, log_weight) in draws.latent().rows().zip(draws.log_weights()) {
        let square = |node: &[f64]| -> f64 {
            node.iter().zip(x).zip(lengthscales).map(|((a, b), l)| ((a - b) / l).powi(2)).sum()
        };
        let nearest = nodes.rows().enumerate().map(|(i, node)| (square(node), i)).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, i)) = nearest {
            shares[i] += log_weight.exp();
        }
    }
    shares
}
