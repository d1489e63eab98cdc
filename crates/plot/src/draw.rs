//! Layers as elements.

use std::fmt::Write as _;

use crate::{
    axis::Axis,
    contour::outlines,
    layer::Layer,
    marks::{Band, Bars, Density, Errors, Line, Points, Rule, Segments},
    number::compact,
    scale::Scale,
    style::{Marker, Paint, Style},
    svg::{Element, Mode, Svg, pixel},
};

/// More values than this are drawn without what hovering shows: nobody could point at one, and the text would be long.
const HOVER: usize = 400;

/// Digits of values shown on hovering.
const DIGITS: usize = 5;

/// The axes of a chart with their maps to pixels.
pub(crate) struct Frame<'a> {
    pub(crate) x_axis: &'a Axis,
    pub(crate) y_axis: &'a Axis,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Frame<'_> {
    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x.at(x)?, self.y.at(y)?))
    }

    /// Name and coordinates, one per line.
    fn tip(&self, name: Option<&str>, x: f64, y: &str) -> String {
        let line = |axis: &Axis, value: &str| {
            let unit = axis.unit.as_deref().map(|u| format!(" {u}")).unwrap_or_default();
            if axis.label.is_empty() { format!("{value}{unit}") } else { format!("{}: {value}{unit}", axis.label) }
        };
        let lines = [name.map(str::to_owned), Some(line(self.x_axis, &compact(x, DIGITS))), Some(line(self.y_axis, y))];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

/// Draws a layer.
pub(crate) fn layer(svg: &mut Svg, frame: &Frame<'_>, layer: &Layer) {
    match layer {
        Layer::Line(l) => line(svg, frame, l),
        Layer::Band(l) => band(svg, frame, l),
        Layer::Points(l) => points(svg, frame, l),
        Layer::Errors(l) => errors(svg, frame, l),
        Layer::Rule(l) => rule(svg, frame, l),
        Layer::Bars(l) => bars(svg, frame, l),
        Layer::Density(l) => density(svg, frame, l),
        Layer::Segments(l) => segments(svg, frame, l),
    }
}

fn stroked(style: Style, path: String) -> Element {
    let element = Element::new("path")
        .stroke(Paint::Colour(style.colour))
        .set("d", path)
        .number("stroke-width", style.width)
        .set("stroke-linejoin", "round");
    let element = if style.opacity < 1.0 { element.number("stroke-opacity", style.opacity) } else { element };
    match style.dash.pattern() {
        Some(pattern) => element.set("stroke-dasharray", pattern),
        None => element,
    }
}

fn line(svg: &mut Svg, frame: &Frame<'_>, line: &Line) {
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    let mut alone = Vec::new();
    let placed: Vec<Option<(f64, f64)>> = line.points.iter().map(|p| frame.at(*p)).collect();
    for (i, at) in placed.iter().enumerate() {
        if let Some((x, y)) = *at {
            let _ = match last {
                None => write!(path, "M{} {}", pixel(x), pixel(y)),
                Some(_) if line.steps => write!(path, "H{}V{}", pixel(x), pixel(y)),
                Some(_) => write!(path, "L{} {}", pixel(x), pixel(y)),
            };
            let lonely = last.is_none() && placed.get(i + 1).copied().flatten().is_none();
            if lonely {
                alone.push((x, y));
            }
        }
        last = *at;
    }
    if path.is_empty() {
        return;
    }
    svg.add(stroked(line.style, path));
    let shown: Vec<(f64, f64)> = placed.iter().copied().flatten().collect();
    // A point without neighbours would be invisible.
    let marks = if line.marked { &shown } else { &alone };
    if !marks.is_empty() {
        svg.add(marker(line.style, marks));
    }
    if svg.mode == Mode::Inline && shown.len() <= HOVER {
        for (value, at) in line.points.iter().zip(&placed) {
            if let Some((x, y)) = at {
                let target =
                    Element::new("circle").number("cx", *x).number("cy", *y).set("r", "6").set("fill-opacity", "0");
                svg.add(target.title(frame.tip(line.name.as_deref(), value.0, &compact(value.1, DIGITS))));
            }
        }
    }
}

fn band(svg: &mut Svg, frame: &Frame<'_>, band: &Band) {
    let place =
        |&(x, low, high): &(f64, f64, f64)| Some((frame.x.at(x)?, frame.y.at_or_end(low)?, frame.y.at_or_end(high)?));
    let placed: Vec<Option<(f64, f64, f64)>> = band.points.iter().map(place).collect();
    let mut path = String::new();
    for run in placed.split(Option::is_none) {
        let run: Vec<(f64, f64, f64)> = run.iter().copied().flatten().collect();
        // A single place is shown as a narrow column.
        let run = if let [(x, low, high)] = run[..] { vec![(x - 2.0, low, high), (x + 2.0, low, high)] } else { run };
        let there = run.iter().map(|p| (p.0, p.2));
        let back = run.iter().rev().map(|p| (p.0, p.1));
        for (i, (x, y)) in there.chain(back).enumerate() {
            let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, pixel(x), pixel(y));
        }
        if !run.is_empty() {
            path.push('Z');
        }
    }
    if !path.is_empty() {
        let style = band.style;
        svg.add(
            Element::new("path").fill(Paint::Colour(style.colour)).set("d", path).number("fill-opacity", style.opacity),
        );
    }
}

fn points(svg: &mut Svg, frame: &Frame<'_>, points: &Points) {
    let placed: Vec<(usize, (f64, f64))> =
        points.points.iter().enumerate().filter_map(|(i, p)| Some((i, frame.at(*p)?))).collect();
    if placed.is_empty() {
        return;
    }
    if points.cloud || placed.len() > HOVER {
        let all: Vec<(f64, f64)> = placed.iter().map(|p| p.1).collect();
        svg.add(marker(points.style, &all));
        return;
    }
    for (i, at) in placed {
        let (x, y) = points.points[i];
        let tip = points.tips.get(i).cloned();
        let tip = tip.unwrap_or_else(|| frame.tip(points.name.as_deref(), x, &compact(y, DIGITS)));
        svg.add(marker(points.style, &[at]).title(tip));
    }
}

fn errors(svg: &mut Svg, frame: &Frame<'_>, errors: &Errors) {
    let (across, along) = if errors.horizontal { (&frame.y, &frame.x) } else { (&frame.x, &frame.y) };
    for (i, &(at, low, value, high)) in errors.bars.iter().enumerate() {
        let (Some(a), Some(l), Some(h)) = (across.at(at), along.at_or_end(low), along.at_or_end(high)) else {
            continue;
        };
        let path = if errors.horizontal {
            format!(
                "M{} {a}H{}M{} {}v8M{} {}v8",
                pixel(l),
                pixel(h),
                pixel(l),
                pixel(a - 4.0),
                pixel(h),
                pixel(a - 4.0),
                a = pixel(a)
            )
        } else {
            format!(
                "M{a} {}V{}M{} {}h8M{} {}h8",
                pixel(l),
                pixel(h),
                pixel(a - 4.0),
                pixel(l),
                pixel(a - 4.0),
                pixel(h),
                a = pixel(a)
            )
        };
        let words = format!("{} ({} to {})", compact(value, DIGITS), compact(low, DIGITS), compact(high, DIGITS));
        let tip = errors.tips.get(i).cloned().unwrap_or_else(|| match &errors.name {
            Some(name) => format!("{name}\n{words}"),
            None => words,
        });
        let bar = Style { width: 1.5, dash: crate::Dash::Solid, ..errors.style };
        svg.add(stroked(bar, path).title(tip.clone()));
        if let Some(v) = along.at(value) {
            let centre = if errors.horizontal { (v, a) } else { (a, v) };
            svg.add(marker(Style { width: 3.0, ..errors.style }, &[centre]).title(tip));
        }
    }
}

fn rule(svg: &mut Svg, frame: &Frame<'_>, rule: &Rule) {
    let (along, across) = if rule.vertical { (&frame.x, &frame.y) } else { (&frame.y, &frame.x) };
    let Some(at) = along.at(rule.at) else { return };
    let (from, to) = across.ends();
    let path = if rule.vertical {
        format!("M{} {}V{}", pixel(at), pixel(from), pixel(to))
    } else {
        format!("M{} {}H{}", pixel(from), pixel(at), pixel(to))
    };
    let name = rule.name.as_deref().or(rule.label.as_deref()).map(|n| format!("{n}: ")).unwrap_or_default();
    svg.add(stroked(rule.style, path).title(format!("{name}{}", compact(rule.at, 8))));
}

fn bars(svg: &mut Svg, frame: &Frame<'_>, bars: &Bars) {
    for (i, &(left, right, height)) in bars.bars.iter().enumerate() {
        let edges = (frame.x.at(left), frame.x.at(right), frame.y.at(height), frame.y.at_or_end(0.0));
        let (Some(a), Some(b), Some(top), Some(foot)) = edges else { continue };
        let tip = bars
            .tips
            .get(i)
            .cloned()
            .unwrap_or_else(|| frame.tip(bars.name.as_deref(), 0.5 * (left + right), &compact(height, DIGITS)));
        let rect = Element::new("rect")
            .fill(Paint::Colour(bars.style.colour))
            .number("x", a.min(b))
            .number("y", top.min(foot))
            .number("width", (b - a).abs())
            .number("height", (top - foot).abs())
            .number("fill-opacity", bars.style.opacity);
        svg.add(rect.title(tip));
    }
}

fn density(svg: &mut Svg, frame: &Frame<'_>, density: &Density) {
    let Density { x, y, values, style, .. } = density;
    let mut levels = density.levels.clone();
    levels.sort_by(f64::total_cmp);
    for level in levels {
        let mut path = String::new();
        for outline in outlines(x, y, |i, j| values[i * y.len() + j], level) {
            for (k, at) in outline.iter().filter_map(|p| frame.at(*p)).enumerate() {
                // A tenth of a pixel is enough for an outline with many corners.
                let _ = write!(path, "{}{:.1} {:.1}", if k == 0 { 'M' } else { 'L' }, at.0, at.1);
            }
            path.push('Z');
        }
        if !path.is_empty() {
            let paint = Paint::Colour(style.colour);
            let region = Element::new("path").fill(paint).stroke(paint).set("d", path).set("fill-rule", "evenodd");
            svg.add(region.number("fill-opacity", style.opacity).number("stroke-width", style.width));
        }
    }
}

fn segments(svg: &mut Svg, frame: &Frame<'_>, segments: &Segments) {
    // Rows are one apart.
    let row = frame.y.at(1.0).zip(frame.y.at(0.0)).map_or(10.0, |(a, b)| (a - b).abs());
    let high = (0.7 * row).clamp(1.0, 22.0);
    for segment in &segments.segments {
        let (Some(a), Some(b), Some(y)) = (frame.x.at(segment.start), frame.x.at(segment.end), frame.y.at(segment.row))
        else {
            continue;
        };
        let rect = Element::new("rect")
            .fill(Paint::Colour(segments.style.colour))
            .stroke(Paint::Ground)
            .set("stroke-width", "0.5")
            .number("x", a.min(b))
            .number("y", y - high / 2.0)
            .number("width", (b - a).abs().max(1.0))
            .number("height", high)
            .number("fill-opacity", segments.style.opacity);
        svg.add(if segments.segments.len() <= 5 * HOVER { rect.title(&segment.tip) } else { rect });
    }
}

/// Markers of one style as one path; a style's width is their radius less one.
pub(crate) fn marker(style: Style, places: &[(f64, f64)]) -> Element {
    let r = style.width + 1.0;
    let mut path = String::new();
    for &(x, y) in places {
        let (x, y, d) = (x, y, 2.0 * r);
        let _ = match style.marker {
            Marker::Disc | Marker::Ring => {
                write!(path, "M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0", pixel(x - r), pixel(y))
            }
            Marker::Square => write!(path, "M{} {}h{d}v{d}h-{d}Z", pixel(x - r), pixel(y - r)),
            Marker::Triangle => {
                write!(path, "M{} {}l{r} {}h-{d}Z", pixel(x), pixel(y - 1.15 * r), pixel(1.9 * r))
            }
            Marker::Diamond => {
                let e = pixel(1.25 * r);
                write!(path, "M{} {}l{e} {e}l-{e} {e}l-{e} -{e}Z", pixel(x), pixel(y - 1.25 * r))
            }
            Marker::Cross => {
                write!(path, "M{} {}l{d} {d}m0 -{d}l-{d} {d}", pixel(x - r), pixel(y - r))
            }
            Marker::Plus => write!(path, "M{} {}h{d}m-{r} -{r}v{d}", pixel(x - r), pixel(y)),
        };
    }
    let paint = Paint::Colour(style.colour);
    let element = Element::new("path").set("d", path);
    match style.marker {
        Marker::Cross | Marker::Plus | Marker::Ring => {
            element.stroke(paint).set("stroke-width", "1.5").number("stroke-opacity", style.opacity)
        }
        _ => element.fill(paint).stroke(Paint::Ground).set("stroke-width", "0.5").number("fill-opacity", style.opacity),
    }
}
