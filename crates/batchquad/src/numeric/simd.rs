//! Vectorised scalar work: plain loops compiled for the widest instruction set that the machine at hand has. [`MATH.md`
//! §11](crate::math).
//!
//! Results do not depend on the number of threads, nor on the width of the vectors: sums are taken in sixteen
//! interleaved partial sums whatever the machine.

use pulp::{Arch, Simd, WithSimd};

/// `a·b + c`, fused where the machine can (elsewhere `mul_add` would be a slow library call).
#[inline(always)]
pub(crate) fn fma<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}

/// `eˣ`, zero below −708 and +∞ above 709, without branches; within 2 units in the last place.
///
/// `x = n ln 2 + r`, `|r| ≤ ½ ln 2`, `eʳ` by its Taylor polynomial of degree 13 (remainder below 4·10⁻¹⁸), `2ⁿ` by its
/// bits. All `N` numbers take each step together: one after the other they would wait for the latency of every
/// multiplication.
#[inline(always)]
pub(crate) fn exp<S: Simd, const N: usize>(x: &mut [f64; N]) {
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
    let (mut shifted, mut r, mut p) = ([0.0; N], [0.0; N], [1.0 / 6_227_020_800.0; N]);
    for k in 0..N {
        shifted[k] = fma::<S>(x[k], std::f64::consts::LOG2_E, ROUND);
        let n = shifted[k] - ROUND;
        r[k] = fma::<S>(n, -LN2_LOW, fma::<S>(n, -LN2_HIGH, x[k]));
    }
    for c in COEFFICIENTS {
        for k in 0..N {
            p[k] = fma::<S>(p[k], r[k], c);
        }
    }
    for k in 0..N {
        let power = f64::from_bits(shifted[k].to_bits().wrapping_add(1023) << 52);
        let value = if x[k] < -708.0 { 0.0 } else { p[k] * power };
        x[k] = if x[k] > 709.0 { f64::INFINITY } else { value };
    }
}

/// `Σ aᵢ bᵢ` over the shorter length, for use inside a dispatched function.
#[inline(always)]
pub(crate) fn inner<S: Simd>(a: &[f64], b: &[f64]) -> f64 {
    #[inline(always)]
    fn part<S: Simd, const N: usize>(a: &[[f64; N]], b: &[[f64; N]]) -> f64 {
        let mut lanes = [0.0; N];
        for (a, b) in a.iter().zip(b) {
            for k in 0..N {
                lanes[k] = fma::<S>(a[k], b[k], lanes[k]);
            }
        }
        total(lanes)
    }
    let length = a.len().min(b.len());
    let ([a16, a4, a1], [b16, b4, b1]) = (split(&a[..length]), split(&b[..length]));
    part::<S, 16>(a16.as_chunks().0, b16.as_chunks().0)
        + (part::<S, 4>(a4.as_chunks().0, b4.as_chunks().0) + part::<S, 1>(a1.as_chunks().0, b1.as_chunks().0))
}

/// A slice cut into whole sixteens, whole fours and the rest, which are summed in as many partial sums: enough
/// independent additions to hide their latency, and nothing that leaves the registers.
#[inline(always)]
pub(crate) fn split(a: &[f64]) -> [&[f64]; 3] {
    let (sixteens, rest) = a.split_at(a.len() - a.len() % 16);
    let (fours, ones) = rest.split_at(rest.len() - rest.len() % 4);
    [sixteens, fours, ones]
}

/// The sum of partial sums, in one order everywhere.
#[inline(always)]
pub(crate) fn total<const N: usize>(mut lanes: [f64; N]) -> f64 {
    let mut width = N / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] += lanes[k + width];
        }
        width /= 2;
    }
    lanes[0]
}

struct Exponentials<'a>(&'a mut [f64]);

impl WithSimd for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (blocks, rest) = self.0.as_chunks_mut::<16>();
        for block in blocks {
            exp::<S, 16>(block);
        }
        let mut last = [0.0; 16];
        last[..rest.len()].copy_from_slice(rest);
        exp::<S, 16>(&mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// `eˣ` of each number.
pub(crate) fn exponentials(x: &mut [f64]) {
    Arch::new().dispatch(Exponentials(x));
}

struct Dot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        inner::<S>(self.0, self.1)
    }
}

/// `Σ aᵢ bᵢ` over the shorter length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    Arch::new().dispatch(Dot(a, b))
}

struct TwoMoments<'a> {
    factor: &'a [f64],
    weights: [&'a [f64]; 2],
    values: &'a [f64],
    origin: f64,
}

impl WithSimd for TwoMoments<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [f64; 2] {
        #[inline(always)]
        fn part<S: Simd, const N: usize>([f, a, b, v]: [&[[f64; N]]; 4], origin: f64) -> [f64; 2] {
            let (mut first, mut second) = ([0.0; N], [0.0; N]);
            for (((f, a), b), v) in f.iter().zip(a).zip(b).zip(v) {
                for k in 0..N {
                    let moment = f[k] * (v[k] - origin);
                    first[k] = fma::<S>(a[k], moment, first[k]);
                    second[k] = fma::<S>(b[k], moment, second[k]);
                }
            }
            [total(first), total(second)]
        }
        let [a, b] = self.weights;
        let [f, a, b, v] = [split(self.factor), split(a), split(b), split(self.values)];
        let chunks = |k: usize| [f[k], a[k], b[k], v[k]];
        let [x, y, z] = [chunks(0), chunks(1), chunks(2)];
        let x = part::<S, 16>(
            [x[0].as_chunks().0, x[1].as_chunks().0, x[2].as_chunks().0, x[3].as_chunks().0],
            self.origin,
        );
        let y =
            part::<S, 4>([y[0].as_chunks().0, y[1].as_chunks().0, y[2].as_chunks().0, y[3].as_chunks().0], self.origin);
        let z =
            part::<S, 1>([z[0].as_chunks().0, z[1].as_chunks().0, z[2].as_chunks().0, z[3].as_chunks().0], self.origin);
        [x[0] + (y[0] + z[0]), x[1] + (y[1] + z[1])]
    }
}

/// `Σ aᵢ fᵢ (vᵢ − o)` for two weights `a` at once. All slices are as long as the values `v`.
pub(crate) fn moments(factor: &[f64], weights: [&[f64]; 2], values: &[f64], origin: f64) -> [f64; 2] {
    Arch::new().dispatch(TwoMoments { factor, weights, values, origin })
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
                let mut x = [self.0];
                exp::<S, 1>(&mut x);
                x[0]
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

    #[test]
    fn moments_are_their_sums() {
        let [f, a, b, v] =
            [0.3, 0.7, 1.1, 1.9].map(|w: f64| (0..37).map(|i| (w * f64::from(i)).sin()).collect::<Vec<_>>());
        let direct = |w: &[f64]| (0..37).map(|i| w[i] * f[i] * (v[i] - 0.4)).sum::<f64>();
        let ours = moments(&f, [&a, &b], &v, 0.4);
        assert!((ours[0] - direct(&a)).abs() < 1e-14 && (ours[1] - direct(&b)).abs() < 1e-14);
    }
}
