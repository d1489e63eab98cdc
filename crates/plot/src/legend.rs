//! The legend: above the data, never on them.

use crate::{
    draw::marker,
    layer::Layer,
    style::{Paint, Style},
    svg::{Element, Svg, breadth},
};

pub(crate) const SIZE: f64 = 12.0;
pub(crate) const ROW: f64 = 20.0;
const SWATCH: f64 = 24.0;
const GAP: f64 = 18.0;

/// A line of the legend.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    name: &'a str,
    layer: &'a Layer,
}

/// The named layers, each once.
pub(crate) fn entries<'a>(layers: impl Iterator<Item = &'a Layer>) -> Vec<Entry<'a>> {
    let mut found: Vec<Entry<'_>> = Vec::new();
    for layer in layers {
        if let Some(name) = layer.key().0
            && !found.iter().any(|e| e.name == name && e.layer.key().1 == layer.key().1)
        {
            found.push(Entry { name, layer });
        }
    }
    found
}

/// Where each entry stands: rows as full as `width` allows.
fn places(entries: &[Entry<'_>], width: f64) -> (Vec<(f64, f64)>, usize) {
    let (mut x, mut row, mut places) = (0.0, 0, Vec::new());
    for entry in entries {
        let needed = SWATCH + 6.0 + breadth(entry.name, SIZE);
        if x > 0.0 && x + needed > width {
            (x, row) = (0.0, row + 1);
        }
        places.push((x, row as f64 * ROW));
        x += needed + GAP;
    }
    (places, if entries.is_empty() { 0 } else { row + 1 })
}

/// How high the legend is.
pub(crate) fn height(entries: &[Entry<'_>], width: f64) -> f64 {
    let rows = places(entries, width).1;
    if rows == 0 { 0.0 } else { rows as f64 * ROW + 4.0 }
}

/// Draws it with its upper left corner at `(left, top)`.
pub(crate) fn draw(svg: &mut Svg, entries: &[Entry<'_>], left: f64, top: f64, width: f64) {
    for (entry, (x, y)) in entries.iter().zip(places(entries, width).0) {
        let (x, y) = (left + x, top + y + ROW / 2.0);
        swatch(svg, entry.layer, x, y);
        let text = Element::new("text").fill(Paint::Ink).number("x", x + SWATCH + 6.0).number("y", y + 4.0);
        svg.add(text.text(entry.name));
    }
}

fn swatch(svg: &mut Svg, layer: &Layer, x: f64, y: f64) {
    let style = layer.key().1;
    let paint = Paint::Colour(style.colour);
    let line = |style: Style| {
        let path = Element::new("path").stroke(paint).set("d", format!("M{x} {y}h{SWATCH}"));
        let path = path.number("stroke-width", style.width).number("stroke-opacity", style.opacity);
        match style.dash.pattern() {
            Some(pattern) => path.set("stroke-dasharray", pattern),
            None => path,
        }
    };
    let block = || {
        Element::new("rect")
            .fill(paint)
            .number("x", x)
            .number("y", y - 6.0)
            .number("width", SWATCH)
            .number("height", 12.0)
            .number("fill-opacity", style.opacity)
    };
    match layer {
        Layer::Line(l) => {
            svg.add(line(style));
            if l.marked {
                svg.add(marker(style, &[(x + SWATCH / 2.0, y)]));
            }
        }
        Layer::Rule(_) => svg.add(line(style)),
        Layer::Errors(_) => {
            svg.add(line(Style { width: 1.5, dash: crate::Dash::Solid, ..style }));
            svg.add(marker(style, &[(x + SWATCH / 2.0, y)]));
        }
        Layer::Points(_) => svg.add(marker(style, &[(x + SWATCH / 2.0, y)])),
        Layer::Band(_) | Layer::Bars(_) | Layer::Segments(_) => svg.add(block()),
        Layer::Density(_) => svg.add(block().stroke(paint)),
    }
}
