//! Errors in problem files: the key's path, what is there, what was expected.

use serde::{Serialize, de::DeserializeOwned};
use toml::Value;

use crate::exit::BadInput;

/// `value` as a `T`; `at` is its path in the file, `more` are keys that are accepted beside those of `T`.
pub fn read<T: DeserializeOwned>(at: &str, value: &Value, more: &[&str]) -> Result<T, BadInput> {
    serde_path_to_error::deserialize(value.clone()).map_err(|e| {
        let (inner, depth) = (e.path().to_string(), e.path().iter().count());
        let path = match inner.as_str() {
            "." => at.to_owned(),
            _ if at.is_empty() => inner,
            _ => format!("{at}.{inner}"),
        };
        // Deeper inside, the keys are those of another table.
        let more = if depth <= usize::from(unknown_key(e.inner().message())) { more } else { &[] };
        explain(&path, e.inner().message(), more)
    })
}

fn unknown_key(message: &str) -> bool {
    message.starts_with("unknown field")
}

/// A value on one line, for a message.
pub fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A message from serde, made readable.
fn explain(path: &str, message: &str, more: &[&str]) -> BadInput {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    let unknown = unknown_key(message) || message.starts_with("unknown variant");
    BadInput(match words.split_first() {
        Some((given, known)) if unknown => {
            let what = if unknown_key(message) { "key" } else { "choice" };
            let path = if what == "choice" || path.ends_with(given) { path } else { parent };
            let known: Vec<&str> = known.iter().chain(more).copied().collect();
            unknown_word(path, what, given, &known)
        }
        Some((missing, _)) if message.starts_with("missing field") => {
            format!("{place}the key `{missing}` is missing")
        }
        _ => format!("{place}{}", plain_words(message)),
    })
}

/// The message for a word that is none of `known`.
pub fn unknown_word(path: &str, what: &str, given: &str, known: &[&str]) -> String {
    let near = nearest(given, known).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{place}unknown {what} `{given}`, expected one of {}{near}", known.join(", "))
}

/// The known word that `given` is most likely a misspelling of.
fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace(['_', ' '], "-");
    let score = |word: &str| strsim::jaro_winkler(&plain(given), &plain(word));
    known.iter().rev().copied().max_by(|a, b| score(a).total_cmp(&score(b))).filter(|word| score(word) > 0.8)
}

/// Serde speaks of Rust's types; users wrote TOML.
fn plain_words(message: &str) -> String {
    let mut text = message.trim_end().replace('\n', "; ");
    for (rust, plain) in [
        ("expected usize", "expected a whole number >= 0"),
        ("expected u64", "expected a whole number >= 0"),
        ("expected u32", "expected a whole number >= 0"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("invalid type: sequence", "found a list"),
        ("invalid type: map", "found a table"),
        ("invalid type: integer", "found the number"),
        ("invalid type: floating point", "found the number"),
        ("invalid type: string", "found the text"),
        ("invalid type: boolean", "found"),
        ("invalid type: ", "found "),
        ("invalid value: integer", "found the number"),
        ("invalid value: ", "found "),
    ] {
        text = text.replace(rust, plain);
    }
    match text.find("expected struct ") {
        Some(at) => format!("{}expected a table", &text[..at]),
        None => text,
    }
}
