//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.
//!
//! [`integrate`] is the whole loop as a function. Beside it stand its parts: [`Engine`] asks and is told, [`run::Run`] drives it with
//! any [`evaluate::Evaluator`] and keeps a [`journal`]; below them [`select`] chooses batches, [`surrogate`] holds a belief about
//! the integrand and [`estimate`] what follows for the evidence. The formulas are in `MATH.md`, the reasons in `DESIGN.md`.
//!
//! ```
//! use batchquad::{Config, Prior, integrate, prior::Distribution};
//! let prior = Prior::independent([("x", Distribution::uniform(-5.0, 5.0)?)])?;
//! let integral = integrate(|theta| -0.5 * theta[0] * theta[0], prior, Config::default())?;
//! // ∫ exp(−x²/2) dx / 10 = √(2π)/10
//! assert!((integral.estimate.log_z - (std::f64::consts::TAU.sqrt() / 10.0).ln()).abs() < 0.01);
//! # Ok::<(), batchquad::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod acquire;
pub mod bq;
pub mod compare;
pub mod design;
pub mod diagnostics;
pub mod embed;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod evaluate;
pub mod frame;
pub mod gp;
pub mod interrupt;
pub mod jets;
pub mod journal;
pub mod kernel;
pub mod laplace;
pub mod linalg;
pub mod measure;
pub mod nodes;
pub mod optim;
mod pairs;
pub mod points;
pub mod posterior;
pub mod prior;
pub mod residuals;
pub mod rng;
pub mod run;
pub mod select;
pub mod session;
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

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
