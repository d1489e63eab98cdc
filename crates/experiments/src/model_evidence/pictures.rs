//! Mean errors against batches by both accounts.

use batchquad_plot::{Axis, Band, Chart, Dash, Figure, Line};

use super::{BATCHES, BURN_IN, Estimator, Point, RULE_NAMES, Row};
use crate::mcmc::Sampler;

/// The errors that are shown; the first few points of Bayesian quadrature are further off, and so would every curve be squeezed.
const SHOWN: (f64, f64) = (5e-4, 20.0);

/// By the paper's account: burn-in is free and a draw is a batch.
pub(super) fn paper(rows: &[Row]) -> Figure {
    let shown = |r: &&Row| r.estimator.is_none_or(|e| e != Estimator::Reciprocal) && r.burn_in.is_none_or(is_usual);
    figure(rows.iter().filter(shown), "batches after burn-in", |p| p.batches)
}

/// When every evaluation counts: the estimator that is best there, and the harmonic mean, which no other burn-in would help.
pub(super) fn counted(rows: &[Row]) -> Figure {
    let shown = |r: &&Row| match r.estimator {
        None | Some(Estimator::BridgeFromBurnIn) => true,
        Some(Estimator::HarmonicMean) => r.burn_in.is_none_or(is_usual),
        Some(_) => false,
    };
    figure(rows.iter().filter(shown), "batches, every evaluation counted", |p| p.batches_in_all)
}

/// Whether it is the paper's burn-in.
fn is_usual(burn_in: usize) -> bool {
    burn_in == BURN_IN[0]
}

/// A panel for each batch size; colours are methods, dashes estimators.
fn figure<'a>(rows: impl Iterator<Item = &'a Row> + Clone, x: &str, at: fn(&Point) -> f64) -> Figure {
    let panel = |n: usize| {
        let title = if n == 1 { "single points, one chain".into() } else { format!("batches of {n}, {n} chains") };
        let chart = Chart::new(
            Axis::logarithmic(x),
            Axis::logarithmic("mean of |log Ẑ − log Z|").unit("nats").range(SHOWN.0, SHOWN.1),
        )
        .title(title);
        let here = || rows.clone().filter(move |r| r.batch == n);
        let chart = chart.with_all(here().map(|r| {
            let quartiles =
                |p: &Point| (at(p), p.log_error.p25.unwrap_or(f64::NAN), p.log_error.p75.unwrap_or(f64::NAN));
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
    let dash = match row.estimator {
        None => Dash::Solid,
        Some(Estimator::HarmonicMean) => Dash::Dotted,
        Some(Estimator::BridgeFromBurnIn) if row.burn_in.is_none_or(is_usual) => Dash::Dashed,
        Some(Estimator::BridgeFromBurnIn) => Dash::Short,
        Some(_) => Dash::DashDot,
    };
    let mut methods = RULE_NAMES.into_iter().chain(Sampler::ALL.map(Sampler::name));
    (methods.position(|m| m == row.method).unwrap_or_default(), dash)
}
