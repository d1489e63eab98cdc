//! Round trips and slopes of the map between θ and u, with sensible and with hostile parameters.

use batchquad::{
    Error,
    prior::{Distribution, Family, Prior},
};
use proptest::prelude::*;

use crate::{LATENT_TOLERANCE, is_clamped, round_trip, ulp};

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
