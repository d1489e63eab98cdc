//! The Gaussian process: derivatives, conditioning, hyperparameters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Points,
    belief::{FitOptions, Gp, Kernel, SquaredExponential, fit, log_marginal_likelihood},
    numeric::{Jitter, Order},
};
use proptest::prelude::*;

fn scattered(d: usize, n: usize, phase: f64) -> Points {
    Points::new(d, (0..n * d).map(|i| 2.0 * ((i * i + 3 * i) as f64 * 0.731 + phase).sin()).collect()).unwrap()
}

fn values(x: &Points) -> Vec<f64> {
    x.rows().map(|r| (-0.3 * r.iter().map(|v| v * v).sum::<f64>()).exp() + 0.1 * r[0]).collect()
}

fn example(d: usize, n: usize) -> Gp {
    let kernel = SquaredExponential::new(1.3, (0..d).map(|a| 0.7 + 0.25 * a as f64).collect()).unwrap();
    let nodes = scattered(d, n, 0.2);
    let targets = values(&nodes);
    Gp::new(kernel, nodes, targets, Jitter::default()).unwrap()
}

/// The definition, with dense elimination written out.
#[test]
fn mean_and_variance_are_their_definitions() {
    let gp = example(2, 9);
    let n = 9;
    let k = gp.kernel();
    let x = [0.3, -0.4];
    let mut a: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> = (0..n).map(|j| k.value(gp.nodes().row(i), gp.nodes().row(j))).collect();
            row[i] += 1e-10 * k.sigma2();
            row.push(gp.targets()[i]);
            row.push(k.value(gp.nodes().row(i), &x));
            row
        })
        .collect();
    for p in 0..n {
        for r in 0..n {
            if r != p {
                let f = a[r][p] / a[p][p];
                for c in p..n + 2 {
                    a[r][c] -= f * a[p][c];
                }
            }
        }
    }
    let cross: Vec<f64> = (0..n).map(|i| k.value(gp.nodes().row(i), &x)).collect();
    let mean: f64 = (0..n).map(|i| cross[i] * a[i][n] / a[i][i]).sum();
    let variance = k.sigma2() - (0..n).map(|i| cross[i] * a[i][n + 1] / a[i][i]).sum::<f64>();
    let p = gp.predict(&Points::new(2, x.to_vec()).unwrap(), Order::Value).unwrap();
    // Condition number of this matrix is about 1e4.
    assert!((p.mean[0] - mean).abs() < 1e-11 && (p.variance[0] - variance).abs() < 1e-11, "{p:?} {mean} {variance}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn derivatives_agree_with_central_differences(d in 1usize..5, n in 1usize..40, at in prop::collection::vec(-2.0..2.0f64, 5)) {
        let gp = example(d, n);
        let x = &at[..d];
        let here = gp.predict(&Points::new(d, x.to_vec()).unwrap(), Order::Hessian).unwrap();
        let h = 1e-4;
        for a in 0..d {
            let moved = |s: f64| {
                let mut y = x.to_vec();
                y[a] += s;
                gp.predict(&Points::new(d, y).unwrap(), Order::Gradient).unwrap()
            };
            let (up, down) = (moved(h), moved(-h));
            // Truncation h² times third derivatives, and rounding ε·cond/h; the weights reach 1e2 here.
            let close = |exact: f64, up: f64, down: f64| (exact - (up - down) / (2.0 * h)).abs() < 2e-5 * (1.0 + exact.abs());
            prop_assert!(close(here.mean_gradient[a], up.mean[0], down.mean[0]));
            prop_assert!(close(here.variance_gradient[a], up.variance[0], down.variance[0]));
            for b in 0..d {
                prop_assert!(close(here.mean_hessian[a * d + b], up.mean_gradient[b], down.mean_gradient[b]));
                prop_assert!(close(here.variance_hessian[a * d + b], up.variance_gradient[b], down.variance_gradient[b]));
            }
        }
    }

    #[test]
    fn marginal_likelihood_gradient_agrees_with_central_differences(
        d in 1usize..4, n in 1usize..30, log_sigma2 in -2.0..2.0f64, logs in prop::collection::vec(-1.0..1.0f64, 3)
    ) {
        let nodes = scattered(d, n, 0.1);
        let targets = values(&nodes);
        let at = |s: f64, l: &[f64]| {
            let kernel = SquaredExponential::new(s.exp(), l.iter().map(|v| v.exp()).collect()).unwrap();
            log_marginal_likelihood(&kernel, &nodes, &targets, Jitter { nugget: 1e-6, rungs: 0 }).unwrap()
        };
        let logs = &logs[..d];
        let here = at(log_sigma2, logs);
        let h = 1e-5;
        let close = |exact: f64, up: f64, down: f64| (exact - (up - down) / (2.0 * h)).abs() < 1e-4 * (1.0 + exact.abs());
        prop_assert!(close(here.log_sigma2_gradient, at(log_sigma2 + h, logs).value, at(log_sigma2 - h, logs).value));
        for a in 0..d {
            let moved = |s: f64| { let mut l = logs.to_vec(); l[a] += s; at(log_sigma2, &l).value };
            prop_assert!(close(here.log_lengthscale_gradient[a], moved(h), moved(-h)), "{:?}", here);
        }
    }

    #[test]
    fn conditioning_is_refitting_and_shrinks_the_variance(d in 1usize..4, n in 1usize..40, q in 1usize..6) {
        // With this jitter the condition number is at most n/jitter, whatever the nodes.
        let jitter = Jitter { nugget: 1e-2, rungs: 0 };
        let example = example(d, n);
        let gp = Gp::new(example.kernel().clone(), example.nodes().clone(), example.targets().to_vec(), jitter).unwrap();
        let more = scattered(d, q, 1.3);
        let targets = values(&more);
        let before = gp.weights().to_vec();
        let conditioned = gp.condition(&more, &targets).unwrap();
        prop_assert_eq!(&before, gp.weights());
        let all = gp.nodes().concat(&more).unwrap();
        let both = [gp.targets(), &targets].concat();
        let whole = Gp::new(gp.kernel().clone(), all, both, jitter).unwrap();
        let x = scattered(d, 10, 2.2);
        let (a, b, old) = (conditioned.predict(&x, Order::Value).unwrap(), whole.predict(&x, Order::Value).unwrap(), gp.predict(&x, Order::Value).unwrap());
        let bound = 10.0 * (n + q) as f64 * f64::EPSILON * (n + q) as f64 / jitter.nugget;
        for i in 0..10 {
            prop_assert!((a.mean[i] - b.mean[i]).abs() < bound, "{} {}", a.mean[i], b.mean[i]);
            prop_assert!((a.variance[i] - b.variance[i]).abs() < bound, "{} {}", a.variance[i], b.variance[i]);
            prop_assert!(a.variance[i] <= old.variance[i] + bound);
        }
    }
}

#[test]
fn predictions_do_not_depend_on_threads_or_company() {
    let gp = example(3, 60);
    let x = scattered(3, 50, 0.9);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| gp.predict(&x, Order::Hessian).unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(5));
    let last = gp.predict(&Points::new(3, x.row(49).to_vec()).unwrap(), Order::Hessian).unwrap();
    assert_eq!(last.mean_gradient, one.mean_gradient[147..]);
    assert_eq!(last.variance_hessian, one.variance_hessian[441..]);
}

#[test]
fn duplicates_and_near_duplicates_do_not_break_it() {
    let kernel = SquaredExponential::isotropic(1.0, 1.0, 1).unwrap();
    let nodes = Points::new(1, vec![0.5, 0.5, 0.5 + 1e-14, -1.0, 0.5]).unwrap();
    let gp = Gp::new(kernel, nodes, vec![1.0, 1.0, 1.0, 0.2, 1.0], Jitter::default()).unwrap();
    let p = gp.predict(&Points::new(1, vec![0.5, 0.0]).unwrap(), Order::Value).unwrap();
    assert!((p.mean[0] - 1.0).abs() < 1e-6 && p.mean[1].is_finite() && p.variance[0] > 0.0, "{p:?}");
    let again = gp.condition(&Points::new(1, vec![0.5]).unwrap(), &[1.0]).unwrap();
    assert!(again.weights().iter().all(|w| w.is_finite()));
}

/// Many nodes on a short line: the kernel matrix is singular to machine precision a hundred times over.
#[test]
fn a_singular_matrix_is_repaired_and_the_repair_is_counted() {
    let kernel = SquaredExponential::isotropic(1.0, 1.0, 1).unwrap();
    let nodes = Points::new(1, (0..300).map(|i| f64::from(i) * 1e-3).collect()).unwrap();
    let targets = nodes.rows().map(|x| x[0].cos()).collect();
    let gp = Gp::new(kernel, nodes, targets, Jitter { nugget: 1e-18, rungs: 12 }).unwrap();
    assert!(gp.factor().repairs() > 0 && gp.factor().largest_jitter() > 1e-16);
    let p = gp.predict(&Points::new(1, vec![0.15]).unwrap(), Order::Value).unwrap();
    assert!((p.mean[0] - 0.15_f64.cos()).abs() < 1e-6);
}

/// A function drawn with a known lengthscale is given about that lengthscale back; silent data do not send it off.
#[test]
fn lengthscales_are_found_and_do_not_run_away() {
    let nodes = scattered(2, 60, 0.4);
    let truth = [0.6, 2.0];
    let targets: Vec<f64> = nodes
        .rows()
        .map(|x| (x[0] / truth[0]).sin() * (x[1] / truth[1]).cos() + 0.3 * (x[0] / truth[0]).cos())
        .collect();
    let ard = FitOptions { ard: true, ..FitOptions::default() };
    let found = fit(&nodes, &targets, &ard, None).unwrap();
    let l = found.gp.kernel().lengthscales();
    assert!(l[0] < l[1] && l[0] > 0.3 && l[0] < 3.0, "{l:?}");
    let isotropic = fit(&nodes, &targets, &FitOptions::default(), None).unwrap();
    assert!(isotropic.objective < found.objective + 1.0);
    let cheap = FitOptions { starts: vec![], ..ard };
    assert!(fit(&nodes, &targets, &cheap, None).is_err());
    let warm = fit(&nodes, &targets, &cheap, Some(found.gp.kernel())).unwrap();
    assert!((warm.objective - found.objective).abs() < 1e-3 && warm.evaluations < 8, "{}", warm.evaluations);
    // Sixty equal values do say "constant": the search ends at its bound and says so. Two do not.
    let constant = fit(&nodes, &[1.0; 60], &FitOptions::default(), None).unwrap();
    assert!(constant.at_bound && constant.gp.kernel().lengthscales()[0] <= 20.0 + 1e-9);
    let silent = fit(&scattered(2, 2, 0.0), &[1.0; 2], &FitOptions::default(), None).unwrap();
    assert!(!silent.at_bound && silent.gp.kernel().lengthscales()[0] < 10.0, "{:?}", silent.gp.kernel());
}

#[test]
fn bad_input_is_refused() {
    let kernel = SquaredExponential::isotropic(1.0, 1.0, 2).unwrap();
    let nodes = scattered(2, 3, 0.0);
    let jitter = Jitter::default();
    assert!(Gp::new(kernel.clone(), nodes.clone(), vec![1.0; 2], jitter).is_err());
    assert!(Gp::new(kernel.clone(), Points::new(2, vec![]).unwrap(), vec![], jitter).is_err());
    assert!(Gp::new(kernel.clone(), scattered(1, 3, 0.0), vec![1.0; 3], jitter).is_err());
    let message = Gp::new(kernel.clone(), nodes.clone(), vec![1.0, f64::NAN, 0.0], jitter).unwrap_err().to_string();
    assert!(message.contains("node 1") && message.contains("NaN"), "{message}");
    let gp = Gp::new(kernel, nodes.clone(), vec![1.0; 3], jitter).unwrap();
    assert!(gp.predict(&scattered(3, 1, 0.0), Order::Value).is_err());
    assert!(fit(&nodes, &[1.0; 3], &FitOptions { lengthscale_median: -1.0, ..FitOptions::default() }, None).is_err());
    assert!(
        fit(&nodes, &[1.0; 3], &FitOptions { lengthscale_bounds: (2.0, 1.0), ..FitOptions::default() }, None).is_err()
    );
}
