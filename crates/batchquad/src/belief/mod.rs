//! What is believed about an integrand and its integral: [`Surrogate`] is the whole, the rest are its parts.

pub(crate) mod any;
pub mod bq;
pub(crate) mod embed;
pub(crate) mod estimate;
pub(crate) mod frame;
pub(crate) mod gp;
pub(crate) mod kernel;
pub mod laplace;
pub(crate) mod log;
pub(crate) mod measure;
pub(crate) mod nodes;
pub(crate) mod residuals;
pub(crate) mod surrogate;
pub(crate) mod warp;

pub use self::{
    any::Belief,
    embed::{Embed, EmbedProducts},
    estimate::{Estimate, Side},
    frame::{Frame, Place},
    gp::{Fit, FitOptions, Gp, MarginalLikelihood, Prediction, fit, log_marginal_likelihood},
    kernel::{Brownian, Kernel, Matern, Smoothness, SquaredExponential},
    log::{LogBelief, Recipe},
    measure::{Gaussian, Jet, Mixture, UniformBox},
    nodes::Nodes,
    residuals::Residual,
    surrogate::Surrogate,
    warp::{ALPHA_SHARE, Model},
};
