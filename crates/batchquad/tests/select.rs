//! Batch rules: what they promise of every batch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Points,
    belief::{FitOptions, Gaussian, Model, SquaredExponential, Surrogate},
    choose::{
        Acquisition, AcquisitionKind, BatchRule, Cone, Constants, Fantasy, GonzalezPenalised, GonzalezPenalty, Lie,
        MIN_SEPARATION, Penalisation, Search, SoftMinimum, Uncertainty, log_lipschitz, select,
    },
    numeric::{Jitter, Order, Purpose, Stream},
};
use proptest::prelude::*;

const RULES: [BatchRule; 7] = [
    BatchRule::KrigingBeliever,
    BatchRule::KrigingOptimist,
    BatchRule::ConstantLiar,
    BatchRule::LocalPenalisation,
    BatchRule::GonzalezPenalisation,
    BatchRule::NaiveTop,
    BatchRule::Random,
];

fn scattered(d: usize, n: usize, phase: f64) -> Points {
    Points::new(d, (0..n * d).map(|i| 1.6 * ((i * i + 3 * i) as f64 * 0.731 + phase).sin()).collect()).unwrap()
}

fn likelihood(x: &[f64]) -> f64 {
    -0.5 * x.iter().enumerate().map(|(a, v)| (v - 0.4 * a as f64).powi(2)).sum::<f64>() / 0.5
}

fn belief(model: Model, d: usize, n: usize) -> Surrogate {
    let nodes = scattered(d, n, 0.2);
    let logs: Vec<f64> = nodes.rows().map(likelihood).collect();
    let measure = Gaussian::standard(d).unwrap().into();
    Surrogate::fit(model, measure, &nodes, &logs, &FitOptions::default(), None).unwrap()
}

fn none(d: usize) -> Points {
    Points::new(d, vec![]).unwrap()
}

fn smallest_distance(belief: &Surrogate, others: &[&Points]) -> f64 {
    let l = belief.gp().kernel().lengthscales();
    let all: Vec<&[f64]> = others.iter().flat_map(|p| p.rows()).collect();
    let distance =
        |a: &[f64], b: &[f64]| a.iter().zip(b).zip(l).map(|((a, b), l)| ((a - b) / l).powi(2)).sum::<f64>().sqrt();
    let mut smallest = f64::INFINITY;
    for i in 0..all.len() {
        for j in 0..i {
            smallest = smallest.min(distance(all[i], all[j]));
        }
    }
    smallest
}

#[test]
fn every_rule_gives_distinct_points_and_leaves_the_belief_alone() {
    for d in [1, 2, 4] {
        let belief = belief(Model::WsabiL, d, 12);
        let (weights, estimate) = (belief.gp().weights().to_vec(), belief.estimate().unwrap());
        let pending = Points::new(d, (0..2 * d).map(|i| 0.3 + 0.9 * i as f64 / d as f64).collect()).unwrap();
        for rule in RULES {
            let search = Search { seed: 3, asked: 14, ..Search::default() };
            let batch = rule.select(&belief, &pending, 6, search).unwrap();
            assert_eq!(batch.points.len(), 6);
            assert_eq!(batch.fallbacks, 0, "{rule:?}");
            let apart = smallest_distance(&belief, &[&batch.points, &pending]);
            assert!(apart >= MIN_SEPARATION, "{rule:?} {d} {apart}");
            for x in batch.points.rows() {
                let one = Points::new(d, x.to_vec()).unwrap();
                for node in belief.gp().nodes().rows() {
                    let node = Points::new(d, node.to_vec()).unwrap();
                    assert!(smallest_distance(&belief, &[&one, &node]) >= MIN_SEPARATION, "{rule:?}");
                }
            }
            assert_eq!(batch, rule.select(&belief, &pending, 6, search).unwrap(), "asked twice, {rule:?}");
        }
        assert_eq!(weights, belief.gp().weights());
        assert_eq!(estimate, belief.estimate().unwrap());
    }
}

#[test]
fn a_batch_of_one_is_the_maximiser() {
    for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
        let belief = belief(model, 2, 10);
        let search = Search::default();
        let one = |rule: BatchRule| rule.select(&belief, &none(2), 1, search).unwrap().points;
        let best = one(BatchRule::KrigingBeliever);
        for rule in RULES.into_iter().take(6) {
            assert_eq!(one(rule), best, "{rule:?}");
            assert_eq!(rule.select(&belief, &none(2), 4, search).unwrap().points.row(0), best.row(0), "{rule:?}");
        }
        // Nowhere on a fine grid is the acquisition higher.
        let a = Uncertainty::new(&belief);
        let top = a.log_jets(&best, Order::Value).unwrap().value[0];
        let grid: Vec<f64> =
            (0..121 * 121).flat_map(|i| [-6.0 + 0.1 * f64::from(i / 121), -6.0 + 0.1 * f64::from(i % 121)]).collect();
        let heights = a.log_jets(&Points::new(2, grid).unwrap(), Order::Value).unwrap().value;
        assert!(heights.iter().all(|h| *h <= top + 1e-4), "{model:?}");
    }
}

#[test]
fn believed_values_are_the_posterior_mean_of_the_integrand() {
    for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
        let belief = belief(model, 2, 9);
        let x = Points::new(2, vec![0.7, -0.3]).unwrap();
        let (mean, variance) = belief.moments(&x).unwrap()[0];
        let value = |g: f64| if model == Model::Plain { g } else { belief.alpha() + 0.5 * g * g };
        let at = |fantasy: Fantasy| value(fantasy.target(&belief, &x).unwrap()[0]);
        assert!((at(Fantasy::Mean) - mean).abs() < 1e-14);
        assert!((at(Fantasy::Optimistic) - (mean + 2.0 * variance.sqrt())).abs() < 1e-12);
        // A mean that does not know the density: moving the measure does not move the fantasy.
        let far = Gaussian::diagonal(vec![3.0; 2], &[0.1; 2]).unwrap();
        let logs: Vec<f64> = belief.gp().nodes().rows().map(likelihood).collect();
        let kernel = belief.gp().kernel().clone();
        let moved =
            Surrogate::with_kernel(model, far.into(), belief.gp().nodes(), &logs, kernel, Jitter::default()).unwrap();
        // The two factorisations differ by rounding, their means by that times the condition number.
        let (here, there) =
            (Fantasy::Mean.target(&belief, &x).unwrap()[0], Fantasy::Mean.target(&moved, &x).unwrap()[0]);
        assert!((here - there).abs() < 1e-9, "{here} {there}");
        let lies: Vec<f64> = [Lie::Min, Lie::Mean, Lie::Max].map(|l| at(Fantasy::Constant(l))).to_vec();
        assert!(lies[0] < lies[1] && lies[1] < lies[2] && (lies[2] - 1.0).abs() < 1e-9);
    }
}

fn cones(d: usize, k: usize) -> Vec<Cone> {
    let tips = scattered(d, k.max(1), 1.1);
    tips.rows().take(k).enumerate().map(|(i, c)| Cone { centre: c.to_vec(), log_slope: i as f64 - 3.0 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_soft_minimum_is_just_below_the_hard_one(k in 0usize..6, at in prop::collection::vec(-2.0..2.0f64, 2), power in 1.0..20.0f64) {
        let belief = belief(Model::WsabiL, 2, 9);
        let (a, cones) = (Uncertainty::new(&belief), cones(2, k));
        let lengthscales = belief.gp().kernel().lengthscales();
        let x = Points::new(2, at.clone()).unwrap();
        let soft = SoftMinimum { acquisition: &a, cones: &cones, power, lengthscales };
        let soft = soft.log_jets(&x, Order::Value).unwrap().value[0];
        let plain = a.log_jets(&x, Order::Value).unwrap().value[0];
        let hard = cones.iter().map(|c| c.log_value(&at, lengthscales)).fold(plain, f64::min);
        let slack = ((k + 1) as f64).ln() / power;
        prop_assert!(soft <= hard + 1e-12 && soft >= hard - slack - 1e-12, "{soft} {hard} {slack}");
    }

    #[test]
    fn penalised_acquisitions_have_the_derivatives_they_claim(d in 1usize..4, k in 1usize..4, at in prop::collection::vec(-2.0..2.0f64, 3)) {
        let nodes = scattered(d, 8, 0.2);
        let logs: Vec<f64> = nodes.rows().map(likelihood).collect();
        let kernel = SquaredExponential::new(0.8, (0..d).map(|a| 0.8 + 0.3 * a as f64).collect()).unwrap();
        let measure = Gaussian::standard(d).unwrap().into();
        // The jitter keeps variances above 10⁻³, so that differences of their logarithms are not rounding.
        let belief = Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &logs, kernel, Jitter { nugget: 1e-3, rungs: 0 }).unwrap();
        let (a, cones) = (Uncertainty::new(&belief), cones(d, k));
        let lengthscales = belief.gp().kernel().lengthscales();
        let x = &at[..d];
        let near_tip = cones.iter().any(|c| c.log_value(x, lengthscales) - c.log_slope < -2.0);
        prop_assume!(!near_tip);
        let penalties: Vec<GonzalezPenalty> =
            cones.iter().map(|c| GonzalezPenalty { centre: c.centre.clone(), lipschitz: 0.8, mean: 0.4, sd: 0.3 }).collect();
        let soft = SoftMinimum { acquisition: &a, cones: &cones, power: 6.0, lengthscales };
        let gonzalez = GonzalezPenalised { acquisition: &a, penalties: &penalties, lengthscales };
        for acquisition in [&soft as &dyn Acquisition, &gonzalez] {
            let here = acquisition.log_jets(&Points::new(d, x.to_vec()).unwrap(), Order::Hessian).unwrap();
            let h = 1e-5;
            let steep = here.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
            for c in 0..d {
                let moved = |s: f64| {
                    let mut y = x.to_vec();
                    y[c] += s;
                    acquisition.log_jets(&Points::new(d, y).unwrap(), Order::Gradient).unwrap()
                };
                let (up, down) = (moved(h), moved(-h));
                let close = |exact: f64, up: f64, down: f64| {
                    (exact - (up - down) / (2.0 * h)).abs() < 1e-5 * steep.powi(3) * (1.0 + exact.abs())
                };
                prop_assert!(close(here.gradient[c], up.value[0], down.value[0]));
                for b in 0..d {
                    prop_assert!(close(here.hessian[c * d + b], up.gradient[b], down.gradient[b]));
                }
            }
        }
    }
}

/// The local Lipschitz constant bounds the slope between any two points near by, and is attained.
#[test]
fn the_lipschitz_constant_is_the_steepest_slope_near_by() {
    let belief = belief(Model::WsabiL, 1, 6);
    let a = Uncertainty::new(&belief);
    let l = belief.gp().kernel().lengthscales()[0];
    let x = BatchRule::KrigingBeliever.select(&belief, &none(1), 1, Search::default()).unwrap().points;
    let mut stream = Stream::new(0, Purpose::Select, 0);
    let found = log_lipschitz(&a, x.row(0), &[l], &mut stream).unwrap();
    // The slope is steepest between the maximum and the next valley; local ascent starts within a tenth of a lengthscale.
    let grid: Vec<f64> = (0..400).map(|i| x.row(0)[0] + l * 0.002 * (f64::from(i) - 200.0)).collect();
    let heights = a.log_jets(&Points::new(1, grid).unwrap(), Order::Value).unwrap().value;
    let steepest = heights.windows(2).map(|w| (w[1].exp() - w[0].exp()).abs() / 0.002).fold(0.0, f64::max);
    assert!(found.exp() >= 0.99 * steepest, "{} {steepest}", found.exp());
    assert!(found.exp() < 3.0 * steepest, "{} {steepest}", found.exp());
}

#[test]
fn nodes_in_another_order_give_the_same_batch() {
    let nodes = scattered(2, 12, 0.2);
    let order: Vec<usize> = (0..12).map(|i| (i * 7 + 2) % 12).collect();
    let shuffled = Points::from_rows(&order.iter().map(|&i| nodes.row(i)).collect::<Vec<_>>()).unwrap();
    let kernel = SquaredExponential::isotropic(0.9, 0.9, 2).unwrap();
    let at = |x: &Points, rule: BatchRule| {
        let logs: Vec<f64> = x.rows().map(likelihood).collect();
        let measure = Gaussian::standard(2).unwrap().into();
        let jitter = Jitter { nugget: 1e-6, rungs: 0 };
        let belief = Surrogate::with_kernel(Model::WsabiL, measure, x, &logs, kernel.clone(), jitter).unwrap();
        rule.select(&belief, &none(2), 4, Search::default()).unwrap().points
    };
    for rule in RULES {
        let (a, b) = (at(&nodes, rule), at(&shuffled, rule));
        // Rounding of n·ε in the acquisition moves the path of an ascent; its end is known to the ascent's own tolerance.
        for (x, y) in a.as_slice().iter().zip(b.as_slice()) {
            assert!((x - y).abs() < 1e-3, "{rule:?}: {a:?} {b:?}");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let belief = belief(Model::WsabiL, 3, 40);
    let with = |threads: usize, rule: BatchRule| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| rule.select(&belief, &none(3), 5, Search::default()).unwrap())
    };
    for rule in RULES {
        assert_eq!(with(1, rule), with(2, rule));
        assert_eq!(with(1, rule), with(3, rule));
    }
}

#[test]
fn degenerate_data_give_distinct_points_and_no_panic() {
    let line: Vec<f64> = (0..10).flat_map(|i| [0.3 * f64::from(i) - 1.5, 0.0]).collect();
    let close: Vec<f64> = (0..10).flat_map(|i| [1e-12 * f64::from(i), 0.5]).collect();
    let zero_but_one: Vec<f64> = (0..10).map(|i| if i == 4 { 0.0 } else { f64::NEG_INFINITY }).collect();
    let smooth = |x: &Points| -> Vec<f64> { x.rows().map(likelihood).collect() };
    let (line, close) = (Points::new(2, line).unwrap(), Points::new(2, close).unwrap());
    let cases = [
        ("constant", scattered(2, 10, 0.2), vec![0.0; 10]),
        ("zero but one", scattered(2, 10, 0.2), zero_but_one.clone()),
        ("far below", scattered(2, 10, 0.2), smooth(&scattered(2, 10, 0.2)).iter().map(|l| l - 1e6).collect()),
        ("line", line.clone(), smooth(&line)),
        ("close", close.clone(), smooth(&close)),
        ("close and zero but one", close, zero_but_one),
        ("one node", Points::new(2, vec![0.1, 0.2]).unwrap(), vec![-3.0]),
    ];
    for (name, nodes, logs) in cases {
        for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
            let measure = Gaussian::standard(2).unwrap().into();
            let belief = Surrogate::fit(model, measure, &nodes, &logs, &FitOptions::default(), None).unwrap();
            for rule in RULES {
                for acquisition in [AcquisitionKind::Uncertainty, AcquisitionKind::VarianceReduction] {
                    let search = Search { criterion: &acquisition, ..Search::default() };
                    let batch = rule.select(&belief, &none(2), 5, search).unwrap();
                    assert!(batch.points.as_slice().iter().all(|v| v.is_finite()), "{name} {rule:?}");
                    assert!(smallest_distance(&belief, &[&batch.points]) >= MIN_SEPARATION, "{name} {rule:?}");
                }
            }
        }
    }
}

/// The only likelihood that is not zero lies a hundred prior widths away: there is nothing to climb, and the rule says so.
#[test]
fn a_flat_zero_acquisition_falls_back_to_space_filling_points() {
    let nodes = Points::new(2, vec![100.0, 100.0, 0.0, 0.0, 1.0, 1.0]).unwrap();
    let measure = Gaussian::standard(2).unwrap().into();
    let kernel = SquaredExponential::isotropic(1.0, 0.1, 2).unwrap();
    let logs = [0.0, f64::NEG_INFINITY, f64::NEG_INFINITY];
    let belief = Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &logs, kernel, Jitter::default()).unwrap();
    for rule in RULES.into_iter().take(5) {
        let batch = rule.select(&belief, &none(2), 8, Search::default()).unwrap();
        // The liar believes its own first lie, and climbs from there on.
        let fallbacks = if rule == BatchRule::ConstantLiar { 1 } else { 8 };
        assert_eq!((batch.points.len(), batch.fallbacks), (8, fallbacks), "{rule:?}");
        assert!(smallest_distance(&belief, &[&batch.points]) >= MIN_SEPARATION);
        assert!(batch.points.as_slice().iter().all(|v| v.abs() < 6.0));
    }
}

#[test]
fn bad_input_is_refused() {
    let belief = belief(Model::WsabiL, 2, 5);
    let rule = BatchRule::KrigingBeliever;
    assert!(rule.select(&belief, &none(2), 0, Search::default()).is_err());
    assert!(rule.select(&belief, &none(3), 1, Search::default()).is_err());
    assert!(rule.select(&belief, &none(2), 1, Search { starts_per_dim: 0, ..Search::default() }).is_err());
    let steep = Penalisation { slope: -1.0, ..Penalisation::default() };
    let constants = Constants { penalisation: steep, ..Constants::default() };
    let rule = BatchRule::LocalPenalisation.with(constants);
    assert!(select(&*rule, &belief, &none(2), 1, Search::default()).is_err());
}
