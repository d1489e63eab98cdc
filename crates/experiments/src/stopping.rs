//! Error bars against errors, batch by batch, in all runs of the other experiments; and what a rule that believes them makes of it.

use std::ops::Range;

use anyhow::Result;
use batchquad::{
    belief::Model,
    prior::Distribution,
    run::{Reference, target_met},
};
use batchquad_plot::{Axis, Band, Chart, Dash, Figure, Line};
use serde::Serialize;

use crate::{
    ablation,
    arms::{self, Arm, Group},
    coverage::{Coverage, within, z_score},
    in_model,
    methods::{self, Method, beyond},
    model_evidence,
    output::Output,
    plan::Plan,
    runs::Workshop,
    stats::{mean, quantile},
    synthetic,
    table::{Table, number, percent, scientific},
    trace::{Judged, Reading},
};

/// Runs of a kind: their experiment, and what was read.
struct Family {
    name: String,
    groups: Vec<Group>,
}

impl Family {
    /// All readings after the initial designs.
    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.groups.iter().flat_map(|g| &g.traces).flatten().filter(|r| !r.initial)
    }

    fn judged(&self, which: Which) -> Vec<Judged> {
        self.readings().filter_map(|r| which.of(r)).collect()
    }
}

/// Whose error bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Stated,
    Linearised,
    Exact,
}

impl Which {
    const ALL: [(Self, &str); 3] =
        [(Self::Stated, "stated: with the jackknife"), (Self::Linearised, "WSABI-L"), (Self::Exact, "exact moments")];

    fn of(self, reading: &Reading) -> Option<Judged> {
        match self {
            Self::Stated => Some(reading.own),
            Self::Linearised => Some(reading.model),
            Self::Exact => reading.moments,
        }
    }
}

/// An experiment whose runs are looked at again.
struct Source {
    experiment: &'static str,
    arms: Vec<Arm>,
    seeds: Range<u64>,
}

impl Source {
    /// Of the arms those that believe in WSABI-L.
    fn new(experiment: &'static str, arms: impl IntoIterator<Item = Arm>, seeds: Range<u64>) -> Self {
        let arms = arms.into_iter().filter(|a| a.settings.surrogate == Model::WsabiL.into()).collect();
        Self { experiment, arms, seeds }
    }
}

/// All experiments that make runs of the library.
fn sources(plan: &Plan) -> Result<Vec<Source>> {
    let zoo = beyond().into_iter().flat_map(|p| Method::ALL.map(|m| m.arm(p, plan))).flatten();
    let ablation = ablation::arms(plan)?.into_iter().map(|(arm, _)| arm);
    Ok(vec![
        Source::new("in-model", in_model::arms(plan), plan.seeds(in_model::RUNS)),
        Source::new("synthetic", synthetic::arms(plan), plan.seeds(synthetic::RUNS)),
        Source::new("model-evidence", model_evidence::arms(plan), plan.seeds(model_evidence::RUNS)),
        Source::new("ablation", ablation, plan.seeds(ablation::RUNS)),
        Source::new("zoo", zoo, plan.seeds(methods::RUNS)),
    ])
}

/// Runs that belong together: by experiment, problem and, where it matters, what was known.
fn families(plan: &Plan, workshop: &Workshop) -> Result<Vec<Family>> {
    let mut families: Vec<Family> = Vec::new();
    for Source { experiment, arms, seeds } in sources(plan)? {
        for group in arms::make(&format!("stopping: {experiment}"), &arms, seeds, workshop)? {
            let problem = group.arm.problem.name();
            let name = match experiment {
                "in-model" => format!("{problem}, {}", group.arm.variant),
                "zoo" if group.arm.settings.reference == Reference::Moving => format!("batchquad: {problem}"),
                "zoo" => format!("zoo: {problem}"),
                "synthetic" | "model-evidence" => problem.into(),
                _ => format!("{experiment}: {problem}"),
            };
            match families.iter_mut().find(|f| f.name == name) {
                Some(family) => family.groups.push(group),
                None => families.push(Family { name, groups: vec![group] }),
            }
        }
    }
    Ok(families)
}

/// Coverage of all runs of an arm or a family.
#[derive(Debug, Clone, Serialize)]
struct Row {
    family: String,
    variant: String,
    rule: String,
    batch: usize,
    stated: Coverage,
    linearised: Coverage,
    exact: Coverage,
}

fn rows(families: &[Family]) -> Vec<Row> {
    let row = |family: &Family, group: &Group| {
        let one = Family { name: String::new(), groups: vec![group.clone()] };
        Row {
            family: family.name.clone(),
            variant: group.arm.variant.clone(),
            rule: group.arm.rule(),
            batch: group.arm.settings.batch,
            stated: Coverage::of(&one.judged(Which::Stated)),
            linearised: Coverage::of(&one.judged(Which::Linearised)),
            exact: Coverage::of(&one.judged(Which::Exact)),
        }
    };
    families.iter().flat_map(|f| f.groups.iter().map(move |g| row(f, g))).collect()
}

fn coverage_table(families: &[Family]) -> Table {
    let mut table = Table::new([
        "runs",
        "readings",
        "stated 1 sd",
        "2 sd",
        "median |error|/sd",
        "WSABI-L 1 sd",
        "2 sd",
        "median |error|/sd",
        "exact 1 sd",
        "2 sd",
        "median |error|/sd",
    ]);
    let right = ["68 %", "95 %", "0.67"];
    table.push(["if the bars were right", ""].into_iter().chain([right; 3].concat()));
    for family in families {
        let mut row = vec![family.name.clone(), family.readings().count().to_string()];
        for (which, _) in Which::ALL {
            let c = Coverage::of(&family.judged(which));
            row.extend([percent(c.one), percent(c.two), number(Some(c.median_z), 2)]);
        }
        table.push(row);
    }
    table
}

/// Coverage by batch size, where there are several.
fn by_batch_table(families: &[Family]) -> Table {
    let mut table = Table::new(["runs", "batch", "1 sd", "2 sd", "median |error|/sd"]);
    for family in families {
        let mut sizes: Vec<usize> = family.groups.iter().map(|g| g.arm.settings.batch).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for &batch in sizes.iter().filter(|_| sizes.len() > 1) {
            let groups = family.groups.iter().filter(|g| g.arm.settings.batch == batch).cloned().collect();
            let some = Family { name: String::new(), groups };
            let c = Coverage::of(&some.judged(Which::Stated));
            let name = family.name.clone();
            table.push([name, batch.to_string(), percent(c.one), percent(c.two), number(Some(c.median_z), 2)]);
        }
    }
    table
}

/// Targets for the standard deviation of log Z.
const TARGETS: [f64; 4] = [0.3, 0.1, 0.03, 0.01];

/// What became of runs that would have stopped at a target.
#[derive(Debug, Clone, Serialize)]
struct Stopped {
    family: String,
    target: f64,
    runs: usize,
    stopped: usize,
    evaluations: f64,
    within_two_sd: f64,
    within_two_targets: f64,
    median_error: f64,
}

/// The reading at which the program's rule would have ended the run.
fn stop(trace: &[Reading], target: f64) -> Option<&Reading> {
    let met = |n: usize| target_met(target, trace[..n].iter().map(|r| r.own.sd));
    (1..=trace.len()).find(|&n| met(n)).map(|n| &trace[n - 1])
}

fn stopped(family: &Family, target: f64) -> Stopped {
    let traces: Vec<&Vec<Reading>> = family.groups.iter().flat_map(|g| &g.traces).collect();
    let ends: Vec<&Reading> = traces.iter().filter_map(|t| stop(t, target)).collect();
    let share = |holds: &dyn Fn(&Judged) -> bool| {
        mean(&ends.iter().map(|r| f64::from(u8::from(holds(&r.own)))).collect::<Vec<_>>())
    };
    let median = |of: &dyn Fn(&Reading) -> f64| quantile(&ends.iter().map(|r| of(r)).collect::<Vec<_>>(), 0.5);
    Stopped {
        family: family.name.clone(),
        target,
        runs: traces.len(),
        stopped: ends.len(),
        evaluations: median(&|r| r.evaluations as f64),
        within_two_sd: share(&|j| z_score(j) <= 2.0),
        within_two_targets: share(&|j| j.distance() <= 2.0 * target),
        median_error: median(&|r| r.own.distance()),
    }
}

fn stopping_table(stops: &[Stopped]) -> Table {
    let mut table = Table::new([
        "runs",
        "target_sd",
        "stopped",
        "evaluations",
        "within 2 sd",
        "within 2 targets",
        "median |error|",
    ]);
    for s in stops.iter().filter(|s| s.stopped > 0) {
        table.push([
            s.family.clone(),
            s.target.to_string(),
            format!("{}/{}", s.stopped, s.runs),
            number(Some(s.evaluations), 0),
            percent(s.within_two_sd),
            percent(s.within_two_targets),
            scientific(s.median_error),
        ]);
    }
    table
}

/// Families that are no experiments with the method itself.
fn main_families(families: &[Family]) -> Vec<&Family> {
    families.iter().filter(|f| !f.name.contains(':')).collect()
}

/// How often the truth is inside the central interval of each probability.
fn calibration(families: &[Family]) -> Result<Figure> {
    let unit = Distribution::uniform(0.0, 1.0)?;
    let nominal: Vec<f64> = (1..100).map(|i| f64::from(i) / 100.0).collect();
    let mut charts = Vec::new();
    for (which, title) in Which::ALL {
        let axis = |label: &str| Axis::linear(label).range(0.0, 1.0);
        let mut chart = Chart::new(axis("nominal probability of the interval"), axis("share of readings inside"))
            .title(title)
            .with(Line::new([(0.0, 0.0), (1.0, 1.0)]).named("calibrated").style(6).dash(Dash::Dotted));
        for (k, family) in main_families(families).into_iter().enumerate() {
            let scores: Vec<f64> = family.judged(which).iter().map(z_score).collect();
            let mut points = Vec::new();
            for p in &nominal {
                points.push((*p, within(&scores, unit.to_latent(0.5 + 0.5 * p)?)));
            }
            chart = chart.with(Line::new(points).named(&family.name[..]).style(k));
        }
        charts.push(Some(chart));
    }
    let label =
        "Shares of readings with the truth inside the interval, against the probability that the interval claims";
    Ok(Figure::grid(label, vec![charts]).width(1000.0).squares().one_legend())
}

/// Errors against bars in tenths of the readings, ordered by the bar.
fn against_bars(families: &[Family]) -> Figure {
    let panel = |family: &&Family| {
        let mut chart = Chart::new(
            Axis::logarithmic("reported sd of log Z").unit("nats"),
            Axis::logarithmic("|log Ẑ − log Z|").unit("nats"),
        )
        .title(&family.name[..]);
        let mut ends = (f64::INFINITY, 0.0_f64);
        for (k, (which, name)) in Which::ALL.into_iter().enumerate() {
            let mut pairs: Vec<(f64, f64)> =
                family.judged(which).iter().filter_map(|j| Some((j.sd?, j.error?.abs()))).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let size = pairs.len().div_ceil(10).max(1);
            let tenths: Vec<(f64, Vec<f64>)> =
                pairs.chunks(size).map(|c| (c[c.len() / 2].0, c.iter().map(|p| p.1).collect::<Vec<f64>>())).collect();
            for (sd, _) in &tenths {
                ends = (ends.0.min(*sd), ends.1.max(*sd));
            }
            let band = tenths.iter().map(|(x, e)| (*x, quantile(e, 0.25), quantile(e, 0.75)));
            let line = tenths.iter().map(|(x, e)| (*x, quantile(e, 0.5)));
            chart =
                chart.with(Band::new(band).style(k).opacity(0.2)).with(Line::new(line).named(name).style(k).marked());
        }
        let honest = |share: f64| [(ends.0, share * ends.0), (ends.1, share * ends.1)];
        chart.with(Line::new(honest(0.6745)).named("median if the bars were right").style(6).dash(Dash::Dotted))
    };
    let label = "Median |error| with quartiles against the reported standard deviation";
    Figure::wrapped(label, 2, main_families(families).iter().map(panel)).width(1000.0).one_legend()
}

/// Finds or makes all runs and writes `readings.csv`, `summary.json`, tables and figures.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let families = families(plan, workshop)?;
    let stops: Vec<Stopped> = families.iter().flat_map(|f| TARGETS.map(|t| stopped(f, t))).collect();
    let mut output = Output::new(workshop, "stopping")?;
    let groups: Vec<Group> = families.iter().flat_map(|f| f.groups.iter().cloned()).collect();
    output.csv("readings", &arms::to_csv(&groups, plan.seed)?)?;
    let results = serde_json::json!({ "coverage": rows(&families), "stopping": stops });
    output.summary(plan, groups.iter().map(|g| g.traces.len() as u64).sum(), &results)?;
    output.table(
        "coverage",
        "Coverage of the error bars, all readings after the initial design",
        &coverage_table(&families),
    )?;
    output.table("by-batch", "Coverage of the stated error bars by batch size", &by_batch_table(&families))?;
    output.table("stopping", "Runs that would have stopped at target_sd", &stopping_table(&stops))?;
    output.figure("calibration", &calibration(&families)?)?;
    output.figure("error-against-sd", &against_bars(&families))?;
    Ok(output.said())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::Choice;

    #[test]
    fn a_run_stops_where_the_bar_was_small_twice_running() {
        let reading = |(evaluations, sd): (usize, f64)| Reading {
            batches: evaluations,
            evaluations,
            initial: false,
            own: Judged { error: Some(0.05), sd: Some(sd) },
            model: Judged { error: Some(0.05), sd: Some(sd) },
            moments: None,
            sigma2: 1.0,
            lengthscale: 1.0,
            fallbacks: 0,
        };
        let trace: Vec<Reading> = [(1, 0.5), (2, 0.05), (3, 0.2), (4, 0.1), (5, 0.02), (6, 0.01)].map(reading).into();
        assert_eq!(stop(&trace, 0.1).map(|r| r.evaluations), Some(5));
        assert_eq!(stop(&trace, 0.01).map(|r| r.evaluations), None);
        let arm = Arm { problem: Choice::InModel, variant: String::new(), settings: Default::default() };
        let family = Family { name: "one".into(), groups: vec![Group { arm, traces: vec![trace] }] };
        let at = stopped(&family, 0.1);
        // 0.05 is more than twice 0.02, less than twice 0.1.
        assert_eq!((at.stopped, at.within_two_sd, at.within_two_targets), (1, 0.0, 1.0));
        assert_eq!(Coverage::of(&family.judged(Which::Stated)).two, 4.0 / 6.0);
    }
}
