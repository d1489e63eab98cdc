//! Numerics: matrices, derivatives, addressed random numbers, Sobol points, special functions.

pub(crate) mod directions;
pub(crate) mod jets;
pub(crate) mod linalg;
pub(crate) mod log_sum;
pub mod normal;
pub(crate) mod optim;
pub(crate) mod pairs;
pub(crate) mod parallel;
pub(crate) mod quantile;
pub(crate) mod rng;
pub(crate) mod simd;
pub(crate) mod sobol;
pub(crate) mod triangular;

pub use self::{
    jets::{Jets, Order},
    linalg::{Factor, Jitter, Matrix, transpose_mul},
    rng::{Purpose, Stream, job_seed, repeat_seed},
    sobol::SobolSequence,
};
