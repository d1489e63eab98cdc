//! What programs leave in a store for each other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a remark is about. Remarks change nothing about the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Topic {
    /// What was believed at the end of a run.
    Belief,
    /// What the diagnostics say about it.
    Verdict,
    /// The words of the command that evaluates.
    Likelihood,
    /// The answer, where it is known.
    KnownLogZ,
    /// What plots and reports call the parameters: labels by name.
    Labels,
    /// What a function returned beside its value, as the text that Python made of it (which may hold NaN).
    Blob,
}

impl Topic {
    /// How 0.1 began its notes on a topic.
    const NOTES: [(Self, &'static str); 4] = [
        (Self::Belief, "belief: "),
        (Self::Verdict, "verdict: "),
        (Self::Likelihood, "likelihood: "),
        (Self::KnownLogZ, "known log Z: "),
    ];

    /// The remark that a note of 0.1 is, if it is one.
    pub(super) fn of_note(note: &str) -> Option<(Self, Value)> {
        if note.starts_with("{\"blob\":") {
            return Some((Self::Blob, note.into()));
        }
        let (topic, text) = Self::NOTES.iter().find_map(|(topic, start)| Some((*topic, note.strip_prefix(start)?)))?;
        Some((topic, serde_json::from_str(text).ok()?))
    }
}
