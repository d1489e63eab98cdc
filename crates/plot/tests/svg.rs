//! The text of figures, read back by an XML parser that is not ours.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad_plot::{Axis, Band, Bars, Chart, Density, Errors, Figure, Line, Marker, Points, Rule, Segment, Segments};
use roxmltree::{Document, Node};

/// Both texts of a figure, after the checks that hold for every figure.
fn texts(figure: &Figure) -> [String; 2] {
    let both = [figure.standalone(), figure.inline("f")];
    for text in &both {
        let document = Document::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for node in document.descendants().filter(Node::is_element) {
            for attribute in node.attributes() {
                let value = attribute.value();
                if ["aria-label", "class", "id"].contains(&attribute.name()) {
                    continue;
                }
                assert!(!value.contains("NaN") && !value.contains("inf") && !value.contains("Infinity"), "{value}");
                assert_ne!(attribute.name(), "style", "a strict content security policy forbids it");
            }
        }
    }
    assert_eq!(both, [figure.standalone(), figure.inline("f")], "the same figure is the same text");
    both
}

fn numbers(text: &str) -> Vec<f64> {
    let split = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    text.split(split).filter(|w| !w.is_empty()).map(|w| w.parse().unwrap()).collect()
}

/// The paths inside the clipped group, by the numbers of their data.
fn paths(text: &str) -> Vec<Vec<f64>> {
    let document = Document::parse(text).unwrap();
    let clipped = |n: &Node<'_, '_>| n.ancestors().any(|a| a.attribute("clip-path").is_some());
    let found: Vec<Vec<f64>> = document
        .descendants()
        .filter(|n| n.has_tag_name("path") && clipped(n))
        .map(|n| numbers(n.attribute("d").unwrap()))
        .collect();
    found
}

/// The frame of the only chart: left, top, width, height.
fn frame(text: &str) -> [f64; 4] {
    let document = Document::parse(text).unwrap();
    let clip = document.descendants().find(|n| n.has_tag_name("clipPath")).unwrap();
    let rect = clip.first_element_child().unwrap();
    ["x", "y", "width", "height"].map(|k| rect.attribute(k).unwrap().parse().unwrap())
}

#[test]
fn values_stand_where_linear_and_logarithmic_axes_say() {
    let points = [(0.0, 1.0), (5.0, 10.0), (10.0, 1000.0)];
    let chart = Chart::new(Axis::linear("x").range(0.0, 10.0), Axis::logarithmic("y").range(1.0, 1000.0));
    for text in texts(&Figure::new("a line", chart.with(Line::new(points)))) {
        let [left, top, width, height] = frame(&text);
        let line = &paths(&text)[0];
        let expected =
            [(left, top + height), (left + width / 2.0, top + height * (1.0 - 1.0 / 3.0)), (left + width, top)];
        for (k, (x, y)) in expected.into_iter().enumerate() {
            // Coordinates are written with two decimals.
            assert!((line[2 * k] - x).abs() < 0.011 && (line[2 * k + 1] - y).abs() < 0.011, "{line:?} {expected:?}");
        }
    }
}

#[test]
fn what_cannot_be_shown_breaks_a_line_and_never_reaches_the_text() {
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1.0, 0.0, 5e-324];
    for axis in [Axis::linear("y"), Axis::logarithmic("y")] {
        let points: Vec<(f64, f64)> = (0..20)
            .map(|i| (f64::from(i), if i % 5 == 3 { bad[i as usize / 5] } else { 1.0 + f64::from(i) }))
            .collect();
        let xs = || points.iter().map(|p| p.0);
        let chart = Chart::new(Axis::linear("x"), axis)
            .with(Line::new(points.clone()).marked())
            .with(Line::new(points.iter().map(|(x, y)| (*y, *x))).steps())
            .with(Band::new(points.iter().map(|(x, y)| (*x, y - 1.0, *y))))
            .with(Band::new(xs().map(|x| (x, f64::NEG_INFINITY, f64::INFINITY))))
            .with(Points::new(points.clone()))
            .with(Errors::new(points.iter().map(|(x, y)| (*x, y - 1.0, *y, f64::INFINITY))))
            .with(Errors::new(points.iter().map(|(x, y)| (*x, f64::NAN, *y, y + 1.0))).horizontal())
            .with(Bars::new(points.iter().map(|(x, y)| (x - 0.5, x + 0.5, *y))))
            .with(Rule::vertical(f64::NAN).label("nowhere"))
            .with(Segments::new(points.iter().map(|(x, y)| Segment { row: *y, start: *x, end: *y, tip: "t".into() })))
            .with(
                Density::new(vec![1.0, 2.0, 4.0], vec![1.0, 2.0], vec![f64::NAN, 1.0, 2.0, f64::INFINITY, 0.5, 0.1])
                    .shares(&[0.5, 0.9]),
            );
        let [standalone, _] = texts(&Figure::new("hostile numbers", chart));
        let document = Document::parse(&standalone).unwrap();
        let line = document.descendants().find(|n| n.attribute("stroke-width") == Some("2")).unwrap();
        assert_eq!(line.attribute("d").unwrap().matches('M').count(), 4 + 1, "four bad values cut it into five");
    }
}

#[test]
fn every_text_is_escaped() {
    let evil = "</svg><script>alert(1)</script>\"'&\u{1b}[31m\u{0}";
    let chart = Chart::new(Axis::linear(evil).unit(evil), Axis::categories(evil, [evil, evil]))
        .title(evil)
        .with(Line::new([(0.0, 0.0), (1.0, 1.0)]).named(evil))
        .with(Points::new([(0.5, 1.0)]).tips([evil]).named(evil).style(1))
        .with(Errors::new([(0.5, 0.0, 0.5, 1.0)]).tips([evil]))
        .with(Bars::of_categories([0.2]).tips([evil]))
        .with(Rule::horizontal(0.5).label(evil).named(evil))
        .with(Rule::vertical(0.5).label(evil))
        .with(Segments::new([Segment { row: 0.0, start: 0.0, end: 1.0, tip: evil.into() }]));
    let figure = Figure::new(evil, chart);
    for text in texts(&figure) {
        assert!(!text.contains("<script") && !text.contains('\u{1b}'));
        let document = Document::parse(&text).unwrap();
        assert!(document.descendants().any(|n| n.text().is_some_and(|t| t.contains("<script>alert(1)"))));
    }
    assert!(figure.inline("a\"b><c").contains("id=\"abc\""));
}

#[test]
fn empty_charts_single_points_and_empty_grids_are_drawn() {
    let axes = || Chart::new(Axis::linear("x"), Axis::logarithmic("y"));
    let figures = [
        Figure::new("nothing", axes()),
        Figure::new("a point", axes().with(Line::new([(1.0, 1.0)]).named("lonely"))),
        Figure::new("no points", axes().with(Points::new([])).with(Band::new([])).with(Bars::new([]))),
        Figure::new("a band of one", axes().with(Band::new([(1.0, 0.5, 2.0)]))),
        Figure::grid("no charts", vec![]),
        Figure::grid("holes", vec![vec![None, None], vec![Some(axes())], vec![]]).shared_axes(),
        Figure::new("no categories", Chart::new(Axis::linear("x"), Axis::categories("y", Vec::<String>::new()))),
        Figure::new("a density of nothing", axes().with(Density::new(vec![], vec![], vec![]).shares(&[0.5]))),
        Figure::corner("no parameters", 0, |_| axes(), |_, _| axes()),
    ];
    for figure in &figures {
        let [text, _] = texts(figure);
        assert!(text.contains("viewBox"));
    }
    // A point without neighbours is seen.
    assert_eq!(paths(&figures[1].standalone()).len(), 2);
}

#[test]
fn the_legend_stands_above_the_frame() {
    let names = ["one", "a second one with a long name", "three", "and a fourth that needs another row", "five", "six"];
    let chart = Chart::new(Axis::linear("x"), Axis::linear("y"))
        .title("Title")
        .with_all((0..6).map(|k| Line::new([(0.0, 0.0), (1.0, k as f64)]).named(names[k]).style(k)));
    for text in texts(&Figure::new("legend", chart.clone()).width(420.0)) {
        let top = frame(&text)[1];
        let document = Document::parse(&text).unwrap();
        let mut rows: Vec<f64> = Vec::new();
        for name in names {
            let node = document.descendants().find(|n| n.has_tag_name("text") && n.text() == Some(name)).unwrap();
            rows.push(node.attribute("y").unwrap().parse().unwrap());
        }
        assert!(rows.iter().all(|y| *y < top - 2.0), "{rows:?} {top}");
        rows.dedup();
        assert!(rows.len() > 1, "{rows:?}");
    }
    let twice = Figure::column("shared", [chart.clone(), chart]).one_legend().shared_axes();
    assert_eq!(twice.standalone().matches(">three<").count(), 1);
}

#[test]
fn a_corner_plot_writes_its_axes_once() {
    let names = ["alpha", "beta", "gamma"];
    let axis = |i: usize| Axis::linear(names[i]).range(0.0, 1.0 + i as f64);
    let line = || Line::new([(0.0, 0.0), (1.0, 1.0)]);
    let figure = Figure::corner(
        "corner",
        3,
        |i| Chart::new(axis(i), Axis::linear("density")).with(line()),
        |i, j| Chart::new(axis(j), axis(i)).with(line()),
    );
    let [text, _] = texts(&figure);
    assert_eq!(text.matches("<clipPath").count(), 6);
    assert_eq!(names.map(|n| text.matches(&format!(">{n}<")).count()), [1, 2, 2]);
    assert!(!text.contains(">density<"));
    // Frames of a column are aligned, and all are square.
    let document = Document::parse(&text).unwrap();
    let rects: Vec<[f64; 4]> = document
        .descendants()
        .filter(|n| n.has_tag_name("clipPath"))
        .map(|n| {
            ["x", "y", "width", "height"]
                .map(|k| n.first_element_child().unwrap().attribute(k).unwrap().parse().unwrap())
        })
        .collect();
    assert!(rects.iter().all(|r| (r[2] - r[3]).abs() < 1e-9));
    assert_eq!(rects[0][0], rects[1][0]);
    assert_eq!(rects[1][0], rects[3][0]);
}

#[test]
fn shares_of_a_normal_density_are_its_ellipses() {
    // On a grid that is finer in the middle; the region of share p of a standard normal is the disc r² = −2 log(1 − p).
    let grid: Vec<f64> =
        (0..161).map(|i| (f64::from(i) / 80.0 - 1.0) * 5.0).map(|v: f64| v * v.abs().sqrt() / 2.0).collect();
    let values: Vec<f64> = grid.iter().flat_map(|x| grid.iter().map(move |y| (-0.5 * (x * x + y * y)).exp())).collect();
    let chart = Chart::new(Axis::linear("x").range(-4.0, 4.0), Axis::linear("y").range(-4.0, 4.0))
        .with(Density::new(grid.clone(), grid, values).shares(&[0.5, 0.9]));
    let [text, _] = texts(&Figure::new("normal", chart).squares());
    let [left, _, width, _] = frame(&text);
    let found = paths(&text);
    assert_eq!(found.len(), 2);
    for (path, share) in found.iter().zip([0.9_f64, 0.5]) {
        let xs: Vec<f64> = path.iter().step_by(2).copied().collect();
        let breadth = xs.iter().copied().fold(f64::MIN, f64::max) - xs.iter().copied().fold(f64::MAX, f64::min);
        let expected = 2.0 * (-2.0 * (1.0 - share).ln()).sqrt() * width / 8.0;
        // The level is that of a grid point: one cell off at most.
        assert!((breadth / expected - 1.0).abs() < 0.03, "{breadth} {expected} {left}");
    }
}

#[test]
fn many_points_are_one_path_and_few_have_values() {
    let chart = |n: u32| {
        let points = (0..n).map(|i| (f64::from(i), f64::from(i * i)));
        Chart::new(Axis::linear("x"), Axis::linear("y").unit("s")).with(Points::new(points).marker(Marker::Square))
    };
    let few = Figure::new("few", chart(3)).inline("f");
    assert!(few.contains("<title>x: 2\ny: 4 s</title>"), "{few}");
    let many = Figure::new("many", chart(5000)).inline("f");
    assert!(!many.contains("<title>") && many.len() < 5000 * 40, "{}", many.len());
}

#[test]
fn inline_figures_are_labelled_and_have_no_colours_of_their_own() {
    let chart = Chart::new(Axis::linear("x"), Axis::linear("y")).with(Line::new([(0.0, 0.0), (1.0, 1.0)]));
    let text = Figure::new("what is shown", chart).inline("trace");
    let document = Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("role"), root.attribute("aria-label")), (Some("img"), Some("what is shown")));
    assert!(document.descendants().all(|n| !n.attribute("stroke").is_some_and(|s| s.starts_with('#'))));
    let classes = |n: Node<'_, '_>| n.attribute("class").map(str::to_owned).unwrap_or_default();
    for class in document.descendants().map(classes).flat_map(|c| c.split(' ').map(str::to_owned).collect::<Vec<_>>()) {
        assert!(
            class.is_empty() || class == "plot" || batchquad_plot::STYLESHEET.contains(&format!(".{class}{{")),
            "{class}"
        );
    }
}
