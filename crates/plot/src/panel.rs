//! One chart in its place: title, legend, ticks, layers, frame.

use std::fmt::Write as _;

use crate::{
    axis::Kind,
    chart::Chart,
    draw::{Frame, layer},
    figure::FONT,
    layer::Layer,
    layout::{LONGEST, Place, sides, x_ticks, y_ticks},
    legend,
    scale::Scale,
    style::Paint,
    svg::{Element, Svg, breadth, pixel},
};

/// Draws a chart; `id` tells its clipping region from all others.
pub(crate) fn draw_chart(svg: &mut Svg, chart: &Chart, place: &Place, id: &str, with_legend: bool) {
    let Place { left, top, width, height, head } = *place;
    let (right, bottom) = (left + width, top + height);
    // The first category is at the top.
    let (floor, ceiling) = if matches!(chart.y.kind, Kind::Categories(_)) { (top, bottom) } else { (bottom, top) };
    let frame = Frame {
        x_axis: &chart.x,
        y_axis: &chart.y,
        x: Scale::new(&chart.x, chart.x_range(), left, right),
        y: Scale::new(&chart.y, chart.y_range(), floor, ceiling),
    };
    if !chart.title.is_empty() {
        let title = Element::new("text").fill(Paint::Ink).number("x", left).number("y", head + 17.0);
        svg.add(title.set("font-weight", "600").text(&chart.title));
    }
    if with_legend {
        let below = head + if chart.title.is_empty() { 4.0 } else { 24.0 };
        legend::draw(svg, &legend::entries(chart.layers.iter()), left, below, width);
    }
    draw_ticks(svg, chart, &frame, place);
    let clip = format!("clip-{id}");
    let _ = writeln!(
        svg.text,
        "<clipPath id=\"{clip}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n<g clip-path=\"url(#{clip})\">",
        pixel(left),
        pixel(top),
        pixel(width),
        pixel(height)
    );
    for each in &chart.layers {
        layer(svg, &frame, each);
    }
    svg.text.push_str("</g>\n");
    draw_rule_labels(svg, chart, &frame, place);
    let rect = Element::new("rect").stroke(Paint::Soft).set("stroke-width", "0.8").number("x", left).number("y", top);
    svg.add(rect.number("width", width).number("height", height).set("pointer-events", "none"));
    if chart.x.written && !chart.x.text().is_empty() {
        let text = Element::new("text").fill(Paint::Ink).set("text-anchor", "middle").number("x", left + width / 2.0);
        svg.add(text.number("y", bottom + 36.0).text(&fitted(&chart.x.text(), width.max(100.0))));
    }
    if chart.y.written && !chart.y.text().is_empty() {
        let (x, y) = (left - sides(chart, width, height).0 + 16.0, top + height / 2.0);
        let text = Element::new("text").fill(Paint::Ink).set("text-anchor", "middle").number("x", x).number("y", y);
        let text = text.set("transform", format!("rotate(-90 {} {})", pixel(x), pixel(y)));
        svg.add(text.text(&fitted(&chart.y.text(), height.max(60.0))));
    }
}

fn draw_ticks(svg: &mut Svg, chart: &Chart, frame: &Frame<'_>, place: &Place) {
    let Place { left, top, width, height, .. } = *place;
    let bottom = top + height;
    let (mut grid, mut major, mut minor) = (String::new(), String::new(), String::new());
    let mut texts = Vec::new();
    if chart.x.ticked {
        for tick in x_ticks(chart, width) {
            let Some(x) = frame.x.at(tick.at) else { continue };
            let Some(label) = tick.label else {
                let _ = write!(minor, "M{} {}v3", pixel(x), pixel(bottom));
                continue;
            };
            let _ = write!(major, "M{} {}v5", pixel(x), pixel(bottom));
            let _ = write!(grid, "M{} {}v{}", pixel(x), pixel(top), pixel(height));
            texts.push((x, bottom + 18.0, "middle", label, chart.x.written));
        }
    }
    if chart.y.ticked {
        for tick in y_ticks(chart, height) {
            let Some(y) = frame.y.at(tick.at) else { continue };
            let Some(label) = tick.label else {
                let _ = write!(minor, "M{} {}h-3", pixel(left), pixel(y));
                continue;
            };
            let _ = write!(major, "M{} {}h-5", pixel(left), pixel(y));
            let _ = write!(grid, "M{} {}h{}", pixel(left), pixel(y), pixel(width));
            texts.push((left - 8.0, y + 4.0, "end", label, chart.y.written));
        }
    }
    for (path, paint, width) in [(grid, Paint::Grid, "1"), (major, Paint::Soft, "0.8"), (minor, Paint::Soft, "0.6")] {
        if !path.is_empty() {
            svg.add(Element::new("path").stroke(paint).set("stroke-width", width).set("d", path));
        }
    }
    for (x, y, anchor, label, _) in texts.into_iter().filter(|t| t.4) {
        let text = Element::new("text").fill(Paint::Soft).set("text-anchor", anchor).number("x", x).number("y", y);
        svg.add(text.text(&fitted(&label, LONGEST)));
    }
}

fn draw_rule_labels(svg: &mut Svg, chart: &Chart, frame: &Frame<'_>, place: &Place) {
    for each in &chart.layers {
        let Layer::Rule(rule) = each else { continue };
        let Some(label) = &rule.label else { continue };
        let scale = if rule.vertical { &frame.x } else { &frame.y };
        let (low, high) = (scale.ends().0.min(scale.ends().1), scale.ends().0.max(scale.ends().1));
        let Some(at) = scale.at(rule.at).filter(|at| *at >= low && *at <= high) else { continue };
        let text = Element::new("text").fill(Paint::Soft);
        let text = if rule.vertical {
            text.number("x", at).number("y", place.top - 4.0).set("text-anchor", "middle")
        } else {
            text.number("x", place.left + place.width + 5.0).number("y", at + 4.0)
        };
        svg.add(text.text(label));
    }
}

/// A text cut to a breadth, with an ellipsis where it was cut.
fn fitted(text: &str, most: f64) -> String {
    if breadth(text, FONT) <= most {
        return text.into();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if breadth(&cut, FONT) + 2.0 * FONT > most {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}
