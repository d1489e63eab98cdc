//! The figures that several experiments draw.

use batchquad_plot::{Axis, Band, Chart, Figure, Line};

use crate::{
    convergence::{Point, Row},
    stats::Spread,
};

/// Which colour of the palette, and which of its dashes and markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The number of the colour.
    pub colour: usize,
    /// The number of dash and marker.
    pub shape: usize,
}

impl Look {
    /// Number `k` of both.
    #[must_use]
    pub fn numbered(k: usize) -> Self {
        Self { colour: k, shape: k }
    }

    fn line(self, name: &str, points: impl Iterator<Item = (f64, Option<f64>)>) -> Line {
        let points = points.map(|(x, y)| (x, y.unwrap_or(f64::NAN)));
        Line::new(points).named(name).style(self.shape).colour(self.colour)
    }
}

/// Median with the quartiles as a band.
#[must_use]
pub fn spread(chart: Chart, name: &str, look: Look, points: &[(f64, Spread)]) -> Chart {
    let missing = f64::NAN;
    let band = points.iter().map(|(x, s)| (*x, s.p25.unwrap_or(missing), s.p75.unwrap_or(missing)));
    chart
        .with(Band::new(band).style(look.colour).opacity(0.12))
        .with(look.line(name, points.iter().map(|(x, s)| (*x, s.median))))
}

/// The mean alone.
#[must_use]
pub fn average(chart: Chart, name: &str, look: Look, points: &[(f64, Spread)]) -> Chart {
    chart.with(look.line(name, points.iter().map(|(x, s)| (*x, s.mean))))
}

/// What is drawn of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Median,
    Mean,
}

/// What errors are drawn against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    Evaluations,
    Batches,
}

/// One curve for each row, from the end of the initial design on.
fn panel(title: &str, rows: &[&Row], statistic: Statistic, against: Against) -> Chart {
    let (y, title) = match statistic {
        Statistic::Median => ("median of |Ẑ/Z − 1|", format!("{title} (shaded: quartiles)")),
        Statistic::Mean => ("mean of |Ẑ/Z − 1|", title.into()),
    };
    let x = match against {
        Against::Evaluations => "evaluations",
        Against::Batches => "batches",
    };
    let at = |p: &Point| match against {
        Against::Evaluations => p.evaluations as f64,
        Against::Batches => p.batches as f64,
    };
    let mut chart = Chart::new(Axis::logarithmic(x), Axis::logarithmic(y)).title(title);
    for (k, row) in rows.iter().enumerate() {
        let chosen = row.curve.iter().filter(|p| !p.initial);
        let points: Vec<(f64, Spread)> = chosen.map(|p| (at(p), p.relative_error)).collect();
        let (name, look) = (format!("batch {}", row.batch), Look::numbered(k));
        chart = match statistic {
            Statistic::Median => spread(chart, &name, look, &points),
            Statistic::Mean => average(chart, &name, look, &points),
        };
    }
    chart
}

/// For each problem and variant two figures, of medians and of means, with four panels each: rules across, evaluations and batches
/// down.
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
        for (statistic, name) in [(Statistic::Median, "median"), (Statistic::Mean, "mean")] {
            let line = |against| {
                let one = |rule: &&str| {
                    let rows: Vec<&Row> = rows.iter().filter(|r| r.rule == *rule).copied().collect();
                    Some(panel(rule, &rows, statistic, against))
                };
                rules.iter().map(one).collect()
            };
            let grid = vec![line(Against::Evaluations), line(Against::Batches)];
            let label = format!("{name} relative error of Z on {stem} against evaluations and batches, by batch size");
            figures.push((format!("{stem}-{name}"), Figure::grid(label, grid).width(900.0).one_legend()));
        }
    }
    figures
}
