//! A log-likelihood as text.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The word for −∞, which JSON has no number for.
const NEGATIVE_INFINITY: &str = "-inf";

/// A log-likelihood: a finite number, or −∞ where the likelihood is zero.
///
/// In JSON it is a number that reads back to the same bits, or the string `"-inf"`; nothing else is accepted.
///
/// ```
/// use batchquad::journal::LogValue;
/// assert_eq!(serde_json::to_string(&LogValue::new(f64::NEG_INFINITY)?).unwrap(), "\"-inf\"");
/// assert!(LogValue::new(f64::NAN).is_err());
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct LogValue(f64);

impl LogValue {
    /// A checked log-likelihood.
    ///
    /// # Errors
    /// [`Error::Invalid`] for NaN and +∞.
    pub fn new(value: f64) -> Result<Self> {
        if value.is_nan() || value == f64::INFINITY {
            return Err(Error::invalid("log-likelihood", value, "a finite number or -inf"));
        }
        Ok(Self(value))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Serialize for LogValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == f64::NEG_INFINITY {
            serializer.serialize_str(NEGATIVE_INFINITY)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a finite number or \"-inf\"")]
enum Text {
    Number(f64),
    Word(String),
}

impl<'de> Deserialize<'de> for LogValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Text::deserialize(deserializer)? {
            Text::Number(value) => Self::new(value).map_err(D::Error::custom),
            Text::Word(word) if word == NEGATIVE_INFINITY => Ok(Self(f64::NEG_INFINITY)),
            Text::Word(word) => {
                Err(D::Error::custom(Error::invalid("log-likelihood", word, "a finite number or \"-inf\"")))
            }
        }
    }
}
