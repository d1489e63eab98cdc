//! Random streams that are addressed, never consumed: [`MATH.md` §12](crate::math).
//!
//! A stream is named by (seed, purpose, counter); the same name gives the same numbers at any time, in any order, on
//! any platform with IEEE 754 arithmetic. Nothing random has to be carried along or stored, so a resumed run draws what
//! the first one would have drawn.
//!
//! The bits are ChaCha8 with the key `seed ‖ purpose` and the nonce `counter`: different names are different inputs of
//! the cipher, so no two streams can coincide by accident of a hash. What is made of the bits uses only integer
//! arithmetic, operations that IEEE 754 rounds correctly (+, −, ×, ÷, √) and [`libm::log`], which is compiled from one
//! source everywhere. The logarithm of the platform may differ in its last bit and is not used.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::types::JobId;

/// What a stream is for, so that two uses of the same counter do not see the same numbers.
///
/// The values are part of every result that was ever stored: they may be added to, but not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u64)]
pub enum Purpose {
    /// Scrambling of low-discrepancy points.
    Scramble = 1,
    /// Initial designs drawn from the prior; the counter is the point.
    Design = 2,
    /// Seeds handed to the likelihood; the counter is the job.
    Job = 3,
    /// Starts of the search for nodes; the counter is the number of jobs asked so far.
    Select = 5,
    /// Draws from the posterior.
    Posterior = 6,
    /// Baselines and simulated data.
    Experiment = 7,
    /// Support points of iterated Laplace approximations; the counter is the component.
    Support = 8,
    /// Shifts of the nets that integrate a surrogate.
    Integral = 9,
    /// Seeds of independent runs; the counter is the run.
    Repeat = 10,
}

/// The random numbers at one address.
///
/// ```
/// use batchquad::numeric::{Purpose, Stream};
/// let mut a = Stream::new(1, Purpose::Select, 20);
/// let mut b = Stream::new(1, Purpose::Select, 20);
/// assert_eq!(a.normals(5), b.normals(5));
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    rng: ChaCha8Rng,
    spare: Option<f64>,
}

impl Stream {
    /// The stream named by `seed`, `purpose` and `counter`, from its beginning.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, counter: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(counter);
        Self { rng, spare: None }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform on `[0, 1)`: a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * f64::EPSILON * 0.5
    }

    /// Uniform on the open interval `(0, 1)`: an odd multiple of 2⁻⁵³, so that neither end can occur.
    pub fn uniform_open(&mut self) -> f64 {
        open_unit(self.bits())
    }

    /// Standard normal, by the polar method of Marsaglia.
    ///
    /// For `(a, b)` uniform in the unit disc and `s = a² + b²`, both `a √(−2 log s / s)` and the same of `b` are
    /// standard normal and independent. The second is kept for the next call, so normals use about 1.27 uniforms each.
    pub fn normal(&mut self) -> f64 {
        if let Some(second) = self.spare.take() {
            return second;
        }
        loop {
            let (a, b) = (2.0 * self.uniform_open() - 1.0, 2.0 * self.uniform_open() - 1.0);
            let s = a * a + b * b;
            // s > 0: neither a nor b can be zero, being odd multiples of 2⁻⁵².
            if s < 1.0 {
                let stretch = (-2.0 * libm::log(s) / s).sqrt();
                self.spare = Some(b * stretch);
                return a * stretch;
            }
        }
    }

    /// The next `n` standard normals, as `n` calls of [`Stream::normal`] would give them.
    pub fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }

    /// Uniform on `0..n` without bias; `None` when that is empty.
    ///
    /// The high word of `bits · n`, refusing the `2⁶⁴ mod n` products that would favour some values (Lemire 2019).
    pub fn index(&mut self, n: usize) -> Option<usize> {
        let n = n as u64;
        let refused = n.wrapping_neg().checked_rem(n)?;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= refused {
                return Some((product >> 64) as usize);
            }
        }
    }
}

/// The seed for the likelihood's own randomness in job `id`: 32 bits, which every language's generator and JSON reader
/// takes.
#[must_use]
pub fn job_seed(seed: u64, id: JobId) -> u64 {
    Stream::new(seed, Purpose::Job, id.0).bits() >> 32
}

/// The seed of the independent run number `repeat` of several: that of all for the first. It has 53 bits, which every file format can hold.
#[must_use]
pub fn repeat_seed(seed: u64, repeat: usize) -> u64 {
    match repeat {
        0 => seed,
        k => Stream::new(seed, Purpose::Repeat, k as u64).bits() >> 11,
    }
}

/// The middle of the dyadic interval of length 2⁻⁵² that the leading 52 bits name: exact, and strictly inside `(0, 1)`.
pub(crate) fn open_unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * f64::EPSILON
}
