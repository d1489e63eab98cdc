//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.
//!
//! [`integrate`] is the whole loop as a function. What it is made of, in the order in which one needs it:
//!
//! | to … | see |
//! |---|---|
//! | say what is known beforehand | [`Prior`], [`prior`] |
//! | integrate | [`integrate`], [`integrate_noisy`], [`Config`], [`Settings`], [`Integral`], [`Estimate`] |
//! | … with a store or with progress | [`Integration`] |
//! | drive a run oneself: ask, evaluate, tell | [`Engine`], [`run`] |
//! | keep a run, and resume it | [`run::Session`], [`journal`] |
//! | evaluate on threads or as processes | [`evaluate`] |
//! | decide whether to believe the number | [`run::diagnose`] |
//! | say what was found, in words or as data | [`run::Report`] |
//! | learn about parameters, predictions, models | [`infer`] |
//! | choose batches otherwise | [`choose`] |
//! | integrate a function whose values are known | [`belief`] |
//! | numerics | [`numeric`] |
//!
//! The formulas are in [`math`], which is `MATH.md` of the repository, the reasons in `DESIGN.md`.
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

pub mod belief;
pub mod choose;
mod error;
pub mod evaluate;
pub mod infer;
pub mod interrupt;
pub mod journal;
pub mod numeric;
mod points;
pub mod prior;
pub mod run;
pub mod types;

pub use belief::Estimate;
pub use error::{Error, Result};
pub use points::Points;
pub use prior::Prior;
pub use run::{Config, Engine, Integral, Integration, Settings, integrate, integrate_noisy};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

// For readers only: it is no part of the library.
#[cfg(all(doc, not(doctest)))]
#[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::invalid_rust_codeblocks)]
#[doc = include_str!("../../../MATH.md")]
pub mod math {}
