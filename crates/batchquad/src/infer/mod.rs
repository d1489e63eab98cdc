//! What follows for parameters, predictions and models.

pub(crate) mod compare;
pub(crate) mod posterior;

pub use self::{
    compare::{Standing, compare},
    posterior::{
        Average, Curve, DRAWS, Draws, Expectation, Joint, LatentMoments, Marginal, Method, Moments, Posterior, Surface,
        average, moments,
    },
};
