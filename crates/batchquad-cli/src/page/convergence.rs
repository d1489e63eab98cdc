//! How log Z settled.

use batchquad::Engine;
use batchquad_plot::{Axis, Band, Chart, Figure, Line, Rule};

use super::{
    Drawn, NARROW,
    words::{count, plus_minus},
};

/// What was believed after so many batches.
pub struct Step {
    pub values: usize,
    pub batches: usize,
    pub log_z: f64,
    pub log_z_sd: f64,
}

/// The beliefs behind each batch of every independent run that has any.
pub fn steps(engine: &Engine) -> Vec<Vec<Step>> {
    let runs = engine.repeats().len().max(1);
    (0..runs).map(|k| steps_of(engine.repeat(k))).filter(|steps| !steps.is_empty()).collect()
}

/// log Z from the values of several independent runs together, and its standard deviation; none where there is one run.
pub fn pooled(engine: &Engine) -> Option<(f64, f64)> {
    let several = !engine.repeats().is_empty();
    let belief = several.then(|| engine.current().ok())?.map(|current| &current.believed)?;
    Some((belief.log_z?, belief.log_z_sd?))
}

/// The beliefs behind each batch of one run, and the last one.
fn steps_of(engine: &Engine) -> Vec<Step> {
    let current = engine.current().ok().map(|c| (engine.ledger().batches().len(), &c.believed));
    let history = engine.history().iter().map(|round| (round.batches, &round.belief));
    let mut steps: Vec<Step> = Vec::new();
    for (batches, belief) in history.chain(current) {
        let (Some(log_z), Some(log_z_sd)) = (belief.log_z, belief.log_z_sd) else { continue };
        // A batch asked on the same values says nothing new.
        if steps.last().is_none_or(|last| last.values < belief.values) {
            steps.push(Step { values: belief.values, batches, log_z, log_z_sd });
        }
    }
    steps
}

/// log Z with its band against evaluations and against batches, and its standard deviation, of each run.
pub fn figure(
    runs: &[Vec<Step>],
    pooled: Option<(f64, f64)>,
    known: Option<f64>,
    target: Option<f64>,
    failures: bool,
) -> Option<Drawn> {
    // What failed has no value, and the belief counts values.
    let counted = if failures { "evaluations with a value" } else { "evaluations" };
    let last = runs.last()?.last()?;
    let (low, high) = range(runs, known);
    let alone = runs.len() == 1;
    let estimate = |x_axis: Axis, x: fn(&Step) -> usize| {
        let mut chart = Chart::new(x_axis, Axis::linear("log Z").range(low, high));
        for (k, steps) in runs.iter().enumerate() {
            let band = |width: f64| {
                let ends = move |s: &Step| (x(s) as f64, s.log_z - width * s.log_z_sd, s.log_z + width * s.log_z_sd);
                Band::new(steps.iter().map(ends))
            };
            let line = Line::new(steps.iter().map(|s| (x(s) as f64, s.log_z)));
            let line = if steps.len() <= 40 { line.marked() } else { line };
            chart = if alone {
                chart
                    .with(band(2.0).named("± 2 sd").opacity(0.14))
                    .with(band(1.0).named("± 1 sd").opacity(0.24))
                    .with(line.named("log Z"))
            } else {
                let name = format!("repeat {} ± 2 sd", k + 1);
                chart.with(band(2.0).colour(k).opacity(0.12)).with(line.style(k).named(name))
            };
        }
        if let Some((log_z, _)) = pooled {
            chart = chart.with(Rule::horizontal(log_z).style(6).named("all values"));
        }
        match known {
            Some(known) => chart.with(Rule::horizontal(known).style(1).named("known answer")),
            None => chart,
        }
    };
    let mut sd = Chart::new(Axis::counts(counted), Axis::logarithmic("sd of log Z"));
    for (k, steps) in runs.iter().enumerate() {
        let line = Line::new(steps.iter().map(|s| (s.values as f64, s.log_z_sd)));
        sd = sd.with(if alone {
            line.colour(2).marked().width(1.6).named("sd")
        } else {
            line.style(k).marked().width(1.6)
        });
    }
    let sd = match target {
        Some(target) => sd.with(Rule::horizontal(target).style(4).named("target_sd")),
        None => sd,
    };
    let by_values = estimate(Axis::counts(counted), |s| s.values);
    let by_batches = estimate(Axis::counts("batches"), |s| s.batches);
    let (log_z, log_z_sd) = pooled.unwrap_or((last.log_z, last.log_z_sd));
    let label = format!("log Z against evaluations and against batches; it ends at {}", plus_minus(log_z, log_z_sd));
    let charts = [by_values, by_batches, sd];
    let narrow = Figure::column(label.clone(), charts.clone()).width(NARROW).panel_height(180.0).one_legend();
    let rows = vec![charts.map(Some).to_vec()];
    let figure = Figure::grid(label, rows).width(920.0).panel_height(220.0).one_legend();
    let cut = runs.iter().flatten().any(|s| s.log_z < low || s.log_z > high);
    let repeats = if alone { String::new() } else { format!(" of {} repeats", runs.len()) };
    let caption = format!(
        "What was believed after each of {}{repeats}{}.",
        count(runs.iter().map(Vec::len).sum(), "round", "rounds"),
        if cut { "; early rounds outside the frame are cut off" } else { "" }
    );
    Some(Drawn::new("convergence", &figure, caption).with_narrow("convergence", &narrow))
}

/// A vertical range in which the later rounds can be read: the first beliefs may be off by orders of magnitude.
fn range(runs: &[Vec<Step>], known: Option<f64>) -> (f64, f64) {
    let later = runs.iter().flat_map(|steps| &steps[steps.len() / 4..]);
    let ends = later.flat_map(|s| [s.log_z - 2.0 * s.log_z_sd, s.log_z + 2.0 * s.log_z_sd]);
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let lasts: Vec<&Step> = runs.iter().filter_map(|steps| steps.last()).collect();
    let last = lasts.last().map_or(0.0, |s| s.log_z);
    // One wild round must not flatten the others.
    let most = 40.0 * lasts.last().map_or(1.0, |s| s.log_z_sd).max(1e-3 * last.abs().max(1e-6));
    let lowest = lasts.iter().map(|s| s.log_z).fold(last, f64::min);
    let highest = lasts.iter().map(|s| s.log_z).fold(last, f64::max);
    let (low, high) = (low.max(lowest - most), high.min(highest + most));
    let near = known.filter(|k| (k - last).abs() < 2.0 * most);
    let (low, high) = near.map_or((low, high), |k| (low.min(k), high.max(k)));
    let room = 0.06 * (high - low).max(1e-9 * last.abs().max(1e-9));
    (low - room, high + room)
}
