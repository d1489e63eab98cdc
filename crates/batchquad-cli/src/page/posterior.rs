//! Figures of the posterior.

use std::collections::BTreeMap;

use anyhow::Result;
use batchquad::{
    Engine,
    evaluate::clean,
    infer::{Curve, Marginal, Method, Posterior, Surface},
    prior::Parameters,
    run::report::labels,
};
use batchquad_plot::{Axis, Band, Chart, Density, Figure, Line, Marker, Points, Rule};
use serde::Serialize;

use super::{
    Drawn, NARROW,
    words::{count, label, noisy, rounded},
};

/// Points of a marginal's curve.
const CURVE: usize = 161;
/// Points per side of a joint density's surface.
const SURFACE: usize = 61;
/// More parameters than this make panels too small to read.
const CORNER: usize = 6;
/// Up to this many nodes over all panels show their values on hovering; more would make the page heavy.
const HOVER: usize = 1500;
/// The probability of the intervals shown.
const MASS: f64 = 0.95;

/// What the page says about the posterior.
#[derive(Debug, Serialize)]
pub struct Section {
    parameters: Vec<Parameter>,
    marginals: Drawn,
    corner: Option<Drawn>,
    method: &'static str,
}

/// A line of the table of parameters.
#[derive(Debug, Serialize)]
struct Parameter {
    name: String,
    prior: String,
    mean: String,
    sd: String,
    median: String,
    interval: String,
}

/// A parameter with its curve and highest-density intervals.
struct Shown {
    name: String,
    marginal: Marginal,
    curve: Curve,
    highest: Vec<(f64, f64)>,
}

/// The posterior under the current belief.
pub fn section(engine: &Engine) -> Result<Section> {
    let posterior = engine.posterior()?;
    let labels = labels(engine.ledger());
    let shown = |marginal: Marginal| -> Result<Shown> {
        Ok(Shown {
            name: label(&labels, marginal.name()),
            curve: marginal.curve(CURVE)?,
            highest: marginal.highest_density(MASS)?,
            marginal,
        })
    };
    let shown = posterior.marginals()?.into_iter().map(shown).collect::<Result<Vec<_>>>()?;
    let priors = priors(engine)?;
    let parameters = shown.iter().zip(priors).map(|(s, prior)| parameter(s, prior)).collect::<Result<_>>()?;
    let by_draws = posterior.method() == Method::Draws || shown.iter().any(|s| s.marginal.method() == Method::Draws);
    Ok(Section {
        parameters,
        marginals: marginals(&shown),
        corner: corner(engine, posterior, &shown)?,
        method: if by_draws {
            "By importance draws from the surrogate, smoothed: this surrogate or prior has no closed form."
        } else {
            "In closed form from the surrogate; no further evaluations, no sampling."
        },
    })
}

/// The prior of each parameter in words.
fn priors(engine: &Engine) -> Result<Vec<String>> {
    let parameters = Parameters::from_problem(engine.ledger().header().problem())?;
    let described = parameters.describe();
    let each = |(names, prior): &(String, String), n: usize| {
        vec![if n > 1 { format!("{prior} of {names}") } else { prior.clone() }; n]
    };
    let sizes = parameters.iter().map(|parameter| parameter.names().len());
    Ok(described.iter().zip(sizes).flat_map(|(line, n)| each(line, n)).map(|text| clean(&text)).collect())
}

fn parameter(shown: &Shown, prior: String) -> Result<Parameter> {
    let Shown { name, marginal, highest, .. } = shown;
    let (mean, sd) = (marginal.mean(), marginal.sd());
    let (low, high) = marginal.interval(MASS)?;
    // Heavy tails may leave no sd: then the interval says how many digits matter.
    let scale = if sd.is_finite() { sd } else { (high - low) / 4.0 };
    let number = |v: f64| if v.is_finite() { rounded(v, scale / 10.0) } else { "–".into() };
    let pieces: Vec<String> = highest.iter().map(|(a, b)| format!("{} to {}", number(*a), number(*b))).collect();
    Ok(Parameter {
        name: name.clone(),
        prior,
        mean: number(mean),
        sd: if sd.is_finite() { rounded(sd, sd) } else { "–".into() },
        median: number(marginal.quantile(0.5)?),
        interval: pieces.join(" or "),
    })
}

/// Density, prior and highest-density interval of a parameter.
fn marginal(shown: &Shown, axis: Axis) -> Chart {
    let Shown { curve, highest, .. } = shown;
    let inside = |t: f64| highest.iter().any(|(a, b)| t >= *a && t <= *b);
    let points = || curve.theta.iter().copied().zip(curve.density.iter().copied());
    let shaded = Band::new(points().map(|(t, d)| if inside(t) { (t, 0.0, d) } else { (t, f64::NAN, d) }));
    let top = curve.density.iter().chain(&curve.prior).copied().filter(|d| d.is_finite()).fold(0.0, f64::max);
    let y = Axis::linear("density").range(0.0, if top > 0.0 { 1.06 * top } else { 1.0 }).bare();
    let prior = curve.theta.iter().copied().zip(curve.prior.iter().copied());
    Chart::new(axis, y)
        .with(Line::new(prior).style(6).dash(batchquad_plot::Dash::Short).width(1.5).named("prior"))
        .with(shaded.named("95 % highest density"))
        .with(Line::new(points()).named("posterior"))
}

fn axis(shown: &Shown) -> Axis {
    let theta = &shown.curve.theta;
    let axis = Axis::linear(&shown.name);
    match (theta.first(), theta.last()) {
        (Some(first), Some(last)) => axis.range(*first, *last),
        _ => axis,
    }
}

fn marginals(shown: &[Shown]) -> Drawn {
    let charts = shown.iter().map(|s| {
        let chart = marginal(s, axis(s));
        let mean = s.marginal.mean();
        if mean.is_finite() { chart.with(Rule::vertical(mean).colour(1).named("mean")) } else { chart }
    });
    let columns = match shown.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let label = format!("Marginal posterior densities of {}", count(shown.len(), "parameter", "parameters"));
    let charts: Vec<Chart> = charts.collect();
    let narrow = Figure::column(label.clone(), charts.clone()).width(NARROW).panel_height(130.0).one_legend();
    let figure = Figure::wrapped(label, columns, charts).width(if columns == 1 { 560.0 } else { 920.0 });
    let caption =
        "Posterior density of each parameter with its 95 % highest-density interval, its mean, and the prior behind.";
    Drawn::new("marginals", &figure.panel_height(150.0).one_legend(), caption).with_narrow("marginals", &narrow)
}

/// The joint densities of pairs with the nodes on them; none for a single parameter.
fn corner(engine: &Engine, posterior: &Posterior, shown: &[Shown]) -> Result<Option<Drawn>> {
    if shown.len() < 2 {
        return Ok(None);
    }
    let chosen = most_learned(engine, shown);
    let pairs: Vec<(usize, usize)> = (0..chosen.len()).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    let mut surfaces = surfaces(posterior, &chosen, &pairs)?;
    let nodes = Nodes::of(engine, posterior);
    let hover = nodes.values.len() * surfaces.len() <= HOVER;
    let figure = Figure::corner(
        format!("Corner plot of {} with the nodes", count(chosen.len(), "parameter", "parameters")),
        chosen.len(),
        |i| marginal(&shown[chosen[i]], axis(&shown[chosen[i]])),
        |i, j| {
            let (x, y) = (&shown[chosen[j]], &shown[chosen[i]]);
            let chart = Chart::new(axis(x), axis(y));
            let chart = match surfaces.remove(&(i, j)) {
                Some(s) => chart.with(
                    Density::new(s.first, s.second, s.density)
                        .shares(&[0.3935, 0.8647, 0.989])
                        .named("39, 86 and 99 % of the posterior"),
                ),
                None => chart,
            };
            nodes.on(chart, (chosen[j], &x.curve), (chosen[i], &y.curve), hover)
        },
    );
    let left_out = if chosen.len() < shown.len() {
        format!(" Of {} parameters, the {} about which most was learned.", shown.len(), chosen.len())
    } else {
        String::new()
    };
    let caption = format!(
        "Joint posterior of every pair of parameters with the nodes on it: shaded are the smallest regions that hold 39, 86 and 99 %.{left_out}"
    );
    let width = match chosen.len() {
        2 => 620.0,
        3 => 760.0,
        _ => 920.0,
    };
    Ok(Some(Drawn::new("corner", &figure.width(width).one_legend(), caption)))
}

/// The joint densities of pairs of the chosen parameters, on as many threads as there are cores: with 2 000 nodes, a pair takes a third of a second.
fn surfaces(
    posterior: &Posterior,
    chosen: &[usize],
    pairs: &[(usize, usize)],
) -> Result<BTreeMap<(usize, usize), Surface>> {
    let some = |pairs: &[(usize, usize)]| -> batchquad::Result<Vec<((usize, usize), Surface)>> {
        pairs.iter().map(|&(i, j)| Ok(((i, j), posterior.joint(chosen[j], chosen[i])?.surface(SURFACE)?))).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let parts = std::thread::scope(|scope| {
        let parts = pairs.chunks(pairs.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || some(part))).collect();
        running.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut all = BTreeMap::new();
    for part in parts {
        all.extend(part.map_err(|_| anyhow::anyhow!("a thread that drew a density has broken down"))??);
    }
    Ok(all)
}

/// The numbers of the parameters to show: all, or those whose intervals are smallest relative to the prior's.
fn most_learned(engine: &Engine, shown: &[Shown]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shown.len()).collect();
    if shown.len() <= CORNER {
        return order;
    }
    let at = |u: f64| engine.prior().to_theta(&vec![u; shown.len()]).ok();
    let (low, high) = (at(-2.0), at(2.0));
    let share = |k: usize| match (&low, &high) {
        (Some(low), Some(high)) => {
            let own: f64 = shown[k].highest.iter().map(|(a, b)| b - a).sum();
            own / (high[k] - low[k]).abs()
        }
        _ => 1.0,
    };
    order.sort_by(|&a, &b| share(a).total_cmp(&share(b)));
    order.truncate(CORNER);
    order.sort_unstable();
    order
}

/// Where the likelihood was evaluated.
struct Nodes {
    values: Vec<(Vec<f64>, String)>,
    failed: Vec<(Vec<f64>, String)>,
}

impl Nodes {
    fn of(engine: &Engine, posterior: &Posterior) -> Self {
        let ledger = engine.ledger();
        // Periodic parameters are taken round to where the posterior is shown.
        let shown = |theta: &Vec<f64>| posterior.prior().wrapped(theta).unwrap_or_else(|_| theta.clone());
        let mut nodes = Self { values: Vec::new(), failed: Vec::new() };
        for row in ledger.imported() {
            let tip = format!("imported\n{}", noisy(row.log_likelihood.get(), row.sd));
            nodes.values.push((shown(&row.theta), tip));
        }
        for entry in ledger.entries().filter(|entry| !entry.is_pending()) {
            let (list, words) = match entry.value() {
                Some(value) => (&mut nodes.values, noisy(value, entry.answer.as_ref().and_then(|told| told.sd))),
                None => (&mut nodes.failed, "failed".into()),
            };
            list.push((shown(&entry.job.theta), format!("evaluation {}\n{words}", entry.job.id)));
        }
        nodes
    }

    /// Draws those that lie inside the frame of two curves.
    fn on(&self, chart: Chart, (j, x): (usize, &Curve), (i, y): (usize, &Curve), hover: bool) -> Chart {
        let within = |v: f64, curve: &Curve| {
            curve.theta.first().is_some_and(|a| v >= *a) && curve.theta.last().is_some_and(|b| v <= *b)
        };
        let layer = |list: &[(Vec<f64>, String)]| {
            let inside: Vec<&(Vec<f64>, String)> =
                list.iter().filter(|(theta, _)| within(theta[j], x) && within(theta[i], y)).collect();
            let points = Points::new(inside.iter().map(|(theta, _)| (theta[j], theta[i])));
            if hover { points.tips(inside.iter().map(|(_, tip)| tip.clone())) } else { points.cloud() }
        };
        let (radius, opacity) = if self.values.len() > 400 { (1.2, 0.5) } else { (2.2, 1.0) };
        let chart = chart
            .with(layer(&self.values).colour(4).marker(Marker::Disc).radius(radius).opacity(opacity).named("nodes"));
        if self.failed.is_empty() {
            return chart;
        }
        chart.with(layer(&self.failed).colour(1).marker(Marker::Cross).radius(2.5).named("failed"))
    }
}
