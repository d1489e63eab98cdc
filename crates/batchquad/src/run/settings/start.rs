//! Points to begin with.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::{Settings, Start};
use crate::{
    error::{Error, Result},
    prior::Prior,
};

impl Settings {
    /// The points of [`Settings::start`] in the order of the prior's parameters, each with its latent coordinates.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is not a parameter's or a parameter without a value, [`Error::OutsideSupport`] for a point outside the
    /// prior's support; as [`Prior::to_latent`].
    pub fn start_points(&self, prior: &Prior) -> Result<Vec<(Vec<f64>, Vec<f64>)>> {
        let names = prior.names();
        let point = |(i, start): (usize, &Start)| {
            let at = self.start_name(i);
            if let Some(name) = start.keys().find(|name| !names.contains(name)) {
                let expected = format!("values of {} and no others ({name} is not a parameter)", names.join(", "));
                return Err(Error::invalid(&at, start, expected));
            }
            let value = |name: &String| {
                let missing = || Error::invalid(&at, start, format!("a value for every parameter ({name} has none)"));
                start.get(name).copied().ok_or_else(missing)
            };
            let theta = names.iter().map(value).collect::<Result<Vec<f64>>>()?;
            let latent = prior.to_latent(&theta).map_err(|e| match e {
                Error::OutsideSupport { what, value, support } => {
                    Error::OutsideSupport { what: format!("{at}, {what}"), value, support }
                }
                Error::Invalid { what, value, expected } => {
                    Error::Invalid { what: format!("{at}, {what}"), value, expected }
                }
                other => other,
            })?;
            Ok((theta, latent))
        };
        self.start.iter().enumerate().map(point).collect()
    }

    /// How messages name one of the points to begin with.
    pub(super) fn start_name(&self, i: usize) -> String {
        if self.start.len() == 1 { "start".into() } else { format!("start[{i}]") }
    }
}

/// One point, several, or none.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<Start>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Cell {
        Number(f64),
        Other(Value),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(BTreeMap<String, Cell>),
        Several(Vec<BTreeMap<String, Cell>>),
        None(()),
        Other(Value),
    }
    let refuse = |what: String, value: &Value, expected: &str| {
        D::Error::custom(format!("{what} is {value}, expected {expected}"))
    };
    let point = |(i, cells): (Option<usize>, BTreeMap<String, Cell>)| {
        let at = i.map_or_else(|| "start".into(), |i| format!("start[{i}]"));
        let number = |(name, cell): (String, Cell)| match cell {
            Cell::Number(value) => Ok((name, value)),
            Cell::Other(value) => Err(refuse(format!("{at}.{name}"), &value, "a number")),
        };
        cells.into_iter().map(number).collect()
    };
    match Given::deserialize(deserializer)? {
        Given::One(cells) => Ok(vec![point((None, cells))?]),
        Given::Several(list) => list.into_iter().enumerate().map(|(i, cells)| point((Some(i), cells))).collect(),
        Given::None(()) => Ok(Vec::new()),
        Given::Other(value) => {
            Err(refuse("start".into(), &value, "a table with the value of every parameter, or a list of such tables"))
        }
    }
}
