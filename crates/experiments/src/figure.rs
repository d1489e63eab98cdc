//! A small writer of line figures as SVG: panels with axes, curves, marks and a legend.

use std::fmt::Write as _;

/// Colours that readers with any colour vision can tell apart (Okabe and Ito 2008).
pub const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const WIDTH: f64 = 720.0;
const PANEL: f64 = 240.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A full line.
    Full,
    /// A dashed line.
    Dashed,
    /// A broad pale line, for something that lies behind.
    Pale,
}

/// A named curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Its colour.
    pub colour: &'static str,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// A set of axes with curves and marks.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// The line above it.
    pub title: String,
    /// What the horizontal axis shows.
    pub x_label: String,
    /// What the vertical axis shows.
    pub y_label: String,
    /// The curves, in drawing order.
    pub curves: Vec<Curve>,
    /// Vertical lines with a short label each: where something is.
    pub marks: Vec<(String, f64)>,
    /// The range of the vertical axis; what lies outside is cut off.
    pub y_range: (f64, f64),
}

/// The panels one below the other, as a stand-alone SVG document.
#[must_use]
pub fn svg(panels: &[Panel]) -> String {
    let height = PANEL * panels.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"DejaVu Sans, Helvetica, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        draw(&mut out, panel, i);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, panel: &Panel, index: usize) {
    let top = PANEL * index as f64 + TOP;
    let (width, height) = (WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM);
    let xs = panel.curves.iter().flat_map(|c| c.points.iter().map(|p| p.0));
    let (low, high) = xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let x = |v: f64| LEFT + width * (v - low) / (high - low);
    let y = |v: f64| top + height * (1.0 - (v - panel.y_range.0) / (panel.y_range.1 - panel.y_range.0));
    let _ = writeln!(
        out,
        "<clipPath id=\"c{index}\"><rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
    );
    let _ =
        writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>", top - 12.0, escape(&panel.title));
    for tick in ticks(low, high) {
        let at = x(tick);
        let bottom = top + height;
        let _ = writeln!(out, "<path d=\"M{at:.1} {bottom:.1}v5\" stroke=\"#444\"/>");
        let _ = writeln!(
            out,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            number(tick)
        );
    }
    for tick in ticks(panel.y_range.0, panel.y_range.1) {
        let at = y(tick);
        let _ = writeln!(out, "<path d=\"M{LEFT} {at:.1}h{width}\" stroke=\"#e4e4e4\"/>");
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            number(tick)
        );
    }
    for (label, at) in &panel.marks {
        let _ = writeln!(out, "<path d=\"M{:.1} {top}v{height}\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>", x(*at));
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#444\">{}</text>",
            x(*at) + 4.0,
            top + 13.0,
            escape(label)
        );
    }
    for curve in &panel.curves {
        let mut path = String::new();
        for (k, (px, py)) in curve.points.iter().enumerate() {
            let _ = write!(path, "{}{:.2} {:.2}", if k == 0 { "M" } else { "L" }, x(*px), y(*py).clamp(-1e4, 1e4));
        }
        let (line, dash, opacity) = style(curve.stroke);
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{line}\"{dash} opacity=\"{opacity}\" clip-path=\"url(#c{index})\"/>",
            curve.colour
        );
    }
    let _ = writeln!(
        out,
        "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#444\"/>"
    );
    let middle = LEFT + width / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        top + height + 36.0,
        escape(&panel.x_label)
    );
    let (side, centre) = (18.0, top + height / 2.0);
    let _ = writeln!(
        out,
        "<text x=\"{side}\" y=\"{centre:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {side} {centre:.1})\">{}</text>",
        escape(&panel.y_label)
    );
    legend(out, panel, top);
}

fn legend(out: &mut String, panel: &Panel, top: f64) {
    let left = WIDTH - RIGHT + 16.0;
    let mut at = top + 10.0;
    for curve in &panel.curves {
        let (line, dash, opacity) = style(curve.stroke);
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}h26\" stroke=\"{}\" stroke-width=\"{line}\"{dash} opacity=\"{opacity}\"/>",
            curve.colour
        );
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\">{}</text>", left + 34.0, at + 4.0, escape(&curve.name));
        at += 20.0;
    }
}

fn style(stroke: Stroke) -> (f64, &'static str, f64) {
    match stroke {
        Stroke::Full => (2.0, "", 1.0),
        Stroke::Dashed => (1.8, " stroke-dasharray=\"6 4\"", 1.0),
        Stroke::Pale => (5.0, "", 0.35),
    }
}

/// Round numbers between two ends, about five of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

fn number(v: f64) -> String {
    let text = format!("{v:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(-4.0, 4.0), [-4.0, -2.0, 0.0, 2.0, 4.0]);
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(number(0.6000000000000001), "0.6");
    }

    #[test]
    fn names_are_escaped() {
        let panel = Panel { title: "<b>&".into(), y_range: (0.0, 1.0), ..Panel::default() };
        assert!(svg(&[panel]).contains("&lt;b&gt;&amp;"));
    }
}
