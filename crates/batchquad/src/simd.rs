//! Vectorised scalar work: plain loops compiled for the widest instruction set that the machine at hand has. `MATH.md` §11.
//!
//! Results do not depend on the number of threads, nor on the width of the vectors: sums are taken in eight interleaved
//! partial sums whatever the machine.

use pulp::{Arch, Simd, WithSimd};

/// `a·b + c`, fused where the machine can (elsewhere `mul_add` would be a slow library call).
#[inline(always)]
pub(crate) fn fma<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}

/// `eˣ`, zero below −708 and +∞ above 709, without branches; within 2 units in the last place.
///
/// `x = n ln 2 + r`, `|r| ≤ ½ ln 2`, `eʳ` by its Taylor polynomial of degree 13 (remainder below 4·10⁻¹⁸), `2ⁿ` by its bits.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: f64) -> f64 {
    /// `1.5·2⁵²`: adding it rounds to the nearest integer and leaves that integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const COEFFICIENTS: [f64; 13] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let shifted = fma::<S>(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<S>(n, -LN2_LOW, fma::<S>(n, -LN2_HIGH, x));
    let mut p = 1.0 / 6_227_020_800.0;
    for c in COEFFICIENTS {
        p = fma::<S>(p, r, c);
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = if x < -708.0 { 0.0 } else { p * power };
    if x > 709.0 { f64::INFINITY } else { value }
}

struct Dot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let mut lanes = [0.0; 8];
        let (a, b) = (self.0.chunks_exact(8), self.1.chunks_exact(8));
        let (rest_a, rest_b) = (a.remainder(), b.remainder());
        for (x, y) in a.zip(b) {
            for k in 0..8 {
                lanes[k] = fma::<S>(x[k], y[k], lanes[k]);
            }
        }
        for (k, (x, y)) in rest_a.iter().zip(rest_b).enumerate() {
            lanes[k] = fma::<S>(*x, *y, lanes[k]);
        }
        ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
    }
}

/// `Σ aᵢ bᵢ` over the shorter length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    Arch::new().dispatch(Dot(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exp_of(x: f64) -> f64 {
        struct One(f64);
        impl WithSimd for One {
            type Output = f64;
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> f64 {
                exp::<S>(self.0)
            }
        }
        Arch::new().dispatch(One(x))
    }

    proptest! {
        #[test]
        fn exp_is_within_two_units_in_the_last_place(x in -708.0..300.0_f64) {
            let (ours, exact) = (exp_of(x), libm::exp(x));
            prop_assert!((ours - exact).abs() <= 2.0 * f64::EPSILON * exact, "{x}: {ours} {exact}");
        }
    }

    #[test]
    fn exp_at_its_ends() {
        assert_eq!(exp_of(0.0), 1.0);
        assert_eq!(exp_of(-1e6), 0.0);
        assert_eq!(exp_of(-1e300), 0.0);
        assert_eq!(exp_of(f64::NEG_INFINITY), 0.0);
        assert!(exp_of(-707.9) > 0.0);
        assert!((exp_of(708.5) / libm::exp(708.5) - 1.0).abs() < 1e-15);
        assert_eq!(exp_of(921.0), f64::INFINITY);
        assert_eq!(exp_of(1e300), f64::INFINITY);
    }

    #[test]
    fn dot_is_the_sum() {
        let a: Vec<f64> = (0..37).map(f64::from).collect();
        assert_eq!(dot(&a, &a), 16206.0);
        assert_eq!(dot(&a[..3], &a[..3]), 5.0);
    }
}
