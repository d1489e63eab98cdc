//! The kinds of layers.

use crate::{
    layer::Layer,
    style::{Dash, Marker, Style},
};

macro_rules! layer {
    ($type:ident) => {
        impl From<$type> for Layer {
            fn from(layer: $type) -> Self {
                Self::$type(layer)
            }
        }

        impl $type {
            /// With a name, which the legend shows.
            #[must_use]
            pub fn named(mut self, name: impl Into<String>) -> Self {
                self.name = Some(name.into());
                self
            }

            /// Colour, dash and marker number `k`, as [`Style::numbered`].
            #[must_use]
            pub fn style(mut self, k: usize) -> Self {
                let Style { colour, dash, marker, .. } = Style::numbered(k);
                self.style = Style { colour, dash, marker, ..self.style };
                self
            }

            /// Colour number `k` of [`crate::COLOURS`].
            #[must_use]
            pub fn colour(mut self, k: usize) -> Self {
                self.style.colour = k;
                self
            }

            /// With this opacity, from 0 to 1.
            #[must_use]
            pub fn opacity(mut self, opacity: f64) -> Self {
                self.style.opacity = if opacity.is_finite() { opacity.clamp(0.0, 1.0) } else { 1.0 };
                self
            }
        }
    };
}

macro_rules! markers {
    ($type:ident) => {
        impl $type {
            /// What hovering over each marker shows, instead of its numbers.
            #[must_use]
            pub fn tips<T: Into<String>>(mut self, tips: impl IntoIterator<Item = T>) -> Self {
                self.tips = tips.into_iter().map(Into::into).collect();
                self
            }

            /// With markers of this shape.
            #[must_use]
            pub fn marker(mut self, marker: Marker) -> Self {
                self.style.marker = marker;
                self
            }
        }
    };
}

/// Points joined by straight lines; a point that cannot be shown breaks it.
#[derive(Debug, Clone)]
pub struct Line {
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
    pub(crate) marked: bool,
    pub(crate) steps: bool,
}
layer!(Line);

impl Line {
    /// A line through `(x, y)`.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { points, name: None, style: Style::default(), marked: false, steps: false }
    }

    /// With a marker at each point.
    #[must_use]
    pub fn marked(mut self) -> Self {
        self.marked = true;
        self
    }

    /// As steps: each value holds until the next point.
    #[must_use]
    pub fn steps(mut self) -> Self {
        self.steps = true;
        self
    }

    /// Broken like this.
    #[must_use]
    pub fn dash(mut self, dash: Dash) -> Self {
        self.style.dash = dash;
        self
    }

    /// So many pixels broad.
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.style.width = if width.is_finite() { width.clamp(0.0, 40.0) } else { 2.0 };
        self
    }
}

/// The region between two lines. An end at infinity is the edge of the chart; NaN breaks the band.
#[derive(Debug, Clone)]
pub struct Band {
    /// `(x, low, high)`.
    pub(crate) points: Vec<(f64, f64, f64)>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Band);

impl Band {
    /// The region between `low` and `high` over `x`, from `(x, low, high)`.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let style = Style { opacity: 0.22, ..Style::default() };
        Self { points: points.into_iter().collect(), name: None, style }
    }
}

/// Markers. Beyond some hundreds they are drawn as one cloud, without values on hovering.
#[derive(Debug, Clone)]
pub struct Points {
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) tips: Vec<String>,
    pub(crate) cloud: bool,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Points);
markers!(Points);

impl Points {
    /// Markers at `(x, y)`.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { points, tips: Vec::new(), cloud: false, name: None, style: Style::default() }
    }

    /// As one cloud, however few they are: short text, no values on hovering.
    #[must_use]
    pub fn cloud(mut self) -> Self {
        self.cloud = true;
        self
    }

    /// Of this radius in pixels.
    #[must_use]
    pub fn radius(mut self, radius: f64) -> Self {
        self.style.width = if radius.is_finite() { radius.clamp(0.5, 40.0) - 1.0 } else { 2.0 };
        self
    }
}

/// Error bars with a marker at the value.
#[derive(Debug, Clone)]
pub struct Errors {
    /// `(at, low, value, high)`.
    pub(crate) bars: Vec<(f64, f64, f64, f64)>,
    pub(crate) tips: Vec<String>,
    pub(crate) horizontal: bool,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Errors);
markers!(Errors);

impl Errors {
    /// Bars from `low` to `high` with a marker at `value`, from `(at, low, value, high)`; `at` is on the horizontal axis.
    #[must_use]
    pub fn new(bars: impl IntoIterator<Item = (f64, f64, f64, f64)>) -> Self {
        let bars = bars.into_iter().collect();
        Self { bars, tips: Vec::new(), horizontal: false, name: None, style: Style::default() }
    }

    /// Lying: `at` is on the vertical axis.
    #[must_use]
    pub fn horizontal(mut self) -> Self {
        self.horizontal = true;
        self
    }
}

/// A straight line across the whole chart.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) at: f64,
    pub(crate) vertical: bool,
    pub(crate) label: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Rule);

impl Rule {
    /// Across the chart at height `y`.
    #[must_use]
    pub fn horizontal(y: f64) -> Self {
        Self::of(y, false)
    }

    /// From top to bottom at `x`.
    #[must_use]
    pub fn vertical(x: f64) -> Self {
        Self::of(x, true)
    }

    fn of(at: f64, vertical: bool) -> Self {
        let style = Style { dash: Dash::Short, width: 1.5, colour: 6, ..Style::default() };
        Self { at, vertical, label: None, name: None, style }
    }

    /// With a short text at its end, outside the frame.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Some(text.into());
        self
    }

    /// Broken like this.
    #[must_use]
    pub fn dash(mut self, dash: Dash) -> Self {
        self.style.dash = dash;
        self
    }
}

/// Bars that stand on zero, or on the lower edge of a logarithmic axis: a histogram, or a bar for each category.
#[derive(Debug, Clone)]
pub struct Bars {
    /// `(left, right, height)`.
    pub(crate) bars: Vec<(f64, f64, f64)>,
    pub(crate) tips: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Bars);

impl Bars {
    /// Bars from `(left, right, height)`.
    #[must_use]
    pub fn new(bars: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let style = Style { opacity: 0.75, ..Style::default() };
        Self { bars: bars.into_iter().collect(), tips: Vec::new(), name: None, style }
    }

    /// Bars of the given heights around 0, 1, 2, …: one for each category.
    #[must_use]
    pub fn of_categories(heights: impl IntoIterator<Item = f64>) -> Self {
        Self::new(heights.into_iter().enumerate().map(|(i, h)| (i as f64 - 0.35, i as f64 + 0.35, h)))
    }

    /// What hovering over each shows, instead of the numbers.
    #[must_use]
    pub fn tips<T: Into<String>>(mut self, tips: impl IntoIterator<Item = T>) -> Self {
        self.tips = tips.into_iter().map(Into::into).collect();
        self
    }
}

/// Regions where a function given on a grid exceeds levels, filled one over the other.
#[derive(Debug, Clone)]
pub struct Density {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    /// `values[i · y.len() + j]` at `(x[i], y[j])`.
    pub(crate) values: Vec<f64>,
    pub(crate) levels: Vec<f64>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Density);

impl Density {
    /// A function on the grid `x × y`, both increasing, with `values[i · y.len() + j]` at `(x[i], y[j])`. What is not finite, and what is missing, is
    /// below all levels. Without levels nothing is drawn.
    #[must_use]
    pub fn new(x: Vec<f64>, y: Vec<f64>, mut values: Vec<f64>) -> Self {
        values.resize(x.len() * y.len(), f64::NEG_INFINITY);
        let style = Style { opacity: 0.28, width: 1.0, ..Style::default() };
        Self { x, y, values, levels: Vec::new(), name: None, style }
    }

    /// Contours at these values.
    #[must_use]
    pub fn levels(mut self, levels: impl IntoIterator<Item = f64>) -> Self {
        self.levels = levels.into_iter().filter(|l| l.is_finite()).collect();
        self
    }

    /// Contours of the smallest regions that hold these shares of the integral, each between 0 and 1: `[0.39, 0.86]` are the regions of one and two standard
    /// deviations of a normal distribution. Negative values count as zero. Cost `n log n` for n values.
    #[must_use]
    pub fn shares(self, shares: &[f64]) -> Self {
        let (wide, high) = (widths(&self.x), widths(&self.y));
        let mut cells: Vec<(f64, f64)> = (0..self.values.len())
            .map(|k| (self.values[k], self.values[k] * wide[k / high.len()] * high[k % high.len()]))
            .filter(|(v, mass)| v.is_finite() && *v > 0.0 && mass.is_finite())
            .collect();
        cells.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total: f64 = cells.iter().map(|c| c.1).sum();
        let level = |share: f64| {
            let mut sum = 0.0;
            let enough = cells.iter().find(|(_, mass)| {
                sum += mass;
                sum >= share * total
            });
            enough.map(|(value, _)| *value)
        };
        let levels: Vec<f64> = shares.iter().filter(|s| **s > 0.0 && **s < 1.0).filter_map(|s| level(*s)).collect();
        self.levels(levels)
    }
}

/// The part of the line that belongs to each grid point.
fn widths(grid: &[f64]) -> Vec<f64> {
    let n = grid.len();
    (0..n).map(|i| 0.5 * (grid[(i + 1).min(n - 1)] - grid[i.saturating_sub(1)])).collect()
}

/// Pieces of time, each in a row: a timeline.
#[derive(Debug, Clone)]
pub struct Segments {
    pub(crate) segments: Vec<Segment>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
}
layer!(Segments);

/// A piece of a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its place on the vertical axis.
    pub row: f64,
    /// Where it begins.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
    /// What hovering over it shows.
    pub tip: String,
}

impl Segments {
    /// These pieces.
    #[must_use]
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Self {
        let style = Style { opacity: 0.85, ..Style::default() };
        Self { segments: segments.into_iter().collect(), name: None, style }
    }
}
