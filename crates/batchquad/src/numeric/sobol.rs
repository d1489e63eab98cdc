//! The Sobol sequence with Owen's nested uniform scrambling.

use crate::{
    error::{Error, Result},
    numeric::directions::DIRECTIONS,
    numeric::rng::{Purpose, Stream, open_unit},
};

/// Scrambled Sobol points in `(0, 1)ᵈ`, addressed by their index.
///
/// Any `2ᵐ` points that start at a multiple of `2ᵐ` are a digital net, and scrambling keeps them one: in every
/// dimension each of the `2ᵐ` equal intervals holds exactly one point, and in the first two dimensions together so does
/// each rectangle of area `2⁻ᵐ` with dyadic sides. Every single point is uniform over the seeds, so averages are
/// unbiased.
///
/// ```
/// use batchquad::numeric::SobolSequence;
/// let sobol = SobolSequence::new(2, 7)?;
/// let left = (0..8).filter(|&i| sobol.point(i)[0] < 0.5).count();
/// assert_eq!(left, 4);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SobolSequence {
    dimensions: Vec<Dimension>,
}

#[derive(Debug, Clone)]
struct Dimension {
    directions: [u32; DIGITS],
    key: u64,
}

/// Binary digits of the unscrambled points. An index has as many, so all 2³² points are distinct in each coordinate.
const DIGITS: usize = u32::BITS as usize;

impl SobolSequence {
    /// The largest dimension there are direction numbers for.
    pub const MAX_DIM: usize = DIRECTIONS.len() + 1;

    /// The sequence in `dim` dimensions, scrambled by `seed`. The first coordinates do not depend on `dim`.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless `1 ≤ dim ≤` [`SobolSequence::MAX_DIM`].
    pub fn new(dim: usize, seed: u64) -> Result<Self> {
        if dim == 0 || dim > Self::MAX_DIM {
            let expected = format!("1 to {}", Self::MAX_DIM);
            return Err(Error::invalid("dimension of the Sobol sequence", dim, expected));
        }
        let mut keys = Stream::new(seed, Purpose::Scramble, 0);
        let directions = std::iter::once(van_der_corput()).chain(DIRECTIONS.iter().map(|&(p, m)| extend(p, m)));
        let dimensions = directions.take(dim).map(|directions| Dimension { directions, key: keys.bits() }).collect();
        Ok(Self { dimensions })
    }

    /// The dimension, at least 1.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dimensions.len()
    }

    /// Point `index`, every coordinate strictly inside `(0, 1)` and resolved to 52 binary digits.
    ///
    /// Costs 33 evaluations of a 64-bit hash for each coordinate.
    #[must_use]
    pub fn point(&self, index: u32) -> Vec<f64> {
        self.dimensions.iter().map(|d| open_unit(scramble(d.digits(index), d.key))).collect()
    }

    /// Point `index` before scrambling, in `[0, 1)ᵈ`: an exact multiple of 2⁻³². Point 0 is the origin.
    #[must_use]
    pub fn unscrambled_point(&self, index: u32) -> Vec<f64> {
        self.dimensions.iter().map(|d| f64::from(d.digits(index)) / (1_u64 << DIGITS) as f64).collect()
    }
}

impl Dimension {
    /// The digits of point `index`, the leading one in the highest bit: `⊕ vₖ` over the digits `k` of its Gray code.
    ///
    /// Gray-code order is the order in which other implementations list the points one after another.
    fn digits(&self, index: u32) -> u32 {
        let gray = index ^ (index >> 1);
        (0..DIGITS).filter(|k| gray >> k & 1 == 1).fold(0, |digits, k| digits ^ self.directions[k])
    }
}

fn van_der_corput() -> [u32; DIGITS] {
    std::array::from_fn(|k| 1 << (DIGITS - 1 - k))
}

/// All direction numbers from the initial ones: `vₖ = vₖ₋ₛ ⊕ (vₖ₋ₛ ≫ s) ⊕ a₁vₖ₋₁ ⊕ … ⊕ aₛ₋₁vₖ₋ₛ₊₁`, for the primitive
/// polynomial `xˢ + a₁xˢ⁻¹ + … + aₛ₋₁x + 1`.
fn extend(polynomial: u32, initial: &[u32]) -> [u32; DIGITS] {
    let s = initial.len();
    let mut v = van_der_corput();
    for (direction, m) in v.iter_mut().zip(initial) {
        *direction *= m;
    }
    for k in s..DIGITS {
        v[k] = (1..s).filter(|j| polynomial >> (s - j) & 1 == 1).fold(v[k - s] ^ (v[k - s] >> s), |x, j| x ^ v[k - j]);
    }
    v
}

/// Nested uniform scrambling (Owen 1995): each digit is flipped or not by a coin that belongs to the digits before it.
///
/// The digits before form a node of a binary tree, numbered `1b₁b₂…bₖ` in binary, and its coin is a hash of that
/// number. Below the last digit the point has only zeros, each with a coin of its own: together one more hash.
fn scramble(digits: u32, key: u64) -> u64 {
    let path = 1 << DIGITS | u64::from(digits);
    let flips = (1..=DIGITS).rev().fold(0, |flips, height| flips << 1 | hash(key, path >> height) >> 63);
    (u64::from(digits) ^ flips) << DIGITS | hash(key, path) >> DIGITS
}

/// Output number `counter` of the SplitMix64 generator (Steele, Lea and Flood 2014) started at `key`.
fn hash(key: u64, counter: u64) -> u64 {
    let z = key.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
