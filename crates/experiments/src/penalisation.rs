//! Figure 1 of the paper: how local penalisation cuts an acquisition function, drawn from the library's own pieces.

use anyhow::Result;
use batchquad::{
    Points,
    belief::{Gaussian, Model, SquaredExponential, Surrogate},
    choose::{Acquisition, Cone, Penalisation, Search, SoftMinimum, Uncertainty, log_lipschitz, select},
    numeric::{Jitter, Order, Purpose, Stream},
};

use batchquad_plot::{Axis, Chart, Dash, Figure, Line, Rule};

use crate::{
    output::{Output, csv},
    plan::Plan,
    runs::Workshop,
};

/// What the figure shows, on a grid; heights are relative to the acquisition's maximum.
pub struct Penalised {
    /// Where.
    pub x: Vec<f64>,
    /// The acquisition.
    pub acquisition: Vec<f64>,
    /// The cones, one a chosen point.
    pub cones: Vec<Vec<f64>>,
    /// The smallest of them all at each place.
    pub hard: Vec<f64>,
    /// Their soft minimum.
    pub soft: Vec<f64>,
    /// The chosen points: two with cones, and the third that is chosen next.
    pub chosen: Vec<f64>,
}

/// A belief in one dimension from a few values, and a batch of three chosen from it.
///
/// # Errors
/// Those of the library.
pub fn penalised() -> Result<Penalised> {
    let nodes = Points::new(1, vec![-2.2, -0.9, 0.1, 1.2, 2.4])?;
    let log_values = [-2.5, -0.3, -1.2, 0.0, -2.8];
    let kernel = SquaredExponential::isotropic(1.0, 0.55, 1)?;
    let lengthscales = kernel.lengthscales().to_vec();
    let measure = Gaussian::standard(1)?.into();
    let belief = Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &log_values, kernel, Jitter::default())?;
    let acquisition = Uncertainty::new(&belief);
    let constants = Penalisation::PAPER;
    let batch = select(&constants, &belief, &Points::new(1, vec![])?, 3, Search::default())?;
    let chosen = batch.points.as_slice().to_vec();
    let mut cones = Vec::new();
    for (k, x) in chosen.iter().take(2).enumerate() {
        let mut stream = Stream::new(0, Purpose::Experiment, k as u64);
        let lipschitz = log_lipschitz(&acquisition, &[*x], &lengthscales, &mut stream)?;
        cones.push(Cone { centre: vec![*x], log_slope: constants.slope.ln() + lipschitz });
    }
    let x: Vec<f64> = (0..=1200).map(|i| -3.6 + 7.2 * f64::from(i) / 1200.0).collect();
    let grid = Points::new(1, x.clone())?;
    let logs = acquisition.log_jets(&grid, Order::Value)?.value;
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let relative = |logs: &[f64]| -> Vec<f64> { logs.iter().map(|l| (l - top).exp()).collect() };
    let cone_logs: Vec<Vec<f64>> =
        cones.iter().map(|c| x.iter().map(|x| c.log_value(&[*x], &lengthscales)).collect()).collect();
    let hard: Vec<f64> = (0..x.len()).map(|i| cone_logs.iter().map(|c| c[i]).fold(logs[i], f64::min)).collect();
    let soft =
        SoftMinimum { acquisition: &acquisition, cones: &cones, power: constants.power, lengthscales: &lengthscales };
    let soft = soft.log_jets(&grid, Order::Value)?.value;
    Ok(Penalised {
        acquisition: relative(&logs),
        cones: cone_logs.iter().map(|c| relative(c)).collect(),
        hard: relative(&hard),
        soft: relative(&soft),
        chosen,
        x,
    })
}

/// The three panels of the figure.
#[must_use]
pub fn figure(data: &Penalised) -> Figure {
    let curve = |name: &str, y: &[f64]| Line::new(data.x.iter().copied().zip(y.iter().copied())).named(name);
    let chart = |title: &str, chosen: usize| {
        let marks = data.chosen.iter().take(chosen).enumerate();
        Chart::new(
            Axis::linear("x (prior standard deviations); dotted: chosen points in order"),
            Axis::linear("acquisition (relative)").range(0.0, 1.1),
        )
        .title(title)
        .with_all(marks.map(|(k, x)| Rule::vertical(*x).label((k + 1).to_string()).dash(Dash::Dotted)))
    };
    let behind = || curve("acquisition", &data.acquisition).style(0).dash(Dash::Solid).width(5.0).opacity(0.35);
    let cone = |k: usize| curve(&format!("Lipschitz cone {}", k + 1), &data.cones[k]).style(1 + k).dash(Dash::Dashed);
    Figure::column(
        "An acquisition function, the Lipschitz cones of two chosen points, their hard and their soft minimum",
        [
            chart("Acquisition and the cones of two chosen points", 2)
                .with(curve("acquisition", &data.acquisition).style(0))
                .with(cone(0))
                .with(cone(1)),
            chart("The hard minimum has kinks where they meet", 2)
                .with(behind())
                .with(curve("hard minimum", &data.hard).style(3).dash(Dash::Solid)),
            chart("The soft minimum (p = −6) is smooth away from the tips; its top is chosen next", 3)
                .with(behind())
                .with(curve("soft minimum", &data.soft).style(2).dash(Dash::Solid)),
        ],
    )
}

/// The curves as CSV.
fn to_csv(data: &Penalised) -> Result<String> {
    let head = ["x", "acquisition", "cone_1", "cone_2", "hard_minimum", "soft_minimum"];
    let row =
        |i: usize| [data.x[i], data.acquisition[i], data.cones[0][i], data.cones[1][i], data.hard[i], data.soft[i]];
    csv(&head, (0..data.x.len()).map(row))
}

/// Draws the figure and writes the curves behind it.
///
/// # Errors
/// Those of the library, or when a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let data = penalised()?;
    let output = Output::new(workshop, "penalisation")?;
    output.csv("curves", &to_csv(&data)?)?;
    output.summary(plan, 1, &serde_json::json!({ "chosen": data.chosen }))?;
    output.figure("penalisation", &figure(&data))?;
    Ok(output.said())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_shows_what_the_paper_says() {
        let data = penalised().unwrap();
        let bound = 3.0_f64.powf(-1.0 / 6.0);
        for i in 0..data.x.len() {
            assert!(
                data.soft[i] <= data.hard[i] * (1.0 + 1e-12) && data.soft[i] >= bound * data.hard[i] * (1.0 - 1e-12)
            );
        }
        // The third point is the top of the soft minimum.
        let best = (0..data.x.len()).max_by(|&a, &b| data.soft[a].total_cmp(&data.soft[b])).unwrap();
        assert!((data.x[best] - data.chosen[2]).abs() < 0.02, "{} {:?}", data.x[best], data.chosen);
        assert!(figure(&data).standalone().matches("<path").count() > 8);
    }
}
