//! Quantiles, densities, Jacobians and tails that mpmath worked out.

use batchquad::numeric::normal;

use crate::{LATENT_TOLERANCE, NormalTail, reference, round_trip, ulp};

#[test]
fn quantiles_agree_with_mpmath() {
    let mut failures = Vec::new();
    for case in reference().cases {
        for point in case.points {
            let theta = case.distribution.to_theta(point.u).unwrap();
            let jacobian = point.log_jacobian.map_or(0.0, f64::exp);
            let tolerance = 4.0 * ulp(point.theta) + LATENT_TOLERANCE * (1.0 + point.u.abs()) * jacobian;
            let (low, high) = case.distribution.support();
            assert!(theta > low && theta < high, "{:?} at {}: {theta:?}", case.distribution, point.u);
            if (theta - point.theta).abs() > tolerance {
                failures.push(format!(
                    "{:?} at {}: {theta:?}, mpmath {:?}, {:.1} × the tolerance",
                    case.distribution,
                    point.u,
                    point.theta,
                    (theta - point.theta).abs() / tolerance
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn log_densities_agree_with_mpmath() {
    let mut failures = Vec::new();
    for case in reference().cases {
        for point in case.points {
            let Some(expected) = point.log_density else { continue };
            let (low, high) = case.distribution.support();
            if point.theta <= low || point.theta >= high {
                continue; // mpmath's θ rounds onto the end, which is not in the open support
            }
            let found = case.distribution.log_density(point.theta);
            // The condition number with respect to θ: near an end the density changes over one spacing of the doubles.
            let slope = (case.distribution.log_density(point.theta.next_up()) - found).abs();
            let slope = if slope.is_finite() { slope } else { 0.0 };
            if (found - expected).abs() > 1e-13 * (1.0 + expected.abs()) + 2.0 * slope {
                failures.push(format!("{:?} at θ = {:?}: {found}, mpmath {expected}", case.distribution, point.theta));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn jacobians_agree_with_mpmath() {
    let mut failures = Vec::new();
    for case in reference().cases {
        for point in case.points {
            let found = case.distribution.log_jacobian(point.u).unwrap();
            // log dθ/du changes by O(1 + |u|) per unit of u, and by ε|log θ| through the rounding of log θ.
            let Some(expected) = point.log_jacobian else { continue };
            if (found - expected).abs() > 1e-12 * (1.0 + expected.abs()) {
                failures.push(format!("{:?} at {}: {found}, mpmath {expected}", case.distribution, point.u));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn reference_points_come_back() {
    let mut failures = Vec::new();
    for case in reference().cases {
        for point in case.points {
            if let Err(message) = round_trip(case.distribution, point.u) {
                failures.push(message);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn normal_tails_agree_with_mpmath() {
    for NormalTail { u, log_cdf } in reference().normal {
        // Rounding u/√2 moves erfc by u² ε, which is ε|log Φ| up to a factor of two.
        let found = normal::log_cdf(u);
        assert!(
            (found / log_cdf - 1.0).abs() < 2e-15 * (1.0 + u.max(0.0).powi(2)),
            "log Φ({u}) = {found:?}, {log_cdf:?}"
        );
        if u <= 0.0 {
            let back = normal::quantile_of_log_cdf(log_cdf);
            assert!((back - u).abs() <= 4e-16 * (1.0 + u.abs()), "Φ⁻¹(exp {log_cdf}) = {back:?}, expected {u}");
            let p = normal::cdf(u);
            assert!((p - log_cdf.exp()).abs() <= 4e-16 * (1.0 + log_cdf.abs()) * p + f64::MIN_POSITIVE);
        }
    }
    assert_eq!(normal::quantile_of_log_cdf(f64::NEG_INFINITY), f64::NEG_INFINITY);
    assert_eq!(normal::quantile_of_log_cdf(0.0), f64::INFINITY);
    assert!(normal::quantile_of_log_cdf(0.1).is_nan());
    assert!(normal::quantile_of_log_cdf(f64::NAN).is_nan());
}
