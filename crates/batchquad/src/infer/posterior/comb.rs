//! Very many equal Gaussians as few on a regular comb: [`MATH.md` §7](crate::math).
//!
//! A sum `Σ wᵢ N(y; cᵢ, 1)` over millions of centres is wanted at many places. As a function of its centre the Gaussian
//! is so smooth that it is interpolated from sixteen teeth of a comb, fourteen teeth to a standard deviation: each
//! weight is handed to the sixteen teeth around its centre, and from then on only teeth are summed. The error,
//! `(δ/2)¹⁶ √16!` for the spacing `δ = 1/14`, is `3·10⁻¹⁷` of the weight, and moments up to the fifteenth are those of
//! the centres themselves.
//!
//! Weights of both signs may cancel to a millionth of their size and less, so rounding matters. The centre of a pair is
//! the sum of two halves, and each half is rounded once, as a whole number of teeth and a fraction: an error that a
//! node brings into all its pairs is that of a node that stands elsewhere by `10⁻¹⁵`, and does no harm; one that
//! differs from pair to pair would.

use pulp::{Arch, Simd, WithSimd};

use crate::{
    error::{Error, Result},
    numeric::{normal, simd::fma},
};

/// Teeth that share the weight of one centre.
const WINDOW: usize = 16;

/// The teeth of a window before the cell that the centre lies in.
pub(super) const BEFORE: usize = WINDOW / 2 - 1;

/// Teeth in a standard deviation.
const TEETH: f64 = 14.0;

/// Standard deviations beyond which a tooth is not felt: `exp(−9²/2) = 3·10⁻¹⁸`.
pub(super) const REACH: f64 = 9.0;

/// The most teeth of a comb; more are refused.
const MOST: usize = 1 << 22;

/// Centres farther out than this cannot be told apart to a tooth.
const FARTHEST: f64 = 1e12;

/// `1/∏ₘ (j − m)` over the other teeth `m` of a window.
const BARYCENTRIC: [f64; WINDOW] = {
    let mut out = [1.0; WINDOW];
    let mut j = 0;
    while j < WINDOW {
        let mut m = 0;
        while m < WINDOW {
            if m != j {
                out[j] /= j as f64 - m as f64;
            }
            m += 1;
        }
        j += 1;
    }
    out
};

/// Lagrange's polynomials at `at`, between the two middle teeth of a window.
#[inline(always)]
pub(super) fn shares(at: f64) -> [f64; WINDOW] {
    /// In place of a distance of zero: its tooth then takes everything, as it should.
    const NONE: f64 = 1e-300;
    let mut distance = [0.0; WINDOW];
    for j in 0..WINDOW {
        distance[j] = at - j as f64;
    }
    distance[BEFORE] = if distance[BEFORE] == 0.0 { NONE } else { distance[BEFORE] };
    let (mut out, mut parts) = ([0.0; WINDOW], [0.0; 4]);
    for j in 0..WINDOW {
        out[j] = BARYCENTRIC[j] / distance[j];
    }
    for j in 0..WINDOW {
        parts[j % 4] += out[j];
    }
    // Divided by their sum rather than multiplied by the product of all distances: fewer roundings.
    let whole = ((parts[0] + parts[2]) + (parts[1] + parts[3])).recip();
    for share in &mut out {
        *share *= whole;
    }
    out
}

/// A place on a ruler: whole teeth and a fraction of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    teeth: i32,
    fraction: f64,
}

impl Mark {
    /// The origin of the ruler.
    pub(super) const ORIGIN: Self = Self { teeth: 0, fraction: 0.0 };

    /// The first tooth of the window around the sum of two marks, and its place in that window.
    #[inline(always)]
    fn window(self, other: Self) -> (usize, f64) {
        let fraction = self.fraction + other.fraction;
        let carry = fraction >= 1.0;
        let cell = self.teeth + other.teeth + i32::from(carry);
        // Rulers begin a window before the first centre.
        (cell as usize - BEFORE, fraction - f64::from(u8::from(carry)) + BEFORE as f64)
    }
}

/// Where the teeth of one direction stand.
#[derive(Debug, Clone, Copy)]
struct Ruler {
    origin: f64,
    teeth: usize,
}

impl Ruler {
    /// Room for centres between `low` and `high`.
    fn over(low: f64, high: f64) -> Result<Self> {
        let cells = ((high - low) * TEETH).ceil();
        if !(low.abs().max(high.abs()) < FARTHEST && cells < MOST as f64) {
            return Err(Error::Numerical {
                what: "posterior in closed form".into(),
                reason: format!("centres from {low} to {high} standard deviations need more than {MOST} teeth"),
            });
        }
        // One cell more than needed on each side, so that rounding cannot lead out of the comb.
        Ok(Self { origin: low - (BEFORE as f64 + 1.0) / TEETH, teeth: cells as usize + WINDOW + 2 })
    }

    /// Marks of which `parts` make up a centre: their sum is the mark of the sum of their places.
    fn marks(&self, places: &[f64], parts: f64) -> Result<Vec<Mark>> {
        let mark = |place: &f64| {
            let teeth = (place - self.origin / parts) * TEETH;
            // A centre that is no number has no place, and would be taken for one far away.
            if teeth.abs() < (4 * MOST) as f64 {
                Ok(Mark { teeth: teeth.floor() as i32, fraction: teeth - teeth.floor() })
            } else {
                let reason = format!("a centre at {place} standard deviations has no place among the others");
                Err(Error::Numerical { what: "posterior in closed form".into(), reason })
            }
        };
        places.iter().map(mark).collect()
    }

    /// The coordinate of a tooth.
    fn tooth(&self, j: usize) -> f64 {
        self.origin + j as f64 / TEETH
    }

    /// The teeth that are felt at `y`.
    fn felt(&self, y: f64) -> std::ops::Range<usize> {
        let index = |y: f64| (((y - self.origin) * TEETH).max(0.0) as usize).min(self.teeth);
        index(y - REACH)..index(y + REACH + 1.0 / TEETH)
    }
}

/// Weighted centres on a line, in units of the standard deviation.
#[derive(Debug, Clone)]
pub(super) struct Line {
    ruler: Ruler,
    weights: Vec<f64>,
    /// The sum of the weights before each tooth.
    before: Vec<f64>,
}

impl Line {
    /// An empty comb with room for centres between `low` and `high`.
    pub(super) fn over(low: f64, high: f64) -> Result<Self> {
        let ruler = Ruler::over(low, high)?;
        Ok(Self { ruler, weights: vec![0.0; ruler.teeth], before: Vec::new() })
    }

    /// Marks of which `parts`, one or two, make up a centre.
    pub(super) fn marks(&self, places: &[f64], parts: f64) -> Result<Vec<Mark>> {
        self.ruler.marks(places, parts)
    }

    /// Adds centres at `partner + marks[i]`; weights that are not larger than `floor` are left out.
    pub(super) fn add(&mut self, partner: Mark, marks: &[Mark], weights: &[f64], floor: f64) {
        struct Add<'a>(&'a mut Line, Mark, &'a [Mark], &'a [f64], f64);
        impl WithSimd for Add<'_> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                let Self(line, partner, marks, weights, floor) = self;
                for (mark, &weight) in marks.iter().zip(weights) {
                    if weight.abs() <= floor {
                        continue;
                    }
                    let (first, at) = partner.window(*mark);
                    let share = shares(at);
                    if let Some(teeth) = line.weights[first..].first_chunk_mut::<WINDOW>() {
                        for j in 0..WINDOW {
                            teeth[j] = fma::<S>(weight, share[j], teeth[j]);
                        }
                    }
                }
            }
        }
        Arch::new().dispatch(Add(self, partner, marks, weights, floor));
    }

    /// To be called when all is added, before masses are asked for.
    pub(super) fn finish(mut self) -> Self {
        let running = self.weights.iter().scan(0.0, |sum, w| {
            *sum += w;
            Some(*sum)
        });
        self.before = std::iter::once(0.0).chain(running).collect();
        self
    }

    /// `Σ w N(y; c, 1)`. Cost: 250 exponentials.
    pub(super) fn density(&self, y: f64) -> f64 {
        let term = |j: usize| self.weights[j] * normal::log_density(y - self.ruler.tooth(j)).exp();
        self.ruler.felt(y).map(term).sum()
    }

    /// `Σ w Φ(y − c)`.
    pub(super) fn mass_below(&self, y: f64) -> f64 {
        let felt = self.ruler.felt(y);
        self.before[felt.start] + felt.map(|j| self.weights[j] * normal::cdf(y - self.ruler.tooth(j))).sum::<f64>()
    }

    /// The first and the last place where anything is felt.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.ruler.origin - REACH, self.ruler.tooth(self.ruler.teeth) + REACH)
    }
}

/// Weighted centres in a plane, in coordinates in which the Gaussian is a round one of width one.
#[derive(Debug, Clone)]
pub(super) struct Plane {
    rulers: [Ruler; 2],
    /// The teeth of the second direction are next to each other.
    weights: Vec<f64>,
}

impl Plane {
    pub(super) fn over(first: (f64, f64), second: (f64, f64)) -> Result<Self> {
        let rulers = [Ruler::over(first.0, first.1)?, Ruler::over(second.0, second.1)?];
        let teeth = rulers[0].teeth * rulers[1].teeth;
        if teeth > MOST {
            let reason = format!("the plane needs {teeth} teeth, more than {MOST}");
            return Err(Error::Numerical { what: "posterior in closed form".into(), reason });
        }
        Ok(Self { rulers, weights: vec![0.0; teeth] })
    }

    /// Marks in both directions, as [`Line::marks`].
    pub(super) fn marks(&self, places: [&[f64]; 2], parts: f64) -> Result<[Vec<Mark>; 2]> {
        Ok([self.rulers[0].marks(places[0], parts)?, self.rulers[1].marks(places[1], parts)?])
    }

    /// Adds centres at `partner + marks[i]`; weights that are not larger than `floor` are left out.
    pub(super) fn add(&mut self, partner: [Mark; 2], marks: [&[Mark]; 2], weights: &[f64], floor: f64) {
        struct Add<'a>(&'a mut Plane, [Mark; 2], [&'a [Mark]; 2], &'a [f64], f64);
        impl WithSimd for Add<'_> {
            type Output = ();
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                let Self(plane, partner, marks, weights, floor) = self;
                let width = plane.rulers[1].teeth;
                for ((x, y), &weight) in marks[0].iter().zip(marks[1]).zip(weights) {
                    if weight.abs() <= floor {
                        continue;
                    }
                    let ((row, at_row), (column, at_column)) = (partner[0].window(*x), partner[1].window(*y));
                    let (along, across) = (shares(at_row), shares(at_column));
                    for i in 0..WINDOW {
                        let start = (row + i) * width + column;
                        let part = weight * along[i];
                        if let Some(teeth) = plane.weights[start..].first_chunk_mut::<WINDOW>() {
                            for j in 0..WINDOW {
                                teeth[j] = fma::<S>(part, across[j], teeth[j]);
                            }
                        }
                    }
                }
            }
        }
        Arch::new().dispatch(Add(self, partner, marks, weights, floor));
    }

    /// The sums over the first direction at `y`: what is left is a line in the second.
    pub(super) fn cut(&self, y: f64) -> Line {
        let width = self.rulers[1].teeth;
        let mut line = Line { ruler: self.rulers[1], weights: vec![0.0; width], before: Vec::new() };
        for i in self.rulers[0].felt(y) {
            let factor = normal::log_density(y - self.rulers[0].tooth(i)).exp();
            for (sum, weight) in line.weights.iter_mut().zip(&self.weights[i * width..(i + 1) * width]) {
                *sum += factor * weight;
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centres_that_are_no_numbers_are_refused() {
        let line = Line::over(-6.0, 6.0).unwrap();
        for place in [f64::NAN, f64::INFINITY, -1e300, 1e17] {
            assert!(line.marks(&[0.0, place], 1.0).is_err(), "{place}");
        }
        for (low, high) in [(1e300, 1e300), (f64::NAN, 1.0), (0.0, f64::NAN), (-f64::MAX, f64::MAX), (3e15, 3e15 + 1.0)]
        {
            assert!(Line::over(low, high).is_err(), "{low} {high}");
        }
    }

    /// Centres on and between teeth, with weights of both signs.
    fn centres() -> Vec<(f64, f64)> {
        (0..200)
            .map(f64::from)
            .map(|i| ((0.7 * i).sin() * 6.0, (1.3 * i).cos()))
            .chain([(1.0, 2.0), (0.1, -1.0)])
            .collect()
    }

    #[test]
    fn a_line_is_the_sum_it_stands_for() {
        let (at, weights): (Vec<f64>, Vec<f64>) = centres().into_iter().unzip();
        let mut line = Line::over(-6.0, 6.0).unwrap();
        // Each place is the sum of two, as for the centres of pairs.
        let (partner, rest) = (0.25, at.iter().map(|c| c - 0.25).collect::<Vec<_>>());
        line.add(line.marks(&[partner], 2.0).unwrap()[0], &line.marks(&rest, 2.0).unwrap(), &weights, 0.0);
        let line = line.finish();
        // The rounding of some 130 weights of size one.
        for i in -170..170 {
            let y = f64::from(i) * 0.09;
            let density: f64 = centres().iter().map(|(c, w)| w * normal::log_density(y - c).exp()).sum();
            let mass: f64 = centres().iter().map(|(c, w)| w * normal::cdf(y - c)).sum();
            assert!((line.density(y) - density).abs() < 1e-12, "{y}: {} {density}", line.density(y));
            assert!((line.mass_below(y) - mass).abs() < 1e-12, "{y}: {} {mass}", line.mass_below(y));
        }
    }

    #[test]
    fn a_plane_is_the_sum_it_stands_for() {
        let (x, weights): (Vec<f64>, Vec<f64>) = centres().into_iter().unzip();
        let y: Vec<f64> = x.iter().map(|x| 0.5 * (3.0 * x).sin() - 1.0).collect();
        let mut plane = Plane::over((-6.0, 6.0), (-1.5, -0.5)).unwrap();
        let [a, b] = plane.marks([&x, &y], 1.0).unwrap();
        plane.add([Mark::ORIGIN; 2], [&a, &b], &weights, 0.0);
        for i in -20..20 {
            let s = f64::from(i) * 0.4;
            let line = plane.cut(s);
            for j in -10..10 {
                let t = f64::from(j) * 0.4;
                let term =
                    |k: usize| weights[k] * (normal::log_density(s - x[k]) + normal::log_density(t - y[k])).exp();
                let density: f64 = (0..x.len()).map(term).sum();
                assert!((line.density(t) - density).abs() < 1e-12, "{s} {t}: {} {density}", line.density(t));
            }
        }
    }

    #[test]
    fn a_comb_that_does_not_fit_is_refused() {
        assert!(Line::over(0.0, 1e9).is_err() && Line::over(0.0, f64::NAN).is_err());
        assert!(Plane::over((0.0, 300.0), (0.0, 300.0)).is_err());
    }
}
