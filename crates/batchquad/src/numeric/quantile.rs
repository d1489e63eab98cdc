//! The standard normal quantile.

/// `Φ⁻¹(p)` for `0 < p < 1`, by AS 241 (Wichura 1988): rational approximations in `p` near the middle, in `√(−log p)`
/// in the tails. Relative error below 1e-15; a few dozen multiplications, in the tails a logarithm and a root.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.425 * 0.425 - q * q;
        return q * ratio(&CENTRE, r);
    }
    // Exact for p > ½, so the two tails mirror each other.
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-libm::log(tail)).sqrt();
    let magnitude = if r <= 5.0 { ratio(&TAIL, r - 1.6) } else { ratio(&FAR_TAIL, r - 5.0) };
    magnitude.copysign(q)
}

/// Numerator and denominator, lowest power first.
type Rational = [[f64; 8]; 2];

fn ratio([numerator, denominator]: &Rational, r: f64) -> f64 {
    let horner = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, c| sum * r + c);
    horner(numerator) / horner(denominator)
}

const CENTRE: Rational = [
    [
        3.3871328727963665,
        133.14166789178438,
        1971.5909503065513,
        13731.69376550946,
        45921.95393154987,
        67265.7709270087,
        33430.57558358813,
        2509.0809287301227,
    ],
    [
        1.0,
        42.31333070160091,
        687.1870074920579,
        5394.196021424751,
        21213.794301586597,
        39307.89580009271,
        28729.085735721943,
        5226.495278852854,
    ],
];

const TAIL: Rational = [
    [
        1.4234371107496835,
        4.630337846156546,
        5.769497221460691,
        3.6478483247632045,
        1.2704582524523684,
        0.2417807251774506,
        0.022723844989269184,
        0.0007745450142783414,
    ],
    [
        1.0,
        2.053191626637759,
        1.6763848301838038,
        0.6897673349851,
        0.14810397642748008,
        0.015198666563616457,
        0.0005475938084995345,
        1.0507500716444169e-09,
    ],
];

const FAR_TAIL: Rational = [
    [
        6.657904643501103,
        5.463784911164114,
        1.7848265399172913,
        0.29656057182850487,
        0.026532189526576124,
        0.0012426609473880784,
        2.7115555687434876e-05,
        2.0103343992922881e-07,
    ],
    [
        1.0,
        0.599832206555888,
        0.1369298809227358,
        0.014875361290850615,
        0.0007868691311456133,
        1.8463183175100548e-05,
        1.421511758316446e-07,
        2.0442631033899397e-15,
    ],
];

/// Quantile of Student's t with four degrees of freedom: `sign(p − ½) · 2 √(q − 1)`, `q = cos(arccos(√a)/3)/√a`, `a = 4p(1 − p)`.
pub(crate) fn student4_quantile(p: f64) -> f64 {
    let root = (4.0 * p * (1.0 - p)).sqrt();
    let q = (root.acos() / 3.0).cos() / root;
    (2.0 * (q - 1.0).max(0.0).sqrt()).copysign(p - 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The polynomials were fitted to 1e-16; evaluating them adds a handful of roundings, each at most ε/2 = 1.1e-16.
    /// Worst found over 20 000 points against 40 digits: 6.9e-16.
    const TOLERANCE: f64 = 1e-15;

    #[test]
    fn student_quantiles_are_those_of_tables() {
        // To the digits of the usual tables.
        for (p, t) in [(0.75, 0.741), (0.9, 1.533), (0.95, 2.132), (0.975, 2.776), (0.995, 4.604), (0.9995, 8.610)] {
            assert!((student4_quantile(p) - t).abs() < 5e-4, "{p}: {}", student4_quantile(p));
            assert!((student4_quantile(1.0 - p) + t).abs() < 5e-4);
        }
        assert_eq!(student4_quantile(0.5), 0.0);
    }

    #[test]
    fn agrees_with_fifty_digits() {
        let reference: serde_json::Value = serde_json::from_str(include_str!("../../tests/data/design.json")).unwrap();
        let pairs = reference["normal_quantile"].as_array().unwrap();
        assert!(pairs.len() > 50);
        for pair in pairs {
            let (p, x) = (pair[0].as_f64().unwrap(), pair[1].as_f64().unwrap());
            let error = (normal_quantile(p) - x).abs();
            assert!(error <= TOLERANCE * x.abs(), "p = {p:e}: {} against {x}, error {error:e}", normal_quantile(p));
        }
    }

    #[test]
    fn is_odd_about_one_half() {
        assert_eq!(normal_quantile(0.5), 0.0);
        for p in [0.25, 0.0625, 2f64.powi(-20), 2f64.powi(-53)] {
            assert_eq!(normal_quantile(1.0 - p), -normal_quantile(p));
        }
    }
}
