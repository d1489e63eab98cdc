//! What is drawn between two axes.

use crate::{
    marks::{Band, Bars, Density, Errors, Line, Points, Rule, Segments},
    style::Style,
};

/// Something drawn on a chart; made from one of the structures of this crate.
#[derive(Debug, Clone)]
pub enum Layer {
    /// A line.
    Line(Line),
    /// A band between two lines.
    Band(Band),
    /// Points.
    Points(Points),
    /// Error bars.
    Errors(Errors),
    /// A line across the chart.
    Rule(Rule),
    /// Bars from zero.
    Bars(Bars),
    /// Filled contours of a function of two variables.
    Density(Density),
    /// Pieces of a timeline.
    Segments(Segments),
}

impl Layer {
    /// Its name and style.
    pub(crate) fn key(&self) -> (Option<&str>, Style) {
        let (name, style) = match self {
            Self::Line(l) => (&l.name, l.style),
            Self::Band(l) => (&l.name, l.style),
            Self::Points(l) => (&l.name, l.style),
            Self::Errors(l) => (&l.name, l.style),
            Self::Rule(l) => (&l.name, l.style),
            Self::Bars(l) => (&l.name, l.style),
            Self::Density(l) => (&l.name, l.style),
            Self::Segments(l) => (&l.name, l.style),
        };
        (name.as_deref(), style)
    }

    /// All values it has on the horizontal axis, finite or not.
    pub(crate) fn xs(&self) -> Vec<f64> {
        match self {
            Self::Line(l) => l.points.iter().map(|p| p.0).collect(),
            Self::Band(l) => l.points.iter().map(|p| p.0).collect(),
            Self::Points(l) => l.points.iter().map(|p| p.0).collect(),
            Self::Errors(l) if l.horizontal => l.bars.iter().flat_map(|b| [b.1, b.2, b.3]).collect(),
            Self::Errors(l) => l.bars.iter().map(|b| b.0).collect(),
            Self::Rule(l) => {
                if l.vertical {
                    vec![l.at]
                } else {
                    vec![]
                }
            }
            Self::Bars(l) => l.bars.iter().flat_map(|b| [b.0, b.1]).collect(),
            Self::Density(l) => l.x.clone(),
            Self::Segments(l) => l.segments.iter().flat_map(|s| [s.start, s.end]).collect(),
        }
    }

    /// All values it has on the vertical axis, finite or not.
    pub(crate) fn ys(&self) -> Vec<f64> {
        match self {
            Self::Line(l) => l.points.iter().map(|p| p.1).collect(),
            Self::Band(l) => l.points.iter().flat_map(|p| [p.1, p.2]).collect(),
            Self::Points(l) => l.points.iter().map(|p| p.1).collect(),
            Self::Errors(l) if l.horizontal => l.bars.iter().map(|b| b.0).collect(),
            Self::Errors(l) => l.bars.iter().flat_map(|b| [b.1, b.2, b.3]).collect(),
            Self::Rule(l) => {
                if l.vertical {
                    vec![]
                } else {
                    vec![l.at]
                }
            }
            Self::Bars(l) => l.bars.iter().map(|b| b.2).chain([0.0]).collect(),
            Self::Density(l) => l.y.clone(),
            Self::Segments(l) => l.segments.iter().map(|s| s.row).collect(),
        }
    }
}
