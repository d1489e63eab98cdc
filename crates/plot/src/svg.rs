//! Elements of SVG, written for a file or for a page.

use std::fmt::Write as _;

use crate::style::Paint;

/// Where the text goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A file of its own: colours are attributes.
    Standalone,
    /// A page: colours are classes.
    Inline,
}

/// The text so far.
#[derive(Debug)]
pub(crate) struct Svg {
    pub(crate) text: String,
    pub(crate) mode: Mode,
}

/// An element in the making.
#[derive(Debug)]
pub(crate) struct Element {
    tag: &'static str,
    attributes: String,
    fill: Option<Paint>,
    stroke: Option<Paint>,
    title: Option<String>,
    content: Option<String>,
}

impl Element {
    pub(crate) fn new(tag: &'static str) -> Self {
        Self { tag, attributes: String::new(), fill: None, stroke: None, title: None, content: None }
    }

    /// An attribute; its value is escaped.
    pub(crate) fn set(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let _ = write!(self.attributes, " {name}=\"{}\"", escape(value.as_ref()));
        self
    }

    /// An attribute that is a number.
    pub(crate) fn number(self, name: &str, value: f64) -> Self {
        self.set(name, pixel(value))
    }

    pub(crate) fn fill(mut self, paint: Paint) -> Self {
        self.fill = Some(paint);
        self
    }

    pub(crate) fn stroke(mut self, paint: Paint) -> Self {
        self.stroke = Some(paint);
        self
    }

    /// What hovering shows.
    pub(crate) fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// The text inside.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.content = Some(escape(text));
        self
    }
}

impl Svg {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { text: String::new(), mode }
    }

    pub(crate) fn add(&mut self, element: Element) {
        let Element { tag, attributes, fill, stroke, title, content } = element;
        self.text.push('<');
        self.text.push_str(tag);
        match self.mode {
            Mode::Standalone => {
                let shown = |p: Option<Paint>| p.map(Paint::hex);
                if let Some(hex) = shown(fill) {
                    let _ = write!(self.text, " fill=\"{hex}\"");
                }
                if let Some(hex) = shown(stroke) {
                    let _ = write!(self.text, " stroke=\"{hex}\"");
                }
            }
            Mode::Inline => {
                let classes: Vec<String> = [('f', fill), ('s', stroke)]
                    .into_iter()
                    .filter_map(|(kind, paint)| paint.map(|p| format!("{kind}{}", p.letter())))
                    .collect();
                if !classes.is_empty() {
                    let _ = write!(self.text, " class=\"{}\"", classes.join(" "));
                }
            }
        }
        // Shapes that only have a stroke must say so, or they are filled with black.
        if fill.is_none() && stroke.is_some() {
            self.text.push_str(" fill=\"none\"");
        }
        self.text.push_str(&attributes);
        match (title, content) {
            (None, None) => self.text.push_str("/>\n"),
            (title, content) => {
                self.text.push('>');
                if let Some(title) = title {
                    let _ = write!(self.text, "<title>{}</title>", escape(&title));
                }
                let _ = writeln!(self.text, "{}</{tag}>", content.unwrap_or_default());
            }
        }
    }
}

/// A coordinate: two decimals, none that say nothing.
pub(crate) fn pixel(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let rounded = (value * 100.0).round() / 100.0;
    // −0 is written with its sign.
    if rounded == 0.0 { "0".into() } else { rounded.to_string() }
}

/// Fit for XML: markup escaped, and characters that XML 1.0 does not allow replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// About how broad a text is, in pixels, at a font size.
pub(crate) fn breadth(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | 'I' | '!' | '(' | ')' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        'A'..='Z' | '×' | '−' | '±' => 0.75,
        c if (c as u32) < 0x2e80 => 0.62,
        _ => 1.05,
    };
    size * text.chars().map(em).sum::<f64>()
}
