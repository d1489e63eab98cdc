//! Charts as SVG text: a [`Figure`] is a grid of [`Chart`]s, a chart is two axes ([`Axis`]) and layers ([`Layer`]) on them.
//!
//! The same figure can be a file of its own ([`Figure::standalone`]: explicit colours on white) or a part of an HTML page
//! ([`Figure::inline`]: classes that [`STYLESHEET`] gives colours to, light or dark, and values shown on hovering). Colours are those of Okabe and
//! Ito, which readers with any colour vision can tell apart; dashes and markers differ as well. The text is a function of the figure
//! alone: the same figure is the same bytes.
//!
//! What cannot be drawn is left out: a value that is not finite, or not positive on a logarithmic axis, breaks a line and never
//! reaches the text. A chart without data is drawn empty.
//!
//! ```
//! use batchquad_plot::{Axis, Band, Chart, Figure, Line, Rule};
//! let chart = Chart::new(Axis::linear("evaluations"), Axis::linear("log Z").unit("nats"))
//!     .title("Convergence")
//!     .with(Band::new([(8.0, -3.2, -2.4), (16.0, -3.0, -2.7)]).named("± 1 sd"))
//!     .with(Line::new([(8.0, -2.8), (16.0, -2.85)]).named("estimate"))
//!     .with(Rule::horizontal(-2.83).named("known").style(1));
//! let svg = Figure::new("log Z against evaluations", chart).standalone();
//! assert!(svg.starts_with("<svg") && svg.contains("log Z (nats)"));
//! ```

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod contour;
mod draw;
mod figure;
mod layer;
mod layout;
mod legend;
mod marks;
mod number;
mod panel;
mod scale;
mod style;
mod svg;
mod ticks;

pub use axis::Axis;
pub use chart::Chart;
pub use figure::Figure;
pub use layer::Layer;
pub use marks::{Band, Bars, Density, Errors, Line, Points, Rule, Segment, Segments};
pub use number::compact;
pub use style::{COLOURS, Dash, Marker, STYLESHEET, Style};
