//! What is recorded with a batch: the belief that it was chosen from.

use serde::{Deserialize, Serialize};

use crate::{
    belief::{frame::Place, log::Recipe},
    error::{Error, Result},
    journal::Asked,
    points::Points,
    run::settings::{Reference, Settings},
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
    /// Where the circles of periodic parameters were cut, as shares of them; empty without such parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<f64>,
    /// How many values the last search from several starts had.
    pub(super) searched: usize,
    /// How many values the last search for hyperparameters had; zero where each belief has its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) fitted: usize,
    /// `log Z`; absent where no positive mean was found.
    pub log_z: Option<f64>,
    /// Its standard deviation.
    pub log_z_sd: Option<f64>,
    /// Numerical repairs behind it.
    #[serde(default)]
    pub repairs: Repairs,
    /// All that was searched for, where the belief is about the logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Box<Recipe>>,
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
    /// Which of several independent runs it is of, counted from zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeat: usize,
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

/// Checksums of all that hyperparameters depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprints {
    /// Made of names as they stand in a store.
    pub(super) now: u32,
    /// What 0.1 made of the names in its source: its stores go on with the checksums that they have.
    first: u32,
}

impl Fingerprints {
    /// Of nodes with their values, and the standard deviations that came with some of them.
    pub(super) fn noisy(settings: &Settings, nodes: &Points, logs: &[f64], sds: &[Option<f64>]) -> Result<Self> {
        if sds.iter().all(Option::is_none) {
            return Self::new(settings, nodes, logs);
        }
        // No number is −1: it stands for none.
        let all: Vec<f64> = logs.iter().copied().chain(sds.iter().map(|sd| sd.unwrap_or(-1.0))).collect();
        Self::new(settings, nodes, &all)
    }

    pub(super) fn new(settings: &Settings, nodes: &Points, logs: &[f64]) -> Result<Self> {
        let name = |value: serde_json::Result<String>| {
            value.map_err(|e| Error::Numerical { what: "checksum of a belief".into(), reason: e.to_string() })
        };
        let choices = (&settings.surrogate, &settings.kernel, &settings.reference, &settings.known_kernel);
        let now = name(serde_json::to_string(&choices))?;
        let mut first = format!("{:?} {:?}", settings.surrogate, settings.kernel);
        if settings.reference == Reference::Moving {
            first.push_str("moving");
        }
        if let Some(known) = &settings.known_kernel {
            first.push_str(&format!("{known:?}"));
        }
        Ok(Self { now: checksum(&now, nodes, logs), first: checksum(&first, nodes, logs) })
    }

    /// Whether a belief rests on the very same values and choices.
    pub(super) fn are_of(self, belief: &Believed) -> bool {
        [self.now, self.first].contains(&belief.fingerprint)
    }
}

fn checksum(choices: &str, nodes: &Points, logs: &[f64]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(choices.as_bytes());
    for v in nodes.as_slice().iter().chain(logs) {
        hasher.update(&v.to_bits().to_le_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::settings::{KnownKernel, SurrogateChoice};

    #[test]
    fn checksums_of_the_first_release_are_known() {
        let nodes = Points::new(1, vec![0.5, -1.0]).unwrap();
        let logs = [-1.25, f64::NEG_INFINITY];
        let of = |settings: &Settings| Fingerprints::new(settings, &nodes, &logs).unwrap();
        let moving = Settings { surrogate: SurrogateChoice::WsabiL, ..Settings::default() };
        let prior = Settings { reference: Reference::Prior, ..moving.clone() };
        let known = KnownKernel { log_sigma2: 0.5, lengthscales: vec![2.0] };
        let known = Settings { known_kernel: Some(known), ..prior.clone() };
        // The texts are those of 0.1, whatever things are called now.
        let text = "WsabiL ArdKnownKernel { log_sigma2: 0.5, lengthscales: [2.0] }";
        for (settings, text) in [(&moving, "WsabiL Ardmoving"), (&prior, "WsabiL Ard"), (&known, text)] {
            assert_eq!(of(settings).first, checksum(text, &nodes, &logs));
        }
        assert_eq!(of(&prior).now, checksum(r#"["wsabi-l","ard","prior",null]"#, &nodes, &logs));
        assert_ne!(of(&prior).now, of(&known).now);
    }
}
