//! Mean errors against batches by both accounts.

use batchquad_plot::{Axis, Band, Chart, Dash, Figure, Line};

use super::{BATCHES, BURN_IN, Estimator, Point, Row};
use crate::mcmc::Sampler;

/// By the paper's account: burn-in is free and a draw is a batch.
pub(super) fn paper(rows: &[Row]) -> Figure {
    let shown = |r: &&Row| r.burn_in.is_none_or(|b| b == BURN_IN[0]) && drawn(r);
    figure(rows.iter().filter(shown), "batches after burn-in", |p| p.batches)
}

/// When every evaluation counts.
pub(super) fn counted(rows: &[Row]) -> Figure {
    figure(rows.iter().filter(drawn), "batches, every evaluation counted", |p| p.batches_in_all)
}

/// The harmonic mean, and the better bridge; the short burn-in of the former would add nothing.
fn drawn(row: &&Row) -> bool {
    match row.estimator {
        None | Some(Estimator::BridgeFromBurnIn) => true,
        Some(Estimator::HarmonicMean) => row.burn_in == Some(BURN_IN[0]),
        Some(_) => false,
    }
}

/// A panel for each batch size; colours are methods, dashes estimators.
fn figure<'a>(rows: impl Iterator<Item = &'a Row> + Clone, x: &str, at: fn(&Point) -> f64) -> Figure {
    let panel = |n: usize| {
        let title = if n == 1 { "single points, one chain".into() } else { format!("batches of {n}, {n} chains") };
        let chart = Chart::new(Axis::logarithmic(x), Axis::logarithmic("|log Ẑ − log Z|").unit("nats")).title(title);
        let here = || rows.clone().filter(move |r| r.batch == n);
        let chart = chart.with_all(here().map(|r| {
            let quartiles = |p: &Point| (at(p), p.log_error.p25.unwrap_or(f64::NAN), p.log_error.p75.unwrap_or(f64::NAN));
            Band::new(r.curve.iter().map(quartiles)).colour(style(r).0).opacity(0.1)
        }));
        chart.with_all(here().map(|r| {
            let (colour, dash) = style(r);
            let mean = r.curve.iter().map(|p| (at(p), p.log_error.mean.unwrap_or(f64::NAN)));
            Line::new(mean).colour(colour).dash(dash).width(1.8).named(r.name())
        }))
    };
    let label = format!("Mean error of log Z with quartiles against {x}, by method and batch size");
    Figure::wrapped(label, 2, BATCHES.map(panel)).width(1000.0).panel_height(280.0).one_legend().shared_axes()
}

fn style(row: &Row) -> (usize, Dash) {
    let dash = match (row.estimator, row.burn_in) {
        (None, _) => Dash::Solid,
        (Some(Estimator::HarmonicMean), _) => Dash::Dotted,
        (_, Some(b)) if b == BURN_IN[0] => Dash::Dashed,
        _ => Dash::DashDot,
    };
    let colour = if row.method == Sampler::MetropolisHastings.name() {
        2
    } else if row.method == Sampler::Nuts.name() {
        3
    } else {
        usize::from(row.method != "kriging-believer")
    };
    (colour, dash)
}
