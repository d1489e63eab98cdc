//! Parameters with their priors as they are written: in problem files and in the headers of stores.

use std::marker::PhantomData;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Block, Distribution, MultivariateNormal, Prior, UnitCubeMap};
use crate::error::{Error, Result};

/// The parameters of a problem with their priors: all that makes a problem this one, as it is written in stores.
///
/// ```
/// use batchquad::prior::{Distribution, Parameter, Parameters};
/// let x = Parameter::Scalar { name: "x".into(), prior: Distribution::normal(0.0, 1.0)? };
/// let parameters = Parameters::new(vec![x])?;
/// assert_eq!(
///     serde_json::to_string(&parameters).unwrap(),
///     r#"{"parameters":[{"name":"x","prior":{"normal":{"mean":0.0,"sd":1.0}}}]}"#
/// );
/// assert_eq!(parameters.prior()?.dim(), 1);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    parameters: Vec<Parameter>,
}

/// One parameter, or several with a joint prior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// One parameter.
    Scalar {
        /// Its name.
        name: String,
        /// Its prior.
        prior: Distribution,
    },
    /// Several.
    Joint {
        /// Their names, in order.
        names: Vec<String>,
        /// Their prior.
        prior: JointPrior,
    },
}

/// A prior over several parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum JointPrior {
    /// A normal distribution.
    MultivariateNormal(MultivariateNormal),
    /// A function of the user's, of which only a few values can be written down. Whoever continues such a run brings
    /// the function again.
    UnitCube(Probes),
}

/// Values of a function at fixed points of the unit cube, by which a changed one is noticed.
///
/// As text with nine digits: a function of another release of a library may differ in the last bits and be the same
/// prior.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    probes: Vec<Vec<String>>,
}

impl Parameters {
    /// Parameters in order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that [`require_name`] refuses or that is used twice, [`Error::Length`] without
    /// parameters or when a multivariate normal prior does not have one name per dimension.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self> {
        let mut seen = Vec::new();
        for name in parameters.iter().flat_map(Parameter::names) {
            let what = format!("name of parameter {}", seen.len());
            require_name(&what, name)?;
            if seen.contains(name) {
                return Err(Error::invalid(what, name, "a name not used before"));
            }
            seen.push(name.clone());
        }
        for parameter in &parameters {
            if let Parameter::Joint { names, prior: JointPrior::MultivariateNormal(normal) } = parameter
                && names.len() != normal.mean().len()
            {
                let what = "list of names of the multivariate normal prior";
                return Err(Error::length(what, normal.mean().len(), names.len()));
            }
        }
        if seen.is_empty() {
            return Err(Error::length("list of parameters", 1, 0));
        }
        Ok(Self { parameters })
    }

    /// The parameters of a prior, in writing.
    ///
    /// # Errors
    /// As [`Parameters::new`]; what a function of the user's own gives wrong.
    pub fn of(prior: &Prior) -> Result<Self> {
        Self::new(prior.parameters()?)
    }

    /// Checks, for a new problem, that no parameter has the name of a column that every table of evaluations has, so
    /// that neither hides the other. Older stores may have such names.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the parameter.
    pub fn require_free_names(&self) -> Result<()> {
        match self.parameters.iter().flat_map(Parameter::names).find(|name| COLUMNS.contains(&name.as_str())) {
            Some(name) => Err(Error::invalid("name of a parameter", name, format!("none of {}", COLUMNS.join(", ")))),
            None => Ok(()),
        }
    }

    /// The parameters of a problem as a store's header describes it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a description that this release cannot read.
    pub fn from_problem(problem: &serde_json::Value) -> Result<Self> {
        serde_json::from_value(problem.clone())
            .map_err(|e| Error::invalid("prior in the store", e.to_string(), "one that this release knows"))
    }

    /// The prior.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is a function, which no text can hold; as [`Prior::independent`].
    pub fn prior(&self) -> Result<Prior> {
        Prior::product(self.parameters.iter().map(Parameter::prior).collect::<Result<Vec<_>>>()?)
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Parameter> {
        self.parameters.iter()
    }

    /// One line for each: its names and its prior.
    #[must_use]
    pub fn describe(&self) -> Vec<(String, String)> {
        self.parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Scalar { name, prior } => (name.clone(), in_words(prior)),
                Parameter::Joint { names, prior: JointPrior::UnitCube(_) } => (names.join(", "), "a function".into()),
                Parameter::Joint { names, prior } => (names.join(", "), in_words(prior)),
            })
            .collect()
    }
}

impl Prior {
    /// The parameters in writing.
    fn parameters(&self) -> Result<Vec<Parameter>> {
        let mut names = self.names.iter();
        let of = |block: &Block| match block {
            Block::Scalar(prior) => {
                Ok(Parameter::Scalar { name: names.next().cloned().unwrap_or_default(), prior: *prior })
            }
            Block::Normal(normal) => {
                let names = names.by_ref().take(normal.dim()).cloned().collect();
                Ok(Parameter::Joint { names, prior: JointPrior::MultivariateNormal(normal.clone()) })
            }
            Block::Cube { dim, map } => Parameter::unit_cube(names.by_ref().take(*dim).cloned().collect(), map.clone()),
        };
        self.blocks.iter().map(of).collect()
    }
}

impl Parameter {
    /// Parameters that a function makes of a point uniform in the unit cube, described by some of its values.
    ///
    /// # Errors
    /// What the function gives wrong, as [`Prior::to_theta`] reports it.
    pub fn unit_cube(names: Vec<String>, map: UnitCubeMap) -> Result<Self> {
        /// Latent coordinates of the probes: the centre, and two places beside every diagonal.
        const LATENT: [[f64; 3]; 3] = [[0.0; 3], [0.75, -0.5, 0.25], [-1.25, 1.5, -0.25]];
        let prior = Prior::from_unit_cube(names.clone(), map)?;
        let probe = |latent: &[f64; 3]| {
            let u: Vec<f64> = (0..names.len()).map(|k| latent[k % 3]).collect();
            Ok(prior.to_theta(&u)?.iter().map(|v| format!("{v:.8e}")).collect())
        };
        let probes = LATENT.iter().map(probe).collect::<Result<_>>()?;
        Ok(Self::Joint { names, prior: JointPrior::UnitCube(Probes { probes }) })
    }

    /// Its names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Scalar { name, .. } => std::slice::from_ref(name),
            Self::Joint { names, .. } => names,
        }
    }

    fn prior(&self) -> Result<Prior> {
        match self {
            Self::Scalar { name, prior } => Prior::independent([(name.clone(), *prior)]),
            Self::Joint { names, prior: JointPrior::MultivariateNormal(normal) } => {
                Prior::multivariate_normal(names.clone(), normal.mean().to_vec(), normal.covariance().to_vec())
            }
            Self::Joint { names, prior: JointPrior::UnitCube(_) } => Err(Error::Invalid {
                what: format!("prior of {names:?}"),
                value: "a function, which a store cannot hold".into(),
                expected: "that function again, from the language that made the store".into(),
            }),
        }
    }
}

/// What tables of evaluations have besides the parameters.
const COLUMNS: [&str; 10] = [
    "id",
    "batch",
    "log_likelihood",
    "log_likelihood_sd",
    "status",
    "seconds",
    "attempts",
    "worker",
    "kind",
    "message",
];

/// A name that means nothing to shells, tables, web pages and other languages.
///
/// # Errors
/// [`Error::Invalid`] for one that does not begin with a letter or has characters other than letters, digits and
/// `_ - . [ ]`.
pub fn require_name(what: &str, name: &str) -> Result<()> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    if name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_') && name.chars().all(fits) {
        return Ok(());
    }
    Err(Error::invalid(what, name, "a name that begins with a letter and has only letters, digits and _ - . [ ]"))
}

/// A prior as `normal(mean 0.0, sd 1.0)`.
fn in_words(prior: &impl Serialize) -> String {
    let json = serde_json::to_string(prior).unwrap_or_default();
    let families: InOrder<InOrder<Box<RawValue>>> = match serde_json::from_str(&json) {
        Ok(families) => families,
        Err(_) => return json,
    };
    let Some((family, parameters)) = families.0.first() else { return json };
    let list = parameters.0.iter().map(|(key, value)| format!("{key} {value}"));
    format!("{family}({})", list.collect::<Vec<_>>().join(", "))
}

/// A JSON object whose keys stay in the order in which they are written: `low` before `high`.
struct InOrder<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = InOrder<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(InOrder(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_by_its_values_and_cannot_be_read_back() {
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let describe = |scale: f64| {
            let map = UnitCubeMap::new(move |v| vec![scale * v[0], v[1] + v[0]]);
            Parameters::new(vec![Parameter::unit_cube(names(), map).unwrap()]).unwrap()
        };
        assert_eq!(describe(2.0), describe(2.0 + 1e-14));
        assert_ne!(describe(2.0), describe(2.0 + 1e-6));
        let written = serde_json::to_value(describe(2.0)).unwrap();
        let read = Parameters::from_problem(&written).unwrap();
        assert_eq!(read, describe(2.0));
        assert!(read.prior().unwrap_err().to_string().contains("a function"));
        assert!(Parameter::unit_cube(names(), UnitCubeMap::new(|_| vec![1.0])).is_err());
    }

    #[test]
    fn names_that_mean_something_elsewhere_are_refused() {
        for name in ["", "x; touch pwned", "</script>", "\x1b[2J", "1x", "a b"] {
            let x = Parameter::Scalar { name: name.into(), prior: Distribution::normal(0.0, 1.0).unwrap() };
            let error = Parameters::new(vec![x]).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains("expected"), "{error}");
        }
        let x = Parameter::Scalar { name: "x".into(), prior: Distribution::normal(0.0, 1.0).unwrap() };
        assert!(Parameters::new(vec![x.clone(), x]).is_err() && Parameters::new(vec![]).is_err());
    }
}
