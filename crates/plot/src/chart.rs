//! Two axes and what is between them.

use crate::{axis::Axis, layer::Layer, scale::range_of};

/// Two axes, layers in drawing order, a title and a legend above them.
#[derive(Debug, Clone)]
pub struct Chart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) title: String,
    pub(crate) layers: Vec<Layer>,
}

impl Chart {
    /// An empty chart.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, title: String::new(), layers: Vec::new() }
    }

    /// With a line above it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// With a layer over those that are there.
    #[must_use]
    pub fn with(mut self, layer: impl Into<Layer>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// With several layers over those that are there.
    #[must_use]
    pub fn with_all<L: Into<Layer>>(mut self, layers: impl IntoIterator<Item = L>) -> Self {
        self.layers.extend(layers.into_iter().map(Into::into));
        self
    }

    pub(crate) fn x_range(&self) -> (f64, f64) {
        range_of(&self.x, self.layers.iter().flat_map(Layer::xs))
    }

    pub(crate) fn y_range(&self) -> (f64, f64) {
        let (low, high) = range_of(&self.y, self.layers.iter().flat_map(Layer::ys));
        // Bars stand on the axis.
        let on_zero = self.layers.iter().any(|l| matches!(l, Layer::Bars(_))) && self.y.low.is_none();
        let touches = |v: f64, other: f64| v < 0.0 && v > -0.2 * other;
        if on_zero && touches(low, high) { (0.0, high) } else { (low, high) }
    }
}
