//! The words exchanged with the user's program: one JSON object each way.
//!
//! The question is `{"id": 3, "parameters": {"a": 1.0}, "seed": 123}` on one line, the parameters in the order of the
//! problem and in full precision. The answer is `{"log_likelihood": -1.5}`, or `{"failed": "why"}`, or a bare number; a noisy value comes with its
//! standard deviation, `{"log_likelihood": -1.5, "sd": 0.2}`;
//! an `"id"` may be given (a server has to give it), other keys are ignored. Zero likelihood is `-inf` or `-Infinity`, bare or in quotes: Python's
//! `json.dumps(float("-inf"))` writes the former, which is not JSON, and many languages can write only the latter.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::text::{excerpt, one_line};
use crate::error::{Error, Result};
use crate::types::{Job, JobId};

/// The question as one line of JSON, without the line feed.
///
/// # Errors
/// When `names` and the job's point differ in length, or a coordinate is not finite (JSON has no word for it).
pub fn request(names: &[String], job: &Job) -> Result<String> {
    if job.theta.len() != names.len() {
        return Err(Error::length(format!("point of job {}", job.id), names.len(), job.theta.len()));
    }
    if let Some((name, value)) = names.iter().zip(&job.theta).find(|(_, value)| !value.is_finite()) {
        return Err(Error::invalid(format!("parameter {name:?} of job {}", job.id), value, "a finite number"));
    }
    let question = Question { id: job.id, parameters: Parameters { names, theta: &job.theta }, seed: job.seed };
    serde_json::to_string(&question)
        .map_err(|e| Error::invalid(format!("job {}", job.id), &job.theta, format!("something JSON can hold: {e}")))
}

/// A number as it stands in a question: the shortest text that is read back to the same bits.
#[cfg_attr(not(unix), allow(dead_code))]
pub(super) fn decimal(value: f64) -> String {
    serde_json::to_string(&value).unwrap_or_else(|_| value.to_string())
}

#[derive(Serialize)]
struct Question<'a> {
    id: JobId,
    parameters: Parameters<'a>,
    seed: u64,
}

struct Parameters<'a> {
    names: &'a [String],
    theta: &'a [f64],
}

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, value) in self.names.iter().zip(self.theta) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// What a program answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The job it says it belongs to, if it says so.
    pub id: Option<JobId>,
    /// The standard deviation of the log-likelihood's noise, if it says so: a finite number ≥ 0.
    pub sd: Option<f64>,
    /// The answer itself.
    pub reply: Reply,
}

/// A number or the program's own word that there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The log-likelihood as it was written; NaN and infinities included.
    LogLikelihood(f64),
    /// `{"failed": "why"}`, cleaned and on one line.
    Failed(String),
}

#[derive(Deserialize)]
struct RawAnswer {
    id: Option<u64>,
    log_likelihood: Option<RawNumber>,
    sd: Option<RawNumber>,
    failed: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawNumber {
    Number(f64),
    Text(String),
}

impl RawNumber {
    /// The number, or what a word for one that is not finite says.
    pub(super) fn get(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Text(word) => non_finite(word),
        }
    }
}

/// Reads the whole of what a program printed as exactly one answer.
///
/// Nothing is guessed: text beside the answer, a second answer, `null` and a number beyond the range of a double are all
/// refused.
///
/// # Errors
/// [`Error::Invalid`] with an escaped and bounded excerpt of what was printed.
pub fn answer(printed: &[u8]) -> Result<Answer> {
    let refuse = |expected: String| Error::Invalid { what: "answer".into(), value: excerpt(printed), expected };
    let text = std::str::from_utf8(printed)
        .map_err(|e| refuse(format!("UTF-8 (byte {} is not)", e.valid_up_to())))?
        .trim_matches(|c: char| c.is_ascii_whitespace());
    if !text.starts_with('{') {
        let value = number(text).ok_or_else(|| {
            refuse("one number, or one object {\"log_likelihood\": …}, and nothing else (log to stderr)".into())
        })?;
        return Ok(Answer { id: None, sd: None, reply: Reply::LogLikelihood(value) });
    }
    let raw: RawAnswer =
        serde_json::from_str(&quote_non_finite(text)).map_err(|e| refuse(format!("one JSON object: {e}")))?;
    let reply = match (raw.log_likelihood, raw.failed) {
        (Some(RawNumber::Number(value)), None) => Reply::LogLikelihood(value),
        (Some(RawNumber::Text(word)), None) => Reply::LogLikelihood(
            non_finite(&word).ok_or_else(|| refuse("a number, \"-inf\" or \"-Infinity\" as log_likelihood".into()))?,
        ),
        (None, Some(reason)) => Reply::Failed(one_line(&reason)),
        (None, None) => return Err(refuse("a number under \"log_likelihood\"".into())),
        (Some(_), Some(_)) => return Err(refuse("either \"log_likelihood\" or \"failed\"".into())),
    };
    let sd = match raw.sd {
        None => None,
        Some(RawNumber::Number(sd)) if sd.is_finite() && sd >= 0.0 => Some(sd),
        Some(_) => return Err(refuse("a finite number ≥ 0 under \"sd\"".into())),
    };
    Ok(Answer { id: raw.id.map(JobId), sd, reply })
}

/// A number in decimal notation, or one of the words for what is not finite; `None` also for a number beyond the range of a double.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    // Reading -1e999 as -inf would turn an overflow into a likelihood of zero.
    non_finite(text).or_else(|| text.parse().ok().filter(|value: &f64| value.is_finite()))
}

fn non_finite(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
        "nan" | "-nan" | "+nan" => Some(f64::NAN),
        _ => None,
    }
}

/// Puts bare `-Infinity`, `NaN` and their like into quotes, leaving the insides of strings alone.
pub(super) fn quote_non_finite(json: &str) -> Cow<'_, str> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let bytes = json.as_bytes();
    let mut quoted = String::new();
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        let start = at;
        if bytes[at] == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
        } else if is_word(bytes[at]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            if non_finite(&json[start..at]).is_some() {
                quoted.push_str(&json[copied..start]);
                quoted.push('"');
                quoted.push_str(&json[start..at]);
                quoted.push('"');
                copied = at;
            }
        } else {
            at += 1;
        }
    }
    if copied == 0 { Cow::Borrowed(json) } else { Cow::Owned(quoted + &json[copied..]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(printed: &str) -> Option<f64> {
        match answer(printed.as_bytes()).ok()?.reply {
            Reply::LogLikelihood(value) => Some(value),
            Reply::Failed(_) => None,
        }
    }

    #[test]
    fn the_question_keeps_order_precision_and_hostile_names() {
        let names = ["z".to_owned(), "a\"; touch pwned\n".to_owned()];
        let job = Job { id: JobId(7), theta: vec![0.1 + 0.2, -1e-300], seed: u64::MAX };
        let line = request(&names, &job).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(
            line,
            r#"{"id":7,"parameters":{"z":0.30000000000000004,"a\"; touch pwned\n":-1e-300},"seed":18446744073709551615}"#
        );
    }

    #[test]
    fn a_point_that_does_not_fit_is_refused_by_name() {
        let names = ["a".to_owned()];
        let error = request(&names, &Job { id: JobId(1), theta: vec![f64::NAN], seed: 0 }).unwrap_err();
        assert!(error.to_string().contains("\"a\"") && error.to_string().contains("NaN"), "{error}");
        assert!(request(&names, &Job { id: JobId(1), theta: vec![1.0, 2.0], seed: 0 }).is_err());
    }

    #[test]
    fn answers_that_are_one_number() {
        for (printed, expected) in [
            ("-1.5\n", -1.5),
            ("  -1.5e3\r\n\n", -1500.0),
            ("0", 0.0),
            ("-inf", f64::NEG_INFINITY),
            ("-Infinity\n", f64::NEG_INFINITY),
            ("inf", f64::INFINITY),
            (r#"{"log_likelihood": -1.5}"#, -1.5),
            (r#"{"log_likelihood": 3}"#, 3.0),
            (r#"{"log_likelihood": "-inf", "note": {"NaN": [1, "-inf", NaN]}}"#, f64::NEG_INFINITY),
            (r#"{"note": "say \"-Infinity\" \\", "log_likelihood":-Infinity}"#, f64::NEG_INFINITY),
            ("{\n \"log_likelihood\": -2.5,\n \"id\": 4\n}\n", -2.5),
        ] {
            assert_eq!(value(printed), Some(expected), "{printed}");
        }
        assert!(value("nan").unwrap().is_nan());
        assert!(value(r#"{"log_likelihood": NaN}"#).unwrap().is_nan());
    }

    #[test]
    fn a_value_may_come_with_its_standard_deviation() {
        let sd = |printed: &str| answer(printed.as_bytes()).map(|said| said.sd);
        for (printed, expected) in [
            (r#"{"log_likelihood": -1.5, "sd": 0.25}"#, Some(0.25)),
            (r#"{"sd": 0, "log_likelihood": "-inf"}"#, Some(0.0)),
            (r#"{"log_likelihood": -1.5, "sd": null}"#, None),
            (r#"{"log_likelihood": -1.5}"#, None),
            ("-1.5", None),
        ] {
            assert_eq!(sd(printed).unwrap(), expected, "{printed}");
        }
        for bad in ["-0.1", "NaN", "\"NaN\"", "Infinity", "-inf", "\"0.1\""] {
            let printed = format!(r#"{{"log_likelihood": -1.5, "sd": {bad}}}"#);
            let error = sd(&printed).expect_err(bad).to_string();
            assert!(
                error.contains(bad.trim_matches('"')) && error.contains("a finite number ≥ 0 under \"sd\""),
                "{error}"
            );
        }
        for bad in ["[0.1]", "1e999", "true", "{}"] {
            assert!(sd(&format!(r#"{{"log_likelihood": -1.5, "sd": {bad}}}"#)).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_that_are_not() {
        for printed in [
            "",
            "\n",
            "abc",
            "1 2",
            "1\n2\n",
            "1,5",
            "0x10",
            "1e999",
            "-1e999",
            "null",
            "true",
            "[1]",
            "\"1\"",
            "{}",
            "{",
            r#"{"log_likelihood": null}"#,
            r#"{"log_likelihood": "1"}"#,
            r#"{"log_likelihood": true}"#,
            r#"{"log_likelihood": -1e999}"#,
            r#"{"log_likelihood": [1]}"#,
            r#"{"log_likelihood": 1} 2"#,
            "{\"log_likelihood\": 1}\n{\"log_likelihood\": 1}",
            r#"{"log_likelihood": 1, "log_likelihood": 2}"#,
            r#"{"log_likelihood": 1, "failed": "x"}"#,
            r#"{"log_likelihood": 1, "id": -1}"#,
            "{\"log_likelihood\": \"",
            "{\"log_likelihood\": \"\\",
        ] {
            let error = answer(printed.as_bytes()).expect_err(printed).to_string();
            assert!(error.contains("answer is") && error.contains("expected"), "{error}");
        }
        assert!(answer(b"-1.5\xff").unwrap_err().to_string().contains("byte 4"));
    }

    #[test]
    fn a_program_can_say_that_it_failed() {
        let said = answer(br#"{"id": 3, "failed": "did not converge\nafter 9 steps"}"#).unwrap();
        let expected =
            Answer { id: Some(JobId(3)), sd: None, reply: Reply::Failed("did not converge | after 9 steps".into()) };
        assert_eq!(said, expected);
    }

    proptest! {
        #[test]
        fn every_finite_double_survives_in_both_forms(bits: u64) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            prop_assert_eq!(value(&format!("{x:e}")).unwrap().to_bits(), bits);
            let json = format!("{{\"log_likelihood\": {}}}", serde_json::to_string(&x).unwrap());
            prop_assert_eq!(value(&json).unwrap().to_bits(), bits);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[{}\\[\\]\":,\\\\a-zIN0-9.+\\- \n]{0,60}") {
            let _ = answer(&bytes);
            let _ = answer(text.as_bytes());
            let _ = answer(format!("{{{text}").as_bytes());
        }
    }
}
