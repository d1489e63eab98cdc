//! Whether to believe the number.

use batchquad::run::{Diagnosis, Level};
use batchquad_plot::{Axis, Chart, Errors, Figure, Line, Points, Rule, compact};
use serde::Serialize;

use super::{Drawn, words::count};

/// More forecasts than this are drawn without error bars: they would hide each other.
const BARS: usize = 300;
/// Log-likelihoods this far below the best do not contribute to the evidence, and would squeeze those that do.
const DEEP: f64 = 25.0;

/// What the page says about the diagnostics.
#[derive(Debug, Serialize)]
pub struct Diagnostics {
    findings: Vec<Found>,
    calibration: Drawn,
    forecasts: Option<Drawn>,
}

#[derive(Debug, Serialize)]
struct Found {
    level: &'static str,
    word: &'static str,
    name: String,
    sentence: String,
}

/// The class of a level in the style sheet.
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Fine => "fine",
        Level::Look => "look",
        Level::DoNotTrust => "doubt",
    }
}

/// The sentences behind a verdict that is not good.
pub fn reasons(diagnosis: &Diagnosis) -> Vec<String> {
    let bad = diagnosis.findings.iter().filter(|f| f.level == diagnosis.verdict && f.level > Level::Fine);
    bad.map(|f| sentence(&f.sentence)).collect()
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

pub fn section(diagnosis: &Diagnosis) -> Diagnostics {
    let found = |f: &batchquad::run::Finding| Found {
        level: level(f.level),
        word: f.level.as_str(),
        name: f.name.replace('-', " "),
        sentence: sentence(&f.sentence),
    };
    Diagnostics {
        findings: diagnosis.findings.iter().map(found).collect(),
        calibration: calibration(diagnosis),
        forecasts: forecasts(diagnosis),
    }
}

/// Leave-one-out residuals against normal quantiles.
fn calibration(diagnosis: &Diagnosis) -> Drawn {
    let points = diagnosis.calibration();
    let reach = points.iter().flat_map(|(a, b)| [a.abs(), b.abs()]).filter(|v| v.is_finite()).fold(2.5, f64::max);
    // A single wild value must not squeeze all others into a dot.
    let reach = 1.08 * reach.min(8.0);
    let quantiles = Chart::new(
        Axis::linear("expected if the model were right").range(-3.8_f64.min(reach), 3.8),
        Axis::linear("found").unit("predicted sd").range(-reach, reach),
    )
    .title("Calibration")
    .with(Line::new([(-9.0, -9.0), (9.0, 9.0)]).style(6).width(1.2).named("as it should be"))
    .with(Points::new(points).radius(2.4).named("leave-one-out residuals"));
    let batches = diagnosis.forecasts.iter().map(|f| (f.batch as f64, f.standardised));
    let tips = diagnosis
        .forecasts
        .iter()
        .map(|f| format!("evaluation {} of batch {}\n{} predicted sd off", f.id, f.batch, compact(f.standardised, 3)));
    let far = diagnosis
        .forecasts
        .iter()
        .map(|f| f.standardised.abs())
        .filter(|v| v.is_finite())
        .fold(3.0, f64::max)
        .min(12.0);
    let errors =
        Chart::new(Axis::counts("batch"), Axis::linear("error").unit("predicted sd").range(-1.08 * far, 1.08 * far))
            .title("Forecasts, batch by batch")
            .with(Rule::horizontal(2.0).named("± 2 sd"))
            .with(Rule::horizontal(-2.0))
            .with(
                Points::new(batches)
                    .tips(tips)
                    .radius(2.4)
                    .style(2)
                    .marker(batchquad_plot::Marker::Disc)
                    .named("before they were told"),
            );
    let label = format!(
        "Calibration of {}",
        count(diagnosis.residuals.len(), "leave-one-out residual", "leave-one-out residuals")
    );
    let caption = "Left: how far each value is from what all others predict, sorted, against what a right model would give; points on the line \
                   are ideal, an S that is steeper means error bars that are too small. Right: how far each new value was from what was \
                   predicted before it was told.";
    let figure = Figure::wrapped(label, 2, [quantiles, errors]).width(920.0).panel_height(240.0);
    Drawn::new("calibration", &figure, caption)
}

/// Predicted against observed, before each batch was told.
fn forecasts(diagnosis: &Diagnosis) -> Option<Drawn> {
    let all = &diagnosis.forecasts;
    let top =
        all.iter().map(|f| f.observed.max(f.predicted)).filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let shown: Vec<_> = all.iter().filter(|f| f.observed > top - DEEP).collect();
    if shown.is_empty() {
        return None;
    }
    let bottom = shown.iter().map(|f| f.observed).fold(f64::INFINITY, f64::min);
    let room = 0.06 * (top - bottom).max(1e-3);
    let (low, high) = (bottom - room, top + 2.0 * room);
    let chart = Chart::new(
        Axis::linear("observed log-likelihood").range(low, high),
        Axis::linear("predicted").range(low, high),
    )
    .with(Line::new([(low, low), (high, high)]).style(6).width(1.2).named("as it should be"));
    let tips = || {
        shown.iter().map(|f| {
            let (low, high) = (compact(f.low, 4), compact(f.high, 4));
            format!(
                "evaluation {}\nobserved {}\npredicted {} ({low} to {high})",
                f.id,
                compact(f.observed, 5),
                compact(f.predicted, 5)
            )
        })
    };
    let chart = if shown.len() <= BARS {
        let bars = shown.iter().map(|f| (f.observed, f.low, f.predicted, f.high));
        chart.with(Errors::new(bars).tips(tips()).opacity(0.55).named("predicted ± 2 sd"))
    } else {
        chart.with(Points::new(shown.iter().map(|f| (f.observed, f.predicted))).radius(2.0).named("predicted"))
    };
    let deep = all.len() - shown.len();
    let mut caption = "Log-likelihoods as predicted before each batch was told, against what came back.".to_owned();
    if deep > 0 {
        caption.push_str(&format!(
            " {} more than {DEEP} below the best not shown.",
            count(deep, "value is", "values are")
        ));
    }
    if diagnosis.forecast_stride > 1 {
        caption.push_str(&format!(" One batch in {} was predicted anew.", diagnosis.forecast_stride));
    }
    let figure = Figure::new("Predicted against observed log-likelihoods", chart).width(560.0).panel_height(330.0);
    Some(Drawn::new("forecasts", &figure, caption))
}
