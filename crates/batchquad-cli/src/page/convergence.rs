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

/// The beliefs behind each batch, and the last one.
pub fn steps(engine: &Engine) -> Vec<Step> {
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

/// log Z with its band against evaluations and against batches, and its standard deviation.
pub fn figure(steps: &[Step], known: Option<f64>, target: Option<f64>, failures: bool) -> Option<Drawn> {
    // What failed has no value, and the belief counts values.
    let counted = if failures { "evaluations with a value" } else { "evaluations" };
    let last = steps.last()?;
    let (low, high) = range(steps, known);
    let estimate = |x_axis: Axis, x: fn(&Step) -> usize| {
        let band = |width: f64| {
            Band::new(
                steps.iter().map(move |s| (x(s) as f64, s.log_z - width * s.log_z_sd, s.log_z + width * s.log_z_sd)),
            )
        };
        let line = Line::new(steps.iter().map(|s| (x(s) as f64, s.log_z))).named("log Z");
        let line = if steps.len() <= 40 { line.marked() } else { line };
        let chart = Chart::new(x_axis, Axis::linear("log Z").range(low, high))
            .with(band(2.0).named("± 2 sd").opacity(0.14))
            .with(band(1.0).named("± 1 sd").opacity(0.24))
            .with(line);
        match known {
            Some(known) => chart.with(Rule::horizontal(known).style(1).named("known answer")),
            None => chart,
        }
    };
    let sd = Chart::new(Axis::counts(counted), Axis::logarithmic("sd of log Z"))
        .with(Line::new(steps.iter().map(|s| (s.values as f64, s.log_z_sd))).named("sd").colour(2).marked().width(1.6));
    let sd = match target {
        Some(target) => sd.with(Rule::horizontal(target).style(4).named("target_sd")),
        None => sd,
    };
    let by_values = estimate(Axis::counts(counted), |s| s.values);
    let by_batches = estimate(Axis::counts("batches"), |s| s.batches);
    let label =
        format!("log Z against evaluations and against batches; it ends at {}", plus_minus(last.log_z, last.log_z_sd));
    let charts = [by_values, by_batches, sd];
    let narrow = Figure::column(label.clone(), charts.clone()).width(NARROW).panel_height(180.0).one_legend();
    let rows = vec![charts.map(Some).to_vec()];
    let figure = Figure::grid(label, rows).width(920.0).panel_height(220.0).one_legend();
    let cut = steps.iter().any(|s| s.log_z < low || s.log_z > high);
    let caption = format!(
        "What was believed after each of {}{}.",
        count(steps.len(), "round", "rounds"),
        if cut { "; early rounds outside the frame are cut off" } else { "" }
    );
    Some(Drawn::new("convergence", &figure, caption).with_narrow("convergence", &narrow))
}

/// A vertical range in which the later rounds can be read: the first beliefs may be off by orders of magnitude.
fn range(steps: &[Step], known: Option<f64>) -> (f64, f64) {
    let from = steps.len() / 4;
    let ends = steps[from..].iter().flat_map(|s| [s.log_z - 2.0 * s.log_z_sd, s.log_z + 2.0 * s.log_z_sd]);
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let last = steps.last().map_or(0.0, |s| s.log_z);
    // One wild round must not flatten the others.
    let most = 40.0 * steps.last().map_or(1.0, |s| s.log_z_sd).max(1e-3 * last.abs().max(1e-6));
    let (low, high) = (low.max(last - most), high.min(last + most));
    let near = known.filter(|k| (k - last).abs() < 2.0 * most);
    let (low, high) = near.map_or((low, high), |k| (low.min(k), high.max(k)));
    let room = 0.06 * (high - low).max(1e-9 * last.abs().max(1e-9));
    (low - room, high + room)
}
