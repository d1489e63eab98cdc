//! Every kind of layer, to be looked at: `cargo run -p batchquad-plot --example gallery > gallery.svg`.

use batchquad_plot::{Axis, Band, Bars, Chart, Density, Errors, Figure, Line, Points, Rule, Segment, Segments};

fn main() {
    let rounds: Vec<f64> = (1..25).map(|i| 8.0 * f64::from(i)).collect();
    let estimate = |x: f64| -14.0 + 3.0 * (-x / 25.0).exp() * (x / 9.0).cos();
    let sd = |x: f64| 2.0 * (-x / 40.0).exp() + 0.02;
    let convergence = Chart::new(Axis::linear("evaluations"), Axis::linear("log Z").unit("nats"))
        .title("Line, bands and a rule")
        .with(
            Band::new(rounds.iter().map(|x| (*x, estimate(*x) - 2.0 * sd(*x), estimate(*x) + 2.0 * sd(*x))))
                .opacity(0.12)
                .named("± 2 sd"),
        )
        .with(Band::new(rounds.iter().map(|x| (*x, estimate(*x) - sd(*x), estimate(*x) + sd(*x)))).named("± 1 sd"))
        .with(Line::new(rounds.iter().map(|x| (*x, estimate(*x)))).named("estimate"))
        .with(Rule::horizontal(-14.02).style(1).named("known").label("−14.02"));
    let decays = Chart::new(Axis::logarithmic("seconds"), Axis::logarithmic("relative error"))
        .title("Styles on logarithmic axes")
        .with_all((0..6).map(|k| {
            let points = (0..12).map(move |i| {
                let x = 10f64.powf(f64::from(i) / 4.0);
                (x, x.powf(-0.3 - 0.15 * k as f64))
            });
            Line::new(points).style(k).marked().width(1.5).named(format!("method {k}"))
        }));
    let grid: Vec<f64> = (0..60).map(|i| -3.0 + 0.1 * f64::from(i)).collect();
    let banana = |x: f64, y: f64| (-0.5 * (x * x + 4.0 * (y - 0.5 * x * x + 1.0).powi(2))).exp();
    let values: Vec<f64> = grid.iter().flat_map(|x| grid.iter().map(move |y| banana(*x, *y))).collect();
    let density = Chart::new(Axis::linear("x"), Axis::linear("y"))
        .title("Density, points")
        .with(Density::new(grid.clone(), grid, values).shares(&[0.39, 0.86, 0.99]).named("posterior"))
        .with(Points::new((0..20).map(|i| (f64::from(i % 5) - 2.0, f64::from(i / 5) - 1.5))).style(4).named("nodes"));
    let histogram = Chart::new(Axis::linear("z"), Axis::linear("count")).title("Bars").with(
        Bars::new(
            (-8..8).map(|i| (0.5 * f64::from(i), 0.5 * f64::from(i + 1), 40.0 * (-0.125 * f64::from(i * i)).exp())),
        )
        .colour(2),
    );
    let segments = |row: u32, k: usize| {
        Segments::new((0..6).map(|i| {
            let start = f64::from(i) * 1.6 + 0.2 * f64::from(row);
            Segment { row: f64::from(row), start, end: start + 1.3 - 0.1 * f64::from(row), tip: format!("job {i}") }
        }))
        .colour(k)
    };
    let timeline =
        Chart::new(Axis::linear("time").unit("s"), Axis::categories("", ["worker 1", "worker 2", "worker 3"]))
            .title("Timeline")
            .with_all([segments(0, 0), segments(1, 0), segments(2, 1)]);
    let forest =
        Chart::new(Axis::linear("log Z"), Axis::categories("", ["linear", "quadratic", "a cubic with a long name"]))
            .title("Error bars")
            .with(Errors::new([(0.0, -3.0, -2.5, -2.0), (1.0, -1.8, -1.7, -1.6), (2.0, -2.4, -2.1, -1.8)]).horizontal())
            .with(Rule::vertical(-1.7).label("best"));
    let charts = [convergence, decays, density, histogram, timeline, forest];
    print!("{}", Figure::wrapped("a gallery", 2, charts).width(1100.0).panel_height(260.0).standalone());
}
