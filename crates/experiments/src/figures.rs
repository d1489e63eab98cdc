//! The figures that several experiments draw.

use batchquad_plot::{Axis, Band, Chart, Figure, Line};

use crate::{convergence::Row, stats::Spread};

/// What a rule is called in pictures.
fn title(rule: &str) -> String {
    let words = rule.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Median with quartiles as a band, as line number `k`.
pub fn spread(chart: Chart, name: &str, k: usize, points: &[(f64, Spread)]) -> Chart {
    let missing = f64::NAN;
    let band = points.iter().map(|(x, s)| (*x, s.p25.unwrap_or(missing), s.p75.unwrap_or(missing)));
    let line = points.iter().map(|(x, s)| (*x, s.median.unwrap_or(missing)));
    chart.with(Band::new(band).style(k).opacity(0.12)).with(Line::new(line).named(name).style(k))
}

/// The mean, as line number `k`.
pub fn average(chart: Chart, name: &str, k: usize, points: &[(f64, Spread)]) -> Chart {
    let line = points.iter().map(|(x, s)| (*x, s.mean.unwrap_or(f64::NAN)));
    chart.with(Line::new(line).named(name).style(k))
}

/// For each problem and variant, two figures of four panels: rules across, evaluations and batches down; medians with quartiles in
/// one, means in the other.
#[must_use]
pub fn convergence(rows: &[Row]) -> Vec<(String, Figure)> {
    let mut kinds: Vec<(&str, &str)> = rows.iter().map(|r| (&r.problem[..], &r.variant[..])).collect();
    kinds.dedup();
    let mut figures = Vec::new();
    for (problem, variant) in kinds {
        let rows: Vec<&Row> = rows.iter().filter(|r| r.problem == problem && r.variant == variant).collect();
        let mut rules: Vec<&str> = rows.iter().map(|r| &r.rule[..]).collect();
        rules.dedup();
        let stem = if variant.is_empty() { problem.to_string() } else { format!("{problem}-{variant}") };
        for (statistic, draw) in
            [("median", spread as fn(Chart, &str, usize, &[(f64, Spread)]) -> Chart), ("mean", average)]
        {
            let mut grid = Vec::new();
            for by_batches in [false, true] {
                let panels = rules.iter().map(|rule| {
                    let x = if by_batches { "batches" } else { "evaluations" };
                    let mut chart =
                        Chart::new(Axis::logarithmic(x), Axis::logarithmic(format!("{statistic} of |Ẑ/Z − 1|")))
                            .title(title(rule));
                    for (k, row) in rows.iter().filter(|r| r.rule == *rule).enumerate() {
                        let at = |p: &crate::convergence::Point| if by_batches { p.batches } else { p.evaluations };
                        let points: Vec<(f64, Spread)> =
                            row.curve.iter().map(|p| (at(p) as f64, p.relative_error)).collect();
                        chart = draw(chart, &format!("batch {}", row.batch), k, &points);
                    }
                    Some(chart)
                });
                grid.push(panels.collect());
            }
            let label =
                format!("{statistic} relative error of Z on {stem} against evaluations and batches, by batch size");
            figures.push((format!("{stem}-{statistic}"), Figure::grid(label, grid).width(900.0).one_legend()));
        }
    }
    figures
}
