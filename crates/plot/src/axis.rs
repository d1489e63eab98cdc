//! What an axis shows.

/// The direction, label, unit and range of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub(crate) kind: Kind,
    pub(crate) label: String,
    pub(crate) unit: Option<String>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Whether tick labels and the axis label are drawn.
    pub(crate) written: bool,
    /// Whether ticks and grid lines are drawn.
    pub(crate) ticked: bool,
    /// Whether ticks are whole numbers.
    pub(crate) whole: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Linear,
    Logarithmic,
    Categories(Vec<String>),
}

impl Axis {
    /// An axis on which equal distances are equal differences.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self::of(Kind::Linear, label.into())
    }

    /// A linear axis for something that is counted: its ticks are whole numbers.
    #[must_use]
    pub fn counts(label: impl Into<String>) -> Self {
        Self { whole: true, ..Self::linear(label) }
    }

    /// An axis on which equal distances are equal ratios; what is not positive is left out.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self::of(Kind::Logarithmic, label.into())
    }

    /// An axis with one place for each name, in order: the first is at 0, the second at 1, and so on; on a vertical axis the first is at the top.
    #[must_use]
    pub fn categories<N: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = N>) -> Self {
        Self::of(Kind::Categories(names.into_iter().map(Into::into).collect()), label.into())
    }

    fn of(kind: Kind, label: String) -> Self {
        Self { kind, label, unit: None, low: None, high: None, written: true, ticked: true, whole: false }
    }

    /// With a unit, shown in brackets behind the label.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// From `low` to `high` instead of what the data take; what lies outside is cut off. Ends that are not finite, in the wrong order or not positive on a
    /// logarithmic axis are passed over.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        let positive = self.kind != Kind::Logarithmic || low > 0.0;
        if low.is_finite() && high.is_finite() && low < high && positive {
            (self.low, self.high) = (Some(low), Some(high));
        }
        self
    }

    /// Without tick labels and axis label, because a neighbour has them.
    #[must_use]
    pub fn unwritten(mut self) -> Self {
        self.written = false;
        self
    }

    /// Without ticks, grid lines or anything written: for a quantity whose numbers say nothing.
    #[must_use]
    pub fn bare(mut self) -> Self {
        (self.written, self.ticked) = (false, false);
        self
    }

    /// The label with its unit.
    pub(crate) fn text(&self) -> String {
        match &self.unit {
            Some(unit) if self.label.is_empty() => unit.clone(),
            Some(unit) => format!("{} ({unit})", self.label),
            None => self.label.clone(),
        }
    }
}
