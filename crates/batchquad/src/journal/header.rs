//! The first record of a journal: what the run is about.

use super::event::{Unreadable, malformed};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the journal's format that this release writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// What a run is about: fixed when the store is created, compared whenever the run is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    kind: Kind,
    format: u32,
    written_by: String,
    names: Vec<String>,
    seed: u64,
    problem: Value,
    settings: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Header,
}

impl Header {
    /// A header for a new run.
    ///
    /// `problem` holds all that makes it this problem and no other (the prior of every parameter, …) and must be the
    /// same on resuming; `settings` holds what may be changed on the way (the budget, …) by [`super::Event::Settings`].
    ///
    /// # Errors
    /// [`Error::Length`] without names, [`Error::Invalid`] for a name given twice.
    pub fn new(names: Vec<String>, seed: u64, problem: Value, settings: Map<String, Value>) -> Result<Self> {
        let written_by = concat!("batchquad ", env!("CARGO_PKG_VERSION")).into();
        let header = Self { kind: Kind::Header, format: FORMAT, written_by, names, seed, problem, settings };
        header.validate()?;
        Ok(header)
    }

    /// The parameters' names, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of parameters.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.names.len()
    }

    /// The seed of the run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The header of a run of the same problem with another seed.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }

    /// The problem's description, as its writer put it.
    #[must_use]
    pub fn problem(&self) -> &Value {
        &self.problem
    }

    /// The settings at the beginning.
    #[must_use]
    pub fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// The release that created the store.
    #[must_use]
    pub fn written_by(&self) -> &str {
        &self.written_by
    }

    /// Whether `given` describes the same problem: names, their order, seed and description. Settings may differ.
    ///
    /// # Errors
    /// [`Error::StoreDiffers`] with every difference.
    pub fn require_same(&self, given: &Self) -> Result<()> {
        let mut differences = Vec::new();
        compare("names", &serde_json::json!(self.names), &serde_json::json!(given.names), &mut differences);
        compare("seed", &self.seed.into(), &given.seed.into(), &mut differences);
        compare("problem", &self.problem, &given.problem, &mut differences);
        if differences.is_empty() { Ok(()) } else { Err(Error::StoreDiffers { differences }) }
    }

    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        // Looked at on its own because a newer header may have nothing else in common with this one.
        #[derive(Deserialize)]
        struct Version {
            #[serde(rename = "kind")]
            _kind: Kind,
            format: u32,
        }
        let version: Version = serde_json::from_str(text).map_err(malformed)?;
        if version.format != FORMAT {
            return Err(Unreadable::Newer {
                found: format!("journal format {}", version.format),
                supported: format!("format {FORMAT}"),
            });
        }
        let header: Self = serde_json::from_str(text).map_err(malformed)?;
        header.validate().map_err(malformed)?;
        Ok(header)
    }

    fn validate(&self) -> Result<()> {
        if self.names.is_empty() {
            return Err(Error::length("list of parameter names", 1, 0));
        }
        for (i, name) in self.names.iter().enumerate() {
            if self.names[..i].contains(name) {
                return Err(Error::invalid(format!("name of parameter {i}"), name, "a name not used before"));
            }
        }
        Ok(())
    }
}

/// Collects the differences between two descriptions, the paths as in `problem.prior[1].normal.sd`.
fn compare(path: &str, store: &Value, given: &Value, differences: &mut Vec<String>) {
    match (store, given) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                compare(&format!("{path}.{key}"), value, b.get(key).unwrap_or(&Value::Null), differences);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                compare(&format!("{path}.{key}"), &Value::Null, value, differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), a, b, differences);
            }
        }
        // `1` and `1.0` are the same number however the file that described the problem spelled it.
        (Value::Number(a), Value::Number(b)) if a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()) => {}
        _ if store == given => {}
        _ => differences.push(format!("{path} is {given}, the store has {store}")),
    }
}
