//! Single parameters, normal vectors, maps of the unit cube and products of these: what they refuse, and the ends of their supports.

use batchquad::{
    Error,
    numeric::normal,
    prior::{Distribution, MultivariateNormal, Prior, UnitCubeMap},
};

use crate::reference;

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
