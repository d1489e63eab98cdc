//! Where the frames of a grid are.

use crate::{
    chart::Chart,
    figure::{FONT, Figure},
    layer::Layer,
    legend,
    scale::ticks,
    svg::breadth,
    ticks::Tick,
};

/// Between a panel and the next.
const GAP: f64 = 10.0;
/// Labels longer than this are cut.
pub(crate) const LONGEST: f64 = 180.0;

/// Where a frame is.
pub(crate) struct Place {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The upper edge of title and legend.
    pub(crate) head: f64,
}

/// The edges of all frames.
pub(crate) struct Layout {
    lefts: Vec<f64>,
    tops: Vec<f64>,
    heads: Vec<f64>,
    panel: (f64, f64),
    pub(crate) height: f64,
}

impl Layout {
    pub(crate) fn new(figure: &Figure) -> Self {
        let columns = figure.columns();
        let guess = figure.width / columns as f64;
        let mut margins = vec![(0.0_f64, 0.0_f64); columns];
        for row in &figure.rows {
            for (j, chart) in row.iter().enumerate() {
                if let Some(chart) = chart {
                    let (left, right) = sides(chart, guess, figure.height);
                    margins[j] = (margins[j].0.max(left), margins[j].1.max(right));
                }
            }
        }
        let taken: f64 = margins.iter().map(|m| m.0 + m.1).sum::<f64>() + GAP * (columns - 1) as f64;
        let wide = ((figure.width - taken) / columns as f64).max(20.0);
        let high = if figure.square { wide } else { figure.height };
        let mut lefts = Vec::new();
        let mut x = 0.0;
        for (left, right) in &margins {
            x += left;
            lefts.push(x);
            x += wide + right + GAP;
        }
        let mut y =
            if figure.one_legend { legend::height(&figure.all_entries(), figure.width - 20.0) + 4.0 } else { 0.0 };
        let (mut tops, mut heads) = (Vec::new(), Vec::new());
        for row in &figure.rows {
            let charts = || row.iter().flatten();
            let head = charts().map(|c| head(c, wide, !figure.one_legend)).fold(6.0, f64::max);
            let foot = charts().map(foot).fold(4.0, f64::max);
            heads.push(y);
            tops.push(y + head);
            y += head + high + foot;
        }
        Self { lefts, tops, heads, panel: (wide, high), height: y.max(20.0) }
    }

    pub(crate) fn place(&self, i: usize, j: usize) -> Place {
        Place { left: self.lefts[j], top: self.tops[i], width: self.panel.0, height: self.panel.1, head: self.heads[i] }
    }
}

/// The room a chart needs left and right of its frame.
pub(crate) fn sides(chart: &Chart, wide: f64, high: f64) -> (f64, f64) {
    let written = |ticks: Vec<Tick>| {
        ticks.iter().filter_map(|t| t.label.as_deref()).map(|l| breadth(l, FONT)).fold(0.0, f64::max).min(LONGEST)
    };
    let mut left = 8.0;
    if chart.y.written {
        let label = if chart.y.text().is_empty() { 0.0 } else { 20.0 };
        left += written(y_ticks(chart, high)) + 6.0 + label;
    }
    let x_label = if chart.x.written { written(x_ticks(chart, wide)) } else { 0.0 };
    let rules = chart.layers.iter().filter_map(|l| match l {
        Layer::Rule(r) if !r.vertical => r.label.as_deref(),
        _ => None,
    });
    let at_end = rules.map(|l| breadth(l, FONT) + 6.0).fold(0.0, f64::max);
    (left.max(x_label / 2.0), at_end.max(x_label / 2.0).max(8.0))
}

/// The room above the frame: title, legend, labels of vertical rules.
fn head(chart: &Chart, wide: f64, with_legend: bool) -> f64 {
    let title = if chart.title.is_empty() { 6.0 } else { 26.0 };
    let legend = if with_legend { legend::height(&legend::entries(chart.layers.iter()), wide) } else { 0.0 };
    title + legend + rule_labels(chart)
}

fn rule_labels(chart: &Chart) -> f64 {
    let some = chart.layers.iter().any(|l| matches!(l, Layer::Rule(r) if r.vertical && r.label.is_some()));
    if some { 14.0 } else { 0.0 }
}

fn foot(chart: &Chart) -> f64 {
    match (chart.x.written, chart.x.text().is_empty()) {
        (false, _) => 6.0,
        (true, true) => 26.0,
        (true, false) => 44.0,
    }
}

pub(crate) fn x_ticks(chart: &Chart, wide: f64) -> Vec<Tick> {
    ticks(&chart.x, chart.x_range(), wide, 72.0)
}

pub(crate) fn y_ticks(chart: &Chart, high: f64) -> Vec<Tick> {
    ticks(&chart.y, chart.y_range(), high, 38.0)
}
