//! Colours, dashes and markers.

/// Colours that readers with any colour vision can tell apart (Okabe and Ito 2008, without the yellow that white paper swallows).
pub const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// The colours of inline figures, for light and dark pages: put it into the page's one style sheet. Another theme can set the custom properties
/// `--plot-0` … `--plot-6`, `--plot-ink`, `--plot-soft`, `--plot-grid` and `--plot-ground` anew.
pub const STYLESHEET: &str = "\
.plot{--plot-0:#0072b2;--plot-1:#d55e00;--plot-2:#009e73;--plot-3:#cc79a7;--plot-4:#e69f00;--plot-5:#56b4e9;--plot-6:#555;\
--plot-ink:#222;--plot-soft:#5c5c5c;--plot-grid:#e4e4e4;--plot-ground:#fff;max-width:100%;height:auto}
@media (prefers-color-scheme:dark){@media screen{.plot{--plot-0:#5db4ec;--plot-1:#ff8f4a;--plot-2:#2fc79b;--plot-3:#e3a3c6;--plot-4:#f0b840;\
--plot-5:#8fd0f5;--plot-6:#aaa;--plot-ink:#e6e6e6;--plot-soft:#a8a8a8;--plot-grid:#3a3d42;--plot-ground:#1c1e22}}}
.plot .f0{fill:var(--plot-0)}.plot .s0{stroke:var(--plot-0)}.plot .f1{fill:var(--plot-1)}.plot .s1{stroke:var(--plot-1)}
.plot .f2{fill:var(--plot-2)}.plot .s2{stroke:var(--plot-2)}.plot .f3{fill:var(--plot-3)}.plot .s3{stroke:var(--plot-3)}
.plot .f4{fill:var(--plot-4)}.plot .s4{stroke:var(--plot-4)}.plot .f5{fill:var(--plot-5)}.plot .s5{stroke:var(--plot-5)}
.plot .f6{fill:var(--plot-6)}.plot .s6{stroke:var(--plot-6)}.plot .fi{fill:var(--plot-ink)}.plot .si{stroke:var(--plot-ink)}
.plot .fq{fill:var(--plot-soft)}.plot .sq{stroke:var(--plot-soft)}.plot .sg{stroke:var(--plot-grid)}.plot .fw{fill:var(--plot-ground)}
.plot .sw{stroke:var(--plot-ground)}
";

/// How a line is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Not at all.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash and dot in turn.
    DashDot,
    /// Short dashes.
    Short,
}

impl Dash {
    pub(crate) fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Solid => None,
            Self::Dashed => Some("7 4"),
            Self::Dotted => Some("1.5 3.5"),
            Self::DashDot => Some("8 3 2 3"),
            Self::Short => Some("4 3"),
        }
    }
}

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle, tip up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A saltire.
    Cross,
    /// An upright cross.
    Plus,
    /// A circle without filling.
    Ring,
}

/// Colour, dash, marker, width and opacity of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// The number of a colour in [`COLOURS`].
    pub colour: usize,
    /// How lines are broken.
    pub dash: Dash,
    /// The shape of points.
    pub marker: Marker,
    /// The width of lines, or the radius of markers less one, in pixels.
    pub width: f64,
    /// From 0, invisible, to 1.
    pub opacity: f64,
}

impl Style {
    /// Style number `k`: colour, dash and marker all differ from those of the numbers before it.
    #[must_use]
    pub fn numbered(k: usize) -> Self {
        const DASHES: [Dash; 5] = [Dash::Solid, Dash::Dashed, Dash::DashDot, Dash::Short, Dash::Dotted];
        const MARKERS: [Marker; 7] = [
            Marker::Disc,
            Marker::Square,
            Marker::Triangle,
            Marker::Diamond,
            Marker::Cross,
            Marker::Ring,
            Marker::Plus,
        ];
        Self {
            colour: k % COLOURS.len(),
            dash: DASHES[k % DASHES.len()],
            marker: MARKERS[k % MARKERS.len()],
            width: 2.0,
            opacity: 1.0,
        }
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::numbered(0)
    }
}

/// What something is painted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// A colour of the palette.
    Colour(usize),
    /// Text and frames.
    Ink,
    /// What should not stand out.
    Soft,
    /// Lines behind everything.
    Grid,
    /// The background.
    Ground,
}

impl Paint {
    pub(crate) fn hex(self) -> &'static str {
        match self {
            Self::Colour(k) => COLOURS[k % COLOURS.len()],
            Self::Ink => "#222222",
            Self::Soft => "#5c5c5c",
            Self::Grid => "#e4e4e4",
            Self::Ground => "#ffffff",
        }
    }

    pub(crate) fn letter(self) -> char {
        match self {
            Self::Colour(k) => char::from(b'0' + (k % COLOURS.len()) as u8),
            Self::Ink => 'i',
            Self::Soft => 'q',
            Self::Grid => 'g',
            Self::Ground => 'w',
        }
    }
}
