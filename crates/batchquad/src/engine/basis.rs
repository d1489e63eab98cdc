//! What is recorded with a batch: the belief that it was chosen from.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    frame::Place,
    journal::Asked,
    points::Points,
    settings::{Reference, Settings},
};

/// What a batch was chosen from: recorded with it, so that a resumed run need not work it out again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Basis {
    /// The latent coordinates of the jobs, in order.
    pub(super) latent: Vec<Vec<f64>>,
    /// The belief; none for an initial design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) belief: Option<Believed>,
    /// How many points are space-filling because the acquisition had none to offer.
    #[serde(default)]
    pub(super) fallbacks: usize,
}

/// The state of a belief: hyperparameters, estimate, repairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Believed {
    /// How many values it rests on.
    pub values: usize,
    /// A checksum of those values and of the model: hyperparameters are found once for the same data.
    pub(super) fingerprint: u32,
    /// The variance `σ²` of the kernel, in units of the scaled integrand.
    pub sigma2: f64,
    /// The lengthscales, in the coordinates of the frame.
    pub lengthscales: Vec<f64>,
    /// Where the reference measure was; none where it is the prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// How many values the last search from several starts had.
    pub(super) searched: usize,
    /// `log Z`; absent where no positive mean was found.
    pub log_z: Option<f64>,
    /// Its standard deviation.
    pub log_z_sd: Option<f64>,
    /// Numerical repairs behind it.
    #[serde(default)]
    pub repairs: Repairs,
}

/// Numerical repairs, counted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Repairs {
    /// Rungs of the jitter ladder climbed beyond the first.
    pub jitter_rungs: usize,
    /// The largest number added to the diagonal of the kernel matrix, relative to `σ²`.
    pub largest_jitter: f64,
    /// Whether the integral's variance was raised to its own rounding error.
    pub clamped_variance: bool,
    /// Whether a lengthscale ended at the bound of its search.
    pub lengthscale_at_bound: bool,
    /// Values at places where there was one already, joined into one node.
    pub merged_values: usize,
    /// Nodes at which values contradict each other: the likelihood is noisy, or jumps.
    pub contradictory_nodes: usize,
    /// Values that a belief does not rest on because they would be too many ([`super::MOST_NODES`]).
    #[serde(skip_serializing_if = "is_zero")]
    pub values_left_out: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// One line of a run's history: what was believed when a batch had come in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// How many batches had been asked.
    pub batches: usize,
    /// The belief then.
    pub belief: Believed,
}

pub(super) fn read_basis(asked: &Asked) -> Result<Basis> {
    let basis: Basis = serde_json::from_value(asked.info.clone())
        .map_err(|e| Error::invalid("basis of a batch", e.to_string(), "what `ask` recorded"))?;
    if basis.latent.len() == asked.jobs.len() {
        Ok(basis)
    } else {
        Err(Error::length("latent points of a batch", asked.jobs.len(), basis.latent.len()))
    }
}

/// A checksum of all that hyperparameters depend on.
pub(super) fn fingerprint(settings: &Settings, nodes: &Points, logs: &[f64]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(format!("{:?} {:?}", settings.surrogate, settings.kernel).as_bytes());
    // Only where they matter: runs from before there were these settings must go on with the checksums that they have.
    if settings.reference == Reference::Moving {
        hasher.update(b"moving");
    }
    if let Some(known) = &settings.known_kernel {
        hasher.update(format!("{known:?}").as_bytes());
    }
    for v in nodes.as_slice().iter().chain(logs) {
        hasher.update(&v.to_bits().to_le_bytes());
    }
    hasher.finalize()
}
