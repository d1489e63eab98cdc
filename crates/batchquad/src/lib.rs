//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.

pub mod embed;
pub mod error;
pub mod journal;
pub mod kernel;
pub mod linalg;
pub mod points;
pub mod types;

pub use error::{Error, Result};
pub use points::Points;
