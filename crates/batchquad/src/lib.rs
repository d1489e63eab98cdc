//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.

pub mod bq;
pub mod design;
pub mod embed;
pub mod error;
pub mod estimate;
pub mod gp;
pub mod kernel;
pub mod linalg;
pub mod measure;
pub mod optim;
mod pairs;
pub mod points;
pub mod rng;
mod simd;
pub mod surrogate;
mod triangular;
pub mod types;
pub mod warp;

pub use error::{Error, Result};
pub use points::Points;
