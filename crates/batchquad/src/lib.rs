//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.

pub mod design;
pub mod embed;
pub mod error;
pub mod gp;
pub mod kernel;
pub mod laplace;
pub mod linalg;
pub mod measure;
pub mod optim;
mod pairs;
pub mod points;
pub mod rng;
mod simd;
pub mod types;

pub use error::{Error, Result};
pub use points::Points;
