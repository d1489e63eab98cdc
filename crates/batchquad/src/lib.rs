//! Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.
//!
//! [`integrate`] is the whole loop as a function. These are its parts, in the order in which you will need them:
//!
//! | to … | see |
//! |---|---|
//! | say what is known beforehand | [`Prior`], [`prior`] |
//! | integrate | [`integrate`], [`integrate_noisy`], [`Config`], [`Settings`], [`Integral`], [`Estimate`] |
//! | integrate with a store or with progress | [`Integration`] |
//! | drive a run yourself: ask, evaluate, tell | [`Engine`], [`run`] |
//! | keep a run, and resume it | [`run::Session`], [`journal`] |
//! | evaluate on threads or as processes | [`evaluate`] |
//! | decide whether to believe the number | [`run::diagnose`] |
//! | say what was found, in words or as data | [`run::Report`] |
//! | learn about parameters, predictions, models | [`infer`] |
//! | choose batches in another way | [`choose`] |
//! | integrate a function whose values are known | [`belief`] |
//! | numerics | [`numeric`] |
//!
//! The formulas are in [`math`], which is `MATH.md` of the repository; the reasons are in `DESIGN.md`.
//!
//! ```
//! # #[cfg(feature = "run")] {
//! use batchquad::{Config, Prior, integrate, prior::Distribution};
//! let prior = Prior::independent([("x", Distribution::uniform(-5.0, 5.0)?)])?;
//! let integral = integrate(|theta| -0.5 * theta[0] * theta[0], prior, Config::default())?;
//! // ∫ exp(−x²/2) dx / 10 = √(2π)/10
//! assert!((integral.estimate.log_z - (std::f64::consts::TAU.sqrt() / 10.0).ln()).abs() < 0.01);
//! # }
//! # Ok::<(), batchquad::Error>(())
//! ```
//!
//! # The mathematics alone
//!
//! Without its default feature `run`, the crate consists of [`belief`], [`choose`], [`infer`], [`prior`] and
//! [`numeric`]: no files, no processes, no JSON. The loop is then yours, and its points are in the latent coordinates
//! of the prior:
//!
//! ```
//! use batchquad::{
//!     Prior,
//!     belief::{Belief, Nodes},
//!     choose::{BatchRule, Constants, InitialDesign, Search, batch},
//!     infer::Posterior,
//!     prior::Distribution,
//! };
//!
//! let log_likelihood = |theta: &[f64]| -0.5 * ((theta[0] - 1.0) / 0.5).powi(2);
//! let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0)?)])?;
//! let seed = 1;
//!
//! let mut next = InitialDesign::Sobol.latent(prior.dim(), 4, seed)?;
//! let (mut nodes, mut values, mut belief) = (Vec::new(), Vec::new(), None);
//! for _ in 0..4 {
//!     for u in next.rows() {
//!         values.push(log_likelihood(&prior.to_theta(u)?));
//!         nodes.push(u.to_vec());
//!     }
//!     let now = Belief::about_log(Nodes::new(&nodes, &values)?, None, belief.as_ref(), seed)?;
//!     let search = Search { seed, asked: nodes.len() as u64, ..Search::default() };
//!     let rule = BatchRule::default().with(Constants::default());
//!     next = batch(&now, &*rule, &batchquad::Points::new(prior.dim(), vec![])?, 4, search)?.points;
//!     belief = Some(now);
//! }
//!
//! // ∫ exp(−2(x − 1)²) N(x; 0, 1) dx = exp(−0.4)/√5, and the posterior is N(0.8, 0.2).
//! let belief = belief.expect("four rounds");
//! let estimate = belief.estimate()?;
//! assert!((estimate.log_z - (-0.4 - 0.5 * 5.0_f64.ln())).abs() < 0.02 && estimate.log_z_sd < 0.1);
//! let posterior = Posterior::new(belief, prior, seed)?;
//! assert!((posterior.marginal(0)?.mean() - 0.8).abs() < 0.02);
//! # Ok::<(), batchquad::Error>(())
//! ```

#![forbid(unsafe_code)]
// Some of what a belief can do is asked by runs alone.
#![cfg_attr(not(feature = "run"), allow(dead_code, unused_imports))]

pub mod belief;
pub mod choose;
mod error;
#[cfg(feature = "run")]
pub mod evaluate;
pub mod infer;
pub mod interrupt;
#[cfg(feature = "run")]
pub mod journal;
pub mod numeric;
mod points;
pub mod prior;
#[cfg(feature = "run")]
pub mod run;
pub mod types;

pub use belief::Estimate;
pub use error::{Error, Result};
pub use points::Points;
pub use prior::Prior;
#[cfg(feature = "run")]
pub use run::{Config, Engine, Integral, Integration, Settings, integrate, integrate_noisy};

#[cfg(all(doctest, feature = "run"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

// For readers only; the library does not contain it.
#[cfg(all(doc, not(doctest)))]
#[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::invalid_rust_codeblocks)]
#[doc = include_str!("../../../MATH.md")]
pub mod math {}
