//! What is looked at, and from where on it matters. The limits were chosen by measurement; the table is in `MATH.md`
//! §14.

use super::{Finding, Forecast, Level};
use crate::{
    belief::{
        any::Belief,
        log::{HIDDEN, LogBelief, coefficients},
        residuals::Residual,
        surrogate::Surrogate,
        warp::Model,
    },
    error::Result,
    infer::posterior::Draws,
    points::Points,
    run::{
        engine::{Agreement, Current, Engine, MOST_NODES},
        settings::MOST_FOR_LOG,
    },
};

/// Draws that stand for the posterior.
const DRAWS: usize = 2048;

/// Draws at which the belief's own uncertainty is worked out, which costs more.
const FEW: usize = 256;

/// What moves `log Z` by less is of no interest, however small its error bar.
const NATS: f64 = 1e-3;

/// Independent runs that are so far apart with a smaller probability are worth a look.
const DOUBT: f64 = 0.01;

/// Everything, in a fixed order.
pub(super) fn all(engine: &Engine, current: &Current, forecasts: &[Forecast]) -> Result<Vec<Finding>> {
    let mut found = vec![error_bar(current)];
    found.extend(current.surrogate.log().map(arrived));
    found.extend(current.surrogate.log().and_then(determined));
    match &current.agreement {
        Some(agreement) => found.push(agreed(agreement)),
        None => found.extend(settled(engine, current)),
    }
    found.push(leave_one_out(&current.residuals));
    if current.estimate.log_z.is_finite() {
        found.push(influence(current));
        found.extend(current.surrogate.warped().and_then(|surrogate| readings(current, surrogate)));
    }
    found.extend(newest(current, forecasts));
    // A belief that is positive nowhere has no posterior; that there is no log Z says it all.
    let posterior = engine.posterior()?;
    if let Ok(draws) = posterior.draws(DRAWS, engine.seed()) {
        found.push(carriers(&current.surrogate, &draws));
        if let Some(surrogate) = current.surrogate.warped() {
            found.push(guesswork(surrogate, &draws)?);
        }
        found.push(edge(&posterior.latent_nodes()?, &draws));
    }
    match &*current.surrogate {
        Belief::Warped(_) => found.push(lengthscales(current)),
        Belief::Log(belief) => found.extend([noise(belief), unseen(belief), explored(belief), higher(belief)]),
    }
    found.extend(given_noise(engine, &current.surrogate));
    found.push(repairs(current));
    found.push(condition(&current.surrogate));
    found.extend(engine.excluded_mass()?.map(failures));
    Ok(found)
}

fn finding(name: &'static str, value: f64, level: Level, sentence: String) -> Finding {
    Finding { name, value, sentence, level }
}

/// The level of a value that is worse when it is larger.
fn above(value: f64, look: f64, distrust: f64) -> Level {
    match value {
        v if v > distrust || v.is_nan() => Level::DoNotTrust,
        v if v > look => Level::Look,
        _ => Level::Fine,
    }
}

fn error_bar(current: &Current) -> Finding {
    let sd = current.estimate.log_z_sd;
    if !current.estimate.log_z.is_finite() {
        let sentence = "the belief about the likelihood is positive nowhere, so there is no log Z".into();
        return finding("error-bar", sd, Level::DoNotTrust, sentence);
    }
    let level = above(sd, 0.5, f64::INFINITY);
    let wide = if level == Level::Fine { "" } else { ": Z is known to little better than a factor of two" };
    finding("error-bar", sd, level, format!("the standard deviation of log Z is {}{wide}", short(sd)))
}

/// Whether the surrogate's posterior is where the values are, and has stopped moving.
fn arrived(belief: &LogBelief) -> Finding {
    let near = belief.known.near_count();
    let (level, sentence) = if belief.settled() {
        (
            Level::Fine,
            format!("the posterior has been found: {near} values lie where most of it is, and it has stopped moving"),
        )
    } else if belief.exploring() {
        let peaks = belief.peaks();
        (
            Level::DoNotTrust,
            format!(
                "the run has not arrived: {peaks} peaks have been found, and where there are several there may be more; it looks elsewhere \
                 for a few evaluations"
            ),
        )
    } else if belief.beyond() {
        (
            Level::DoNotTrust,
            "the run has not arrived: some values seem to belong to another peak, which has not been found yet; more evaluations or a start point there may help".into(),
        )
    } else {
        let advice = "more evaluations, a tighter prior or a start point may help";
        (
            Level::DoNotTrust,
            format!(
                "the run has not arrived: the posterior still moves with every batch, and {near} values lie where most of it is; {advice}"
            ),
        )
    };
    finding("arrived", near as f64, level, sentence)
}

/// Values per coefficient of the quadratic, where there are more parameters than the error bar was calibrated for.
fn determined(belief: &LogBelief) -> Option<Finding> {
    let (values, dim) = (belief.nodes().len(), belief.nodes().dim());
    let coefficients = coefficients(dim);
    let value = values as f64 / coefficients as f64;
    let sentence = format!(
        "the error bar was calibrated for up to {MOST_FOR_LOG} parameters, these are {dim}; {values} values determine the {coefficients} \
         coefficients of a quadratic"
    );
    // Seen in 20 dimensions: with 1.1 values per coefficient the bar is ten times too small, with two it held in the one run that was made.
    (dim > MOST_FOR_LOG).then(|| finding("determined", value, above(-value, f64::NEG_INFINITY, -2.0), sentence))
}

/// The noise of single log-likelihoods as it was fitted.
fn noise(belief: &LogBelief) -> Finding {
    let value = belief.noise();
    let level = if value > 0.05 { Level::Look } else { Level::Fine };
    let sentence = match level {
        Level::Fine if belief.known.noise_given() => {
            format!("apart from the noise that came with values, the log-likelihood is smooth to {} nats", short(value))
        }
        Level::Fine => format!("the log-likelihood is smooth to {} nats", short(value)),
        _ => format!(
            "the log-likelihood looks noisy, with a standard deviation of {value:.2} per value; the error bar includes it (noise, a jump \
             or structure finer than the values can show)"
        ),
    };
    finding("noise", value, level, sentence)
}

/// The standard deviations that values came with, and whether the belief heeds them.
fn given_noise(engine: &Engine, belief: &Belief) -> Option<Finding> {
    let ledger = engine.ledger();
    let asked = ledger.entries().flat_map(|entry| entry.values());
    let imported = ledger.imported().iter().map(|row| (row.log_likelihood.get(), row.sd));
    let mut sds: Vec<f64> = asked.chain(imported).filter_map(|(_, sd)| sd).collect();
    sds.sort_by(f64::total_cmp);
    let (least, most) = (sds.first()?, sds.last()?);
    let value = sds[sds.len() / 2];
    let said = format!("{} values came with a standard deviation, from {least:.2} to {most:.2}", sds.len());
    let (level, sentence) = match belief {
        Belief::Log(_) => (Level::Fine, format!("{said}; it is the noise that they are taken to have")),
        Belief::Warped(_) => (
            Level::DoNotTrust,
            format!(
                "{said}, which this belief ignores: log Z and its error bar treat the values as exact; surrogate = \"log\" does not"
            ),
        ),
    };
    Some(finding("given-noise", value, level, sentence))
}

/// What a process on all values still expects where nobody has looked.
fn unseen(belief: &LogBelief) -> Finding {
    let value = belief.unseen();
    let sentence = format!(
        "where nobody has looked, a model of all values expects {:.1} % of what has been found",
        100.0 * value.min(1e4)
    );
    finding("unseen", value, above(value, 0.3, f64::INFINITY), sentence)
}

/// With fewer values away from the peaks that were found, one that draws in a tenth of the prior would be missed with a probability of more than 5 %:
/// `0.9ⁿ = 0.05`. In more than two dimensions, where so few do not cover the prior, of the readings of generated problems that were called fine 18 % of
/// those with fewer were beyond three bars, and 5 % of the others; in two dimensions 3 and 1 %.
const AWAY: usize = 29;
const COVERED: usize = 2;

/// So many peaks are seldom all: 29 % of such readings that were called fine were beyond three bars.
const MANY_PEAKS: usize = 3;

/// How large a part of the prior nobody has looked at, and how many values could have shown another peak.
fn explored(belief: &LogBelief) -> Finding {
    let (value, away, peaks) = (belief.empty(), belief.away(), belief.peaks());
    let percent = 100.0 * value;
    // Where the posterior fills the prior, hardly a value lies away from it.
    let few = belief.known.dim() > COVERED && (belief.known.dim() + 1..AWAY).contains(&away);
    let (level, sentence) = if above(value, 0.25, f64::INFINITY) == Level::Look {
        (
            Level::Look,
            format!("a part of the prior with {percent:.1} % of it is without a value: a second peak could hide there"),
        )
    } else if few {
        (
            Level::Look,
            format!(
                "{away} values lie away from what was found: with fewer than {AWAY} another peak may well be missed"
            ),
        )
    } else if peaks >= MANY_PEAKS {
        (Level::Look, format!("{peaks} peaks were found: where there are so many there may be more"))
    } else {
        (Level::Fine, format!("no part of the prior larger than {percent:.1} % is without a value"))
    };
    finding("explored", value, level, sentence)
}

/// Whether something higher than all values is to be expected where nobody has looked.
fn higher(belief: &LogBelief) -> Finding {
    let value = belief.chance();
    let level = above(value, 0.2 * HIDDEN, HIDDEN);
    let advice = match level {
        Level::Fine => "",
        _ => ": another peak may be there; more evaluations, a tighter prior or a start point may help",
    };
    let sentence = format!(
        "at a random place of the prior the likelihood is expected to be higher than all that were seen with a probability of {:.1} %{advice}",
        100.0 * value
    );
    finding("higher", value, level, sentence)
}

/// Whether independent runs agree, and all values together with them.
fn agreed(agreement: &Agreement) -> Finding {
    let Agreement { begun, compared, chi_square, p_value, scatter, .. } = *agreement;
    let level = match compared {
        0 | 1 => Level::Look,
        _ if agreement.disagrees() => Level::DoNotTrust,
        n if n < begun || p_value < DOUBT => Level::Look,
        _ => Level::Fine,
    };
    let missing = match begun - compared {
        0 => String::new(),
        1 => "; one more has not arrived".into(),
        n => format!("; {n} more have not arrived"),
    };
    let apart = format!(
        "{compared} independent runs scatter by {} (χ² {chi_square:.1}), log Z from all values is {:.1} standard deviations from their mean",
        short(scatter),
        agreement.pooled_distance
    );
    let sentence = match level {
        _ if compared < 2 => {
            format!("{compared} of {begun} independent runs have arrived, so there are none to compare")
        }
        Level::DoNotTrust => format!(
            "independent runs disagree: {apart}, with a probability below {} if the error bars were right; that of log Z includes the scatter{missing}",
            if p_value < 1e-6 { 1e-6 } else { 1e-3 }
        ),
        _ if p_value < DOUBT => format!("independent runs are far apart: {apart} (probability {p_value:.3}){missing}"),
        _ => format!("{apart}: they agree (probability {p_value:.2}){missing}"),
    };
    finding("agreement", p_value, level, sentence)
}

/// How far `log Z` has moved since the batch before, in standard deviations that were claimed then.
fn settled(engine: &Engine, current: &Current) -> Option<Finding> {
    let before = engine.history().iter().rev().find(|round| round.belief.values < current.believed.values)?;
    let (log_z, sd) = (before.belief.log_z?, before.belief.log_z_sd?);
    let moved = current.estimate.log_z - log_z;
    let value = moved.abs() / sd.max(NATS);
    let sentence =
        format!("the last batch has moved log Z by {}, {value:.1} times the error bar of that time", short(moved));
    Some(finding("settled", value, above(value, 3.0, 6.0), sentence))
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    (values.map(|v| v * v).sum::<f64>() / n).sqrt()
}

fn leave_one_out(residuals: &[Residual]) -> Finding {
    let value = root_mean_square(residuals.iter().map(|r| r.standardised));
    let largest = residuals.iter().map(|r| r.standardised.abs()).fold(0.0, f64::max);
    let level = above(value, 1.6, f64::INFINITY).max(above(largest, 6.0, f64::INFINITY));
    let sentence = format!(
        "each value is predicted from all the others with an error of {value:.2} predicted standard deviations (root mean square; \
         1 is ideal), {largest:.1} at the worst"
    );
    finding("leave-one-out", value, level, sentence)
}

/// The jackknife's part of the error bar beside the model's.
fn influence(current: &Current) -> Finding {
    let relative = |sd: f64| sd.powi(2).exp_m1();
    let spread = match current.surrogate.log() {
        Some(belief) => belief.jackknife_sd(),
        None => (relative(current.estimate.log_z_sd) - relative(current.model_sd)).max(0.0).sqrt(),
    };
    let value = spread / current.model_sd.max(NATS);
    let sentence = format!(
        "leaving out single values moves log Z by {} taken together (jackknife), {value:.1} times the model's own error bar",
        short(spread)
    );
    finding("influence", value, above(value, 5.0, f64::INFINITY), sentence)
}

/// How far off the forecasts for the newest batch were. A belief about the logarithm also looks where nothing is
/// expected; what is far below the best, and was expected to be, does not count.
fn newest(current: &Current, forecasts: &[Forecast]) -> Option<Finding> {
    let batch = forecasts.last()?.batch;
    let floor = current.surrogate.log().map_or(f64::NEG_INFINITY, |belief| belief.known.floor());
    let errors: Vec<f64> = forecasts
        .iter()
        .filter(|f| f.batch == batch && f.observed.max(f.predicted) >= floor)
        .map(|f| f.standardised)
        .collect();
    let value = root_mean_square(errors.into_iter());
    let sentence = format!(
        "the values of the newest batch were {value:.1} predicted standard deviations away from their predictions (root mean \
         square; 1 is ideal)"
    );
    Some(finding("newest-batch", value, above(value, 3.0, 5.0), sentence))
}

/// `1/Σs²` of the shares `s` of the posterior that are nearest to each node.
fn carriers(belief: &Belief, draws: &Draws) -> Finding {
    let shares = nearest_shares(belief, draws);
    let value = 1.0 / shares.iter().map(|s| s * s).sum::<f64>();
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let level = above(-value, -8.0, -4.0);
    let sentence = format!(
        "the posterior rests on {value:.1} nodes (effective number); {:.0} % of it is nearest to a single one",
        100.0 * largest
    );
    finding("effective-nodes", value, level, sentence)
}

/// How far log Z would move without the mass that the process expects where it has seen nothing, in error bars. One reading of the square root
/// includes that mass; in many parameters it is most of Z, and its own variance hardly shows.
fn readings(current: &Current, surrogate: &Surrogate) -> Option<Finding> {
    let other = surrogate.estimate_as(Model::WsabiL).ok()?;
    let apart = (current.estimate.log_z - other.log_z).abs();
    if apart == 0.0 {
        return None;
    }
    let value = apart / current.estimate.log_z_sd.max(NATS);
    // Where the process is smooth on the scale of the measure its own variance covers this mass to within 0.7 error bars.
    let level = above(value, 1.5, 3.0);
    let advice = if level == Level::Fine { "" } else { "; surrogate = \"wsabi-l\" leaves it out" };
    let sentence = format!(
        "mass that is expected where nothing has been seen makes up {} nats of log Z, {value:.1} error bars{advice}",
        short(apart)
    );
    Some(finding("readings", value, level, sentence))
}

/// How much of the prior variance of the process is left where the posterior is.
fn guesswork(belief: &Surrogate, draws: &Draws) -> Result<Finding> {
    let chosen = draws.resample(FEW)?;
    let value = belief.variance_left(&draws.own().select(&chosen))?;
    let sentence = format!("where the posterior is, {:.1} % of the model's prior variance is left", 100.0 * value);
    Ok(finding("guesswork", value, above(value, 0.2, 0.99), sentence))
}

/// The posterior mass beyond three prior standard deviations in the coordinate in which it is largest, and the nodes
/// out there.
fn edge(nodes: &Points, draws: &Draws) -> Finding {
    const FAR: f64 = 3.0;
    let beyond = |k: usize| -> f64 {
        let far = draws.latent().rows().zip(draws.log_weights()).filter(|(u, _)| u[k].abs() > FAR);
        far.map(|(_, log_weight)| log_weight.exp()).sum()
    };
    let value = (0..draws.latent().dim()).map(beyond).fold(0.0, f64::max);
    let nodes = nodes.rows().filter(|u| u.iter().any(|v| v.abs() > FAR)).count();
    let level = above(value, 0.2, f64::INFINITY);
    let advice = if level == Level::Fine { "" } else { ": the data and the prior disagree" };
    let sentence = format!(
        "{:.1} % of the posterior and {nodes} nodes lie more than {FAR} standard deviations out in the prior{advice}",
        100.0 * value
    );
    finding("edge-of-prior", value, level, sentence)
}

fn lengthscales(current: &Current) -> Finding {
    let all = current.surrogate.lengthscales();
    let value = all.iter().copied().fold(f64::INFINITY, f64::min);
    let at_bound = current.believed.repairs.lengthscale_at_bound;
    // Below a twentieth of its width no affordable number of nodes covers the measure.
    let level = if at_bound || value < 0.05 { Level::Look } else { Level::Fine };
    let bound = if at_bound { ", and a lengthscale ended at the bound of its search" } else { "" };
    let sentence = format!(
        "the integrand varies over {value:.2} standard deviations of what it is integrated against (shortest lengthscale){bound}"
    );
    finding("lengthscale", value, level, sentence)
}

fn repairs(current: &Current) -> Finding {
    let r = &current.believed.repairs;
    let mut words = Vec::new();
    let mut level = Level::Fine;
    let mut note = |count: usize, worst: Level, text: String| {
        if count > 0 {
            words.push(text);
            level = level.max(worst);
        }
    };
    let n = r.contradictory_nodes;
    note(
        n,
        Level::DoNotTrust,
        format!("values at {n} nodes contradict each other: noise or a jump, which the error bar does not include"),
    );
    let n = r.jitter_rungs;
    note(n, Level::Look, format!("the jitter of the kernel matrix was raised {n} times"));
    note(
        usize::from(r.clamped_variance),
        Level::Look,
        "the variance of Z came out below its own rounding error".into(),
    );
    let left = format!("{} values are left out: a belief rests on at most {MOST_NODES}", r.values_left_out);
    note(r.values_left_out, Level::Look, left);
    note(r.merged_values, Level::Fine, format!("{} values were joined to nodes at the same place", r.merged_values));
    let value = (r.contradictory_nodes + r.jitter_rungs + usize::from(r.clamped_variance) + r.merged_values) as f64;
    let sentence = if words.is_empty() { "no numerical repair was needed".into() } else { words.join("; ") };
    finding("repairs", value, level, sentence)
}

fn condition(belief: &Belief) -> Finding {
    let value = belief.condition_number();
    let sentence = format!("the condition number of the kernel matrix is at least {value:.0e}");
    // At 10¹³ weights have three digits left.
    finding("condition", value, above(value, 1e13, f64::INFINITY), sentence)
}

fn failures(mass: f64) -> Finding {
    let sentence = format!("{:.1} % of the prior is nearest to points whose evaluation failed", 100.0 * mass);
    finding("failures", mass, above(mass, 0.05, 0.25), sentence)
}

/// The share of the posterior that is nearest to each node, distances being in lengthscales.
fn nearest_shares(belief: &Belief, draws: &Draws) -> Vec<f64> {
    let (nodes, lengthscales) = (belief.nodes(), belief.lengthscales());
    let mut shares = vec![0.0; nodes.len()];
    for (x, log_weight) in draws.own().rows().zip(draws.log_weights()) {
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

/// A number to three digits, as a power of ten only where it is very small or very large.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            format!("{value:.*}", (2.0 - size.log10().floor()).clamp(0.0, 5.0) as usize)
        }
        _ => format!("{value:.2e}"),
    }
}
