//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.

pub mod acquire;
pub mod bq;
pub mod design;
pub mod embed;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod evaluate;
pub mod gp;
pub mod jets;
pub mod journal;
pub mod kernel;
pub mod laplace;
pub mod linalg;
pub mod measure;
pub mod optim;
mod pairs;
pub mod points;
pub mod prior;
pub mod rng;
pub mod run;
pub mod select;
pub mod settings;
mod simd;
pub mod stop;
pub mod surrogate;
mod triangular;
pub mod types;
pub mod warp;

pub use engine::Engine;
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use points::Points;
pub use prior::Prior;
pub use run::{Config, Integral, integrate};
pub use settings::Settings;
