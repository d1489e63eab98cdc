//! Priors against mpmath, against themselves (round trips, Jacobians) and against hostile parameters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Error,
    numeric::normal,
    prior::{Distribution, Family, MultivariateNormal, Prior, UnitCubeMap},
};
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct Reference {
    cases: Vec<Case>,
    normal: Vec<NormalTail>,
}

#[derive(serde::Deserialize)]
struct Case {
    distribution: Distribution,
    points: Vec<Point>,
}

#[derive(serde::Deserialize)]
struct Point {
    u: f64,
    theta: f64,
    log_density: Option<f64>,
    log_jacobian: Option<f64>,
}

#[derive(serde::Deserialize)]
struct NormalTail {
    u: f64,
    log_cdf: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("data/prior_reference.json")).unwrap()
}

fn ulp(x: f64) -> f64 {
    x.abs().next_up() - x.abs()
}

/// What the arithmetic may lose in units of `u`: log-tails near −34 at |u| = 8 carry about 1e-14, divided by the hazard |u|;
/// the rest is the conditioning of needle-like shapes, `ε√shape`, and of `log θ` when θ is near the ends of the doubles.
const LATENT_TOLERANCE: f64 = 1e-13;

/// Whether θ was moved because its exact value does not fit a double: then u is gone.
fn is_clamped(theta: f64) -> bool {
    theta.abs() <= f64::MIN_POSITIVE || theta.abs() == f64::MAX
}

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

/// `u → θ → u` to `1e-12 (1 + |u|)` and what a double θ can hold, `4 ulp(θ)/|dθ/du|`.
fn round_trip(distribution: Distribution, u: f64) -> Result<(), String> {
    let theta = distribution.to_theta(u).map_err(|e| e.to_string())?;
    let (low, high) = distribution.support();
    if !(theta > low && theta < high && theta.is_finite()) {
        return Err(format!("{distribution:?} at {u}: {theta:?} is not inside the support"));
    }
    let log_jacobian = distribution.log_jacobian(u).map_err(|e| e.to_string())?;
    if is_clamped(theta) || log_jacobian == f64::NEG_INFINITY {
        return Ok(());
    }
    let back = distribution.to_latent(theta).map_err(|e| e.to_string())?;
    let held = 4.0 * (ulp(theta).ln() - log_jacobian).exp();
    // When a double cannot tell u from its neighbours the linear bound no longer describes the map; θ is then next to an end.
    if held > 0.1 || (back - u).abs() <= 1e-12 * (1.0 + u.abs()) + held {
        Ok(())
    } else {
        Err(format!("{distribution:?}: u = {u:?} → θ = {theta:?} → u = {back:?} (a double holds {held:e})"))
    }
}

/// Log-uniform numbers between two powers of ten.
fn decades(low: f64, high: f64) -> impl Strategy<Value = f64> + Clone {
    (low..high).prop_map(|exponent| 10f64.powf(exponent))
}

fn sensible() -> impl Strategy<Value = Distribution> {
    let (location, scale, shape) = (-1e3..1e3, decades(-6.0, 6.0), decades(-3.0, 12.0));
    prop_oneof![
        (location.clone(), scale.clone()).prop_map(|(m, s)| Distribution::normal(m, s)),
        (-5.0..5.0, decades(-2.0, 1.0)).prop_map(|(m, s)| Distribution::log_normal(m, s)),
        (location.clone(), scale.clone()).prop_map(|(l, w)| Distribution::uniform(l, l + w)),
        (scale.clone(), decades(-3.0, 9.0)).prop_map(|(l, r)| Distribution::log_uniform(l, l * (1.0 + r))),
        (shape.clone(), shape.clone()).prop_map(|(a, b)| Distribution::beta(a, b)),
        (shape.clone(), scale.clone()).prop_map(|(a, r)| Distribution::gamma(a, r)),
        (shape.clone(), scale.clone()).prop_map(|(a, s)| Distribution::inverse_gamma(a, s)),
        scale.clone().prop_map(Distribution::exponential),
        scale.clone().prop_map(Distribution::half_normal),
        (location.clone(), scale.clone()).prop_map(|(m, s)| Distribution::cauchy(m, s)),
        scale.clone().prop_map(Distribution::half_cauchy),
        (decades(-3.0, 12.0), location.clone(), scale.clone()).prop_map(|(n, m, s)| Distribution::student_t(n, m, s)),
        (location, scale, -50.0..50.0, decades(-3.0, 1.5), 0..3).prop_map(|(m, s, z, w, side)| {
            let (low, high) = (m + s * z, m + s * (z + w));
            match side {
                0 => Distribution::truncated_normal(m, s, low, high),
                1 => Distribution::truncated_normal(m, s, low, f64::INFINITY),
                _ => Distribution::truncated_normal(m, s, f64::NEG_INFINITY, high),
            }
        }),
    ]
    .prop_map(Result::unwrap)
}

fn hostile() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        proptest::sample::select(vec![
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            1.0,
            -1.0,
            5e-324,
            -5e-324,
            f64::MIN_POSITIVE,
            1e308,
            -1e308,
            f64::MAX,
            f64::MIN,
            1e-3,
            1e12,
            1e-300,
            1e300,
        ]),
        proptest::num::f64::ANY,
        -10.0..10.0,
    ]
}

fn anything() -> impl Strategy<Value = Family> {
    (0..13, [hostile(), hostile(), hostile(), hostile()]).prop_map(|(family, [a, b, low, high])| match family {
        0 => Family::Normal { mean: a, sd: b },
        1 => Family::LogNormal { mu: a, sigma: b },
        2 => Family::Uniform { low, high, periodic: false },
        3 => Family::LogUniform { low, high },
        4 => Family::Beta { a, b },
        5 => Family::Gamma { shape: a, rate: b },
        6 => Family::InverseGamma { shape: a, scale: b },
        7 => Family::Exponential { rate: a },
        8 => Family::HalfNormal { scale: a },
        9 => Family::Cauchy { location: a, scale: b },
        10 => Family::HalfCauchy { scale: a },
        11 => Family::StudentT { dof: a, location: b, scale: low },
        _ => Family::TruncatedNormal { mean: a, sd: b, low, high },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn latent_points_come_back(distribution in sensible(), u in -8.0..8.0) {
        prop_assert_eq!(round_trip(distribution, u), Ok(()));
    }

    #[test]
    fn the_map_increases(distribution in sensible(), u in -8.0..8.0, step in decades(-3.0, 0.0)) {
        let (below, above) = (distribution.to_theta(u).unwrap(), distribution.to_theta(u + step).unwrap());
        prop_assert!(below <= above, "{below:?} > {above:?}");
    }

    #[test]
    fn jacobians_are_slopes(distribution in sensible(), u in -6.0..6.0) {
        // The truncation of the central difference is h²/6 times the third derivative, which is κ² dθ/du with κ² = l'² + l'' of
        // l = log dθ/du: shapes of 0.001 bend over lengths of 0.001. Then θ is rounded, and u is known to its tolerance.
        let l = |u: f64| distribution.log_jacobian(u).unwrap();
        let (left, right) = (l(u) - l(u - 0.05), l(u + 0.05) - l(u));
        let bend = 10.0 * (left.abs() + right.abs()) + 20.0 * (right - left).abs().sqrt();
        prop_assume!(bend.is_finite()); // θ has overflowed
        let h = 1e-4 / (1.0 + bend);
        let jacobian = l(u).exp();
        let (below, above) = (distribution.to_theta(u - h).unwrap(), distribution.to_theta(u + h).unwrap());
        let slope = (above - below) / (2.0 * h);
        prop_assume!(!is_clamped(below) && !is_clamped(above) && slope.is_finite() && jacobian > 1e-290);
        let location = distribution.to_theta(0.0).unwrap();
        let rounding = 4.0 * ulp(below.abs().max(above.abs()).max(location.abs().min(1e3)));
        let tolerance = 1e-6 * jacobian + (rounding + LATENT_TOLERANCE * (1.0 + u.abs()) * jacobian) / h;
        prop_assert!((slope - jacobian).abs() <= tolerance, "slope {slope:e}, jacobian {jacobian:e}");
    }

    #[test]
    fn hostile_parameters_give_typed_errors_or_good_maps(
        family in anything(),
        u in prop_oneof![-40.0..40.0, hostile().prop_filter("latent points are finite", |u| u.is_finite())],
        theta in hostile(),
    ) {
        match Distribution::try_from(family) {
            Err(Error::Invalid { what, value, expected }) => {
                prop_assert!(what.contains(family.name()), "{what}");
                prop_assert!(!value.is_empty() && !expected.is_empty());
            }
            Err(other) => prop_assert!(false, "{other:?}"),
            Ok(distribution) => {
                let (low, high) = distribution.support();
                let mapped = distribution.to_theta(u).unwrap();
                prop_assert!(mapped > low && mapped < high, "{mapped:?}");
                prop_assert!(!distribution.log_jacobian(u).unwrap().is_nan());
                prop_assert!(!distribution.log_density(mapped).is_nan());
                prop_assert!(!distribution.log_density(theta).is_nan());
                match distribution.to_latent(theta) {
                    Ok(latent) => prop_assert!(latent.is_finite() && theta >= low && theta <= high),
                    Err(Error::OutsideSupport { .. }) => prop_assert!(!(theta > low && theta < high)),
                    Err(error) => prop_assert!(matches!(error, Error::Numerical { .. }), "{error:?}"),
                }
            }
        }
    }

    #[test]
    fn multivariate_normals_never_panic(entries in proptest::collection::vec(hostile(), 6)) {
        let covariance = vec![vec![entries[2], entries[3]], vec![entries[4], entries[5]]];
        if let Ok(prior) = Prior::multivariate_normal(["a", "b"], entries[..2].to_vec(), covariance) {
            let theta = prior.to_theta(&[3.0, -3.0]).unwrap();
            prop_assert!(theta.iter().all(|v| v.is_finite()));
            prop_assert!(!prior.log_density(&theta).unwrap().is_nan());
        }
    }
}

fn is_invalid(result: batchquad::Result<impl std::fmt::Debug>, value: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert!(error.is_recoverable());
    assert!(error.to_string().contains(value), "{error} does not name {value}");
}

#[test]
fn invalid_parameters_are_named() {
    is_invalid(Distribution::normal(f64::NAN, 1.0), "mean of the normal prior is NaN");
    is_invalid(Distribution::normal(0.0, 0.0), "sd of the normal prior is 0.0");
    is_invalid(Distribution::uniform(2.0, 1.0), "high of the uniform prior is 1.0, expected a number > 2.0");
    is_invalid(Distribution::uniform(1.0, 1.0_f64.next_up()), "two doubles");
    is_invalid(Distribution::uniform(f64::MIN, f64::MAX), "high of the uniform prior");
    is_invalid(Distribution::log_uniform(0.0, 1.0), "low of the log-uniform prior is 0.0");
    is_invalid(Distribution::beta(-1.0, 1.0), "a of the beta prior is -1.0");
    is_invalid(Distribution::gamma(1e13, 1.0), "expected a number between 1e-3 and 1e12");
    is_invalid(Distribution::student_t(0.0, 0.0, 1.0), "dof of the student-t prior is 0.0");
    is_invalid(Distribution::truncated_normal(0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY), "at least one finite end");
    is_invalid(Distribution::truncated_normal(0.0, 1.0, 2.0, 1.0), "a number > 2.0");
    is_invalid(Distribution::truncated_normal(0.0, 1.0, f64::INFINITY, f64::INFINITY), "low of");
    is_invalid(Distribution::truncated_normal(0.0, 1e-9, 1.0, 2.0), "standard deviations");
}

#[test]
fn problem_files_are_read_and_validated() {
    let read = |text: &str| serde_json::from_str::<Distribution>(text);
    assert_eq!(read(r#"{"normal": {"mean": 0, "sd": 1}}"#).unwrap(), Distribution::normal(0.0, 1.0).unwrap());
    let half_line = Distribution::truncated_normal(0.0, 1.0, 2.0, f64::INFINITY).unwrap();
    assert_eq!(read(r#"{"truncated-normal": {"mean": 0, "sd": 1, "low": 2}}"#).unwrap(), half_line);
    for case in reference().cases {
        let text = serde_json::to_string(&case.distribution).unwrap();
        assert!(text.starts_with(&format!("{{\"{}\":", case.distribution.family().name())), "{text}");
        assert_eq!(read(&text).unwrap(), case.distribution);
    }
    for (text, message) in [
        (r#"{"normal": {"mean": 0, "sd": -1}}"#, "sd of the normal prior is -1.0"),
        (r#"{"normal": {"mean": 0, "sd": 1, "skew": 0}}"#, "skew"),
        (r#"{"normal": {"mean": 0}}"#, "sd"),
        (r#"{"gaussian": {"mean": 0, "sd": 1}}"#, "gaussian"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let normal = r#"{"mean":[0.0,1.0],"covariance":[[2.0,0.5],[0.5,1.0]]}"#;
    let parsed: MultivariateNormal = serde_json::from_str(normal).unwrap();
    assert_eq!(serde_json::to_string(&parsed).unwrap(), normal);
    assert!(serde_json::from_str::<MultivariateNormal>(r#"{"mean":[0],"covariance":[[-1]]}"#).is_err());
}

#[test]
fn theta_stays_inside_where_the_exact_value_does_not_fit() {
    for (distribution, u, expected) in [
        (Distribution::gamma(0.01, 1.0), -8.0, f64::MIN_POSITIVE),
        (Distribution::inverse_gamma(0.01, 1.0), 8.0, f64::MAX),
        (Distribution::beta(0.01, 0.01), -8.0, f64::MIN_POSITIVE),
        (Distribution::beta(0.01, 0.01), 8.0, 1.0_f64.next_down()),
        (Distribution::uniform(0.0, 1.0), 40.0, 1.0_f64.next_down()),
        (Distribution::uniform(-1.0, 1.0), -40.0, (-1.0_f64).next_up()),
        (Distribution::log_normal(0.0, 100.0), 8.0, f64::MAX),
        (Distribution::cauchy(0.0, 1.0), -40.0, f64::MIN),
        (Distribution::normal(1e308, 1e308), 8.0, f64::MAX),
    ] {
        let distribution = distribution.unwrap();
        assert_eq!(distribution.to_theta(u).unwrap(), expected, "{distribution:?}");
    }
    // 1/(π Φ(−8)), which is far from overflow; Φ(−8) = 6.22096057427178e-16.
    let far = Distribution::cauchy(0.0, 1.0).unwrap().to_theta(8.0).unwrap();
    assert!((far * std::f64::consts::PI * 6.220_960_574_271_78e-16 - 1.0).abs() < 1e-12);
}

#[test]
fn multivariate_normal_is_an_affine_map() {
    // Σ = L Lᵀ with L = [[2, 0], [1, 3]].
    let prior = Prior::multivariate_normal(["a", "b"], vec![1.0, -1.0], vec![vec![4.0, 2.0], vec![2.0, 10.0]]).unwrap();
    assert_eq!(prior.to_theta(&[1.0, 2.0]).unwrap(), [3.0, 6.0]);
    // A triangular solve may multiply by reciprocals: a unit in the last place.
    for (found, exact) in prior.to_latent(&[3.0, 6.0]).unwrap().iter().zip([1.0, 2.0]) {
        assert!((found - exact).abs() <= 2.0 * f64::EPSILON * exact);
    }
    assert!((prior.log_abs_det_jacobian(&[0.3, 0.4]).unwrap() - 6f64.ln()).abs() < 1e-15);
    // −½ (1 + 4) − log 6 − log 2π.
    let expected = -2.5 - 6f64.ln() - (2.0 * std::f64::consts::PI).ln();
    assert!((prior.log_density(&[3.0, 6.0]).unwrap() - expected).abs() < 1e-14);
    assert_eq!(prior.log_density(&[f64::INFINITY, f64::NAN]).unwrap(), f64::NEG_INFINITY);

    // Nothing lies beyond the largest double.
    assert!(Distribution::truncated_normal(0.0, 1e305, f64::NEG_INFINITY, f64::MIN).is_err());
    assert!(Distribution::truncated_normal(0.0, 1e305, f64::MAX, f64::INFINITY).is_err());

    let build = |covariance| MultivariateNormal::new(vec![0.0, 0.0], covariance);
    assert!(matches!(build(vec![vec![1.0, 1.0], vec![1.0, 1.0]]), Err(Error::NotPositiveDefinite { pivot: 1, .. })));
    is_invalid(build(vec![vec![1.0, 0.5], vec![0.4, 1.0]]), "covariance[1][0] of the multivariate normal prior is 0.4");
    is_invalid(build(vec![vec![1.0, f64::NAN], vec![0.4, 1.0]]), "covariance[0][1]");
    assert!(matches!(build(vec![vec![1.0]]), Err(Error::Length { expected: 2, found: 1, .. })));
    assert!(matches!(build(vec![vec![1.0], vec![1.0]]), Err(Error::Length { expected: 2, found: 1, .. })));
    assert!(MultivariateNormal::new(vec![], vec![]).is_err());
}

#[test]
fn products_keep_order_and_name_what_is_outside() {
    let scale = Prior::independent([("scale", Distribution::half_normal(2.0).unwrap())]).unwrap();
    let pair = Prior::multivariate_normal(["a", "b"], vec![0.0, 0.0], vec![vec![1.0, 0.0], vec![0.0, 4.0]]).unwrap();
    let cube = Prior::from_unit_cube(["c"], |v: &[f64]| vec![3.0 * v[0]]).unwrap();
    let prior = Prior::product([pair.clone(), scale.clone(), cube]).unwrap();
    assert_eq!(prior.dim(), 4);
    assert_eq!(prior.names(), ["a", "b", "scale", "c"]);
    let theta = prior.to_theta(&[1.0, 1.0, 0.5, 0.0]).unwrap();
    assert_eq!(theta[..2], [1.0, 2.0]);
    assert_eq!(theta[2], scale.to_theta(&[0.5]).unwrap()[0]);
    assert_eq!(theta[3], 1.5);
    is_invalid(prior.to_latent(&theta), "inverse of the unit-cube map of [\"c\"] is absent");
    is_invalid(prior.log_density(&theta), "log-density of the unit-cube map of [\"c\"] is absent");
    is_invalid(prior.log_abs_det_jacobian(&[0.0; 4]), "log-density of the unit-cube map");

    let prior = Prior::product([pair, scale]).unwrap();
    let u = prior.to_latent(&theta[..3]).unwrap();
    assert!((u[0] - 1.0).abs() + (u[1] - 1.0).abs() + (u[2] - 0.5).abs() < 1e-14);
    // Change of variables: log π(θ) + log |dθ/du| = log φ(u).
    let sum = prior.log_density(&theta[..3]).unwrap() + prior.log_abs_det_jacobian(&u).unwrap();
    assert!((sum - u.iter().map(|u| normal::log_density(*u)).sum::<f64>()).abs() < 1e-13);
    let outside = prior.to_latent(&[0.0, 0.0, -1.0]).unwrap_err();
    assert_eq!(outside.to_string(), "parameter \"scale\" is -1, outside the support (0.0, inf)");
    assert!(matches!(prior.to_latent(&[f64::NAN, 0.0, 1.0]), Err(Error::OutsideSupport { .. })));
    assert_eq!(prior.log_density(&[0.0, 0.0, -1.0]).unwrap(), f64::NEG_INFINITY);
    assert!(matches!(prior.to_theta(&[0.0]), Err(Error::Length { expected: 3, found: 1, .. })));
    is_invalid(prior.to_theta(&[0.0, f64::NAN, 0.0]), "latent coordinate of parameter \"b\" is NaN");
}

#[test]
fn names_are_unique_and_present() {
    let d = Distribution::normal(0.0, 1.0).unwrap();
    assert!(matches!(Prior::independent(Vec::<(String, Distribution)>::new()), Err(Error::Length { .. })));
    is_invalid(Prior::independent([("x", d), ("x", d)]), "name of parameter 1 is \"x\"");
    is_invalid(Prior::independent([("", d)]), "name of parameter 0");
    assert!(matches!(
        Prior::multivariate_normal(["x", "y"], vec![0.0], vec![vec![1.0]]),
        Err(Error::Length { expected: 1, found: 2, .. })
    ));
}

#[test]
fn unit_cube_maps_are_checked() {
    let wrong = Prior::from_unit_cube(["a", "b"], |v: &[f64]| vec![v[0]]).unwrap();
    assert!(matches!(wrong.to_theta(&[0.0, 0.0]), Err(Error::Length { expected: 2, found: 1, .. })));
    let infinite = Prior::from_unit_cube(["a"], |_: &[f64]| vec![f64::INFINITY]).unwrap();
    is_invalid(infinite.to_theta(&[0.0]), "parameter \"a\" from the unit-cube map at [0.5] is inf");
    // Even at |u| = 40 the point is inside the open cube, so a user's logarithm is finite.
    let open = Prior::from_unit_cube(["a"], |v: &[f64]| vec![v[0].ln() - (1.0 - v[0]).ln()]).unwrap();
    assert!(open.to_theta(&[40.0]).is_ok() && open.to_theta(&[-40.0]).is_ok());

    let full = UnitCubeMap::new(|v| vec![4.0 * v[0]])
        .with_inverse(|theta| vec![theta[0] / 4.0])
        .with_log_density(|theta| if (0.0..=4.0).contains(&theta[0]) { -(4f64.ln()) } else { f64::NEG_INFINITY });
    let prior = Prior::from_unit_cube(["a"], full).unwrap();
    let same = Prior::independent([("a", Distribution::uniform(0.0, 4.0).unwrap())]).unwrap();
    for u in [-8.0, -3.0, 0.0, 1.5] {
        let theta = prior.to_theta(&[u]).unwrap();
        assert!((theta[0] / same.to_theta(&[u]).unwrap()[0] - 1.0).abs() < 1e-14);
        assert!((prior.to_latent(&theta).unwrap()[0] - u).abs() < 1e-13);
        assert_eq!(prior.log_density(&theta), same.log_density(&theta));
        let (found, expected) = (prior.log_abs_det_jacobian(&[u]).unwrap(), same.log_abs_det_jacobian(&[u]).unwrap());
        assert!((found - expected).abs() < 1e-14);
    }
    assert!(matches!(prior.to_latent(&[5.0]), Err(Error::OutsideSupport { .. })));
}

#[test]
fn the_ends_of_a_support_are_its_neighbours_inside() {
    for (family, low, high) in [
        (Distribution::uniform(-5.0, 5.0).unwrap(), -5.0, 5.0),
        (Distribution::uniform(0.0, 1e-300).unwrap(), 0.0, 1e-300),
        (Distribution::log_uniform(1e-3, 10.0).unwrap(), 1e-3, 10.0),
    ] {
        for (end, sign) in [(low, -1.0), (high, 1.0)] {
            let u = family.to_latent(end).unwrap();
            assert!(u * sign > 5.0 && u.is_finite(), "{family:?} at {end}: {u}");
        }
        assert!(family.to_latent(low - 1.0).is_err() && family.to_latent(high + 1.0).is_err());
    }
}
