//! A grid of charts.

use std::fmt::Write as _;

use crate::{
    chart::Chart,
    layout::Layout,
    legend::{self, Entry},
    panel::draw_chart,
    svg::{Mode, Svg, escape, pixel},
};

/// The size of all text.
pub(crate) const FONT: f64 = 12.0;
const FAMILY: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";

/// A grid of charts whose frames are aligned.
#[derive(Debug, Clone)]
pub struct Figure {
    label: String,
    pub(crate) rows: Vec<Vec<Option<Chart>>>,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) square: bool,
    pub(crate) one_legend: bool,
}

impl Figure {
    /// A single chart. `label` says in words what is shown, for those who cannot see it.
    #[must_use]
    pub fn new(label: impl Into<String>, chart: Chart) -> Self {
        Self::grid(label, vec![vec![Some(chart)]])
    }

    /// Charts in rows and columns; `None` leaves a place empty.
    #[must_use]
    pub fn grid(label: impl Into<String>, rows: Vec<Vec<Option<Chart>>>) -> Self {
        Self { label: label.into(), rows, width: 720.0, height: 240.0, square: false, one_legend: false }
    }

    /// Charts one below the other.
    #[must_use]
    pub fn column(label: impl Into<String>, charts: impl IntoIterator<Item = Chart>) -> Self {
        Self::grid(label, charts.into_iter().map(|c| vec![Some(c)]).collect())
    }

    /// Charts in reading order, so many in a row.
    #[must_use]
    pub fn wrapped(label: impl Into<String>, columns: usize, charts: impl IntoIterator<Item = Chart>) -> Self {
        let charts: Vec<Chart> = charts.into_iter().collect();
        Self::grid(label, charts.chunks(columns.max(1)).map(|row| row.iter().cloned().map(Some).collect()).collect())
    }

    /// A corner plot of `n` parameters: `alone(i)` on the diagonal, `pair(i, j)` with parameter j across and i up below it. Axes are shared: only
    /// the bottom row and the left column are written; the height of a diagonal chart is never. Give the axes of a parameter the same range everywhere.
    #[must_use]
    pub fn corner(
        label: impl Into<String>,
        n: usize,
        mut alone: impl FnMut(usize) -> Chart,
        mut pair: impl FnMut(usize, usize) -> Chart,
    ) -> Self {
        let mut rows = Vec::new();
        for i in 0..n {
            let mut row = Vec::new();
            for j in 0..n {
                let chart = match j.cmp(&i) {
                    std::cmp::Ordering::Less => Some(pair(i, j)),
                    std::cmp::Ordering::Equal => Some(alone(i)),
                    std::cmp::Ordering::Greater => None,
                };
                row.push(chart.map(|mut chart| {
                    chart.x.written = chart.x.written && i + 1 == n;
                    chart.y.written = chart.y.written && j == 0 && i != j;
                    chart.y.ticked = chart.y.ticked && i != j;
                    chart
                }));
            }
            rows.push(row);
        }
        Self::grid(label, rows).squares()
    }

    /// So many pixels broad in all; 720 by default.
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.width = if width.is_finite() { width.clamp(120.0, 10_000.0) } else { 720.0 };
        self
    }

    /// The height of each frame in pixels; 240 by default.
    #[must_use]
    pub fn panel_height(mut self, height: f64) -> Self {
        self.height = if height.is_finite() { height.clamp(20.0, 5_000.0) } else { 240.0 };
        self
    }

    /// Frames as high as they are broad.
    #[must_use]
    pub fn squares(mut self) -> Self {
        self.square = true;
        self
    }

    /// One legend above all charts instead of one above each.
    #[must_use]
    pub fn one_legend(mut self) -> Self {
        self.one_legend = true;
        self
    }

    /// Small multiples: all charts have the same two axes, and only those at the left and at the bottom are written.
    #[must_use]
    pub fn shared_axes(mut self) -> Self {
        let hull = |ranges: Vec<(f64, f64)>| {
            ranges.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (a, b)| (l.min(a), h.max(b)))
        };
        let x = hull(self.charts().filter(|c| !c.layers.is_empty()).map(Chart::x_range).collect());
        let y = hull(self.charts().filter(|c| !c.layers.is_empty()).map(Chart::y_range).collect());
        let below: Vec<Vec<bool>> = (0..self.rows.len())
            .map(|i| {
                (0..self.columns())
                    .map(|j| self.rows[i + 1..].iter().any(|r| matches!(r.get(j), Some(Some(_)))))
                    .collect()
            })
            .collect();
        for (i, row) in self.rows.iter_mut().enumerate() {
            for (j, chart) in row.iter_mut().enumerate() {
                let Some(chart) = chart else { continue };
                chart.x = chart.x.clone().range(x.0, x.1);
                chart.y = chart.y.clone().range(y.0, y.1);
                chart.x.written = chart.x.written && !below[i][j];
                chart.y.written = chart.y.written && j == 0;
            }
        }
        self
    }

    /// The figure as a file of its own: explicit colours on white.
    #[must_use]
    pub fn standalone(&self) -> String {
        self.write(Mode::Standalone, "plot")
    }

    /// The figure as a part of an HTML page that has [`crate::STYLESHEET`]. `id` must differ between the figures of a page; characters other than ASCII letters,
    /// digits and `-` are left out.
    #[must_use]
    pub fn inline(&self, id: &str) -> String {
        let id: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        self.write(Mode::Inline, &id)
    }

    fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.rows.iter().flatten().flatten()
    }

    pub(crate) fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    fn write(&self, mode: Mode, id: &str) -> String {
        let layout = Layout::new(self);
        let (width, height) = (pixel(self.width), pixel(layout.height));
        let mut svg = Svg::new(mode.clone());
        let common =
            format!("viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-size=\"{FONT}\"");
        let label = escape(&self.label);
        let _ = match mode {
            Mode::Standalone => writeln!(
                svg.text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" {common} font-family=\"{FAMILY}\">\n<title>{label}</title>\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
            ),
            Mode::Inline => {
                writeln!(svg.text, "<svg class=\"plot\" id=\"{id}\" role=\"img\" aria-label=\"{label}\" {common}>")
            }
        };
        if self.one_legend {
            let entries = self.all_entries();
            legend::draw(&mut svg, &entries, 10.0, 4.0, self.width - 20.0);
        }
        for (i, row) in self.rows.iter().enumerate() {
            for (j, chart) in row.iter().enumerate() {
                if let Some(chart) = chart {
                    let place = layout.place(i, j);
                    draw_chart(&mut svg, chart, &place, &format!("{id}-{i}-{j}"), !self.one_legend);
                }
            }
        }
        svg.text.push_str("</svg>\n");
        svg.text
    }

    pub(crate) fn all_entries(&self) -> Vec<Entry<'_>> {
        legend::entries(self.charts().flat_map(|c| &c.layers))
    }
}
