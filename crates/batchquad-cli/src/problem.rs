//! The problem file: parameters and priors, the likelihood's command, the run's settings.

use std::path::{Path, PathBuf};

use anyhow::Result;
use batchquad::{
    Error, Prior, Settings,
    evaluate::CommandSpec,
    journal::Header,
    prior::{Distribution, MultivariateNormal},
    settings::OnFailure,
};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{
    cli::{Changes, ScheduleArg},
    exit::BadInput,
    reading::{as_json, read, unknown_word},
};

/// A problem as the user wrote it, every part of it valid.
#[derive(Debug)]
pub struct Problem {
    pub parameters: Parameters,
    pub prior: Prior,
    /// Absent in problems that are evaluated by hand.
    pub likelihood: Option<CommandSpec>,
    pub settings: Settings,
    pub seed: Option<u64>,
    pub workers: Option<usize>,
    /// The answer, where somebody knows it: shown beside the estimate and used for nothing.
    pub known_log_z: Option<f64>,
}

/// The parameters with their priors: all that makes a problem this one, as it is written in stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    parameters: Vec<Block>,
}

/// One `[[parameter]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Block {
    Scalar { name: String, prior: Distribution },
    Joint { names: Vec<String>, prior: Joint },
}

/// A prior over several parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Joint {
    MultivariateNormal(MultivariateNormal),
}

const SECTIONS: [&str; 3] = ["parameter", "likelihood", "run"];
const JOINT: &str = "multivariate-normal";
const EXAMPLE: &str = "prior = { normal = { mean = 0, sd = 1 } }";

impl Problem {
    /// Reads a problem file; relative paths in it start at its own directory.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| BadInput(format!("cannot read the problem file {}: {e}", path.display())))?;
        let base = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, base).map_err(|e| e.of(path).into())
    }

    /// Reads the text of a problem file that lies in the directory `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, BadInput> {
        let table: Table = text.parse().map_err(|e| BadInput(syntax(text, &e)))?;
        if let Some(key) = table.keys().find(|key| !SECTIONS.contains(&key.as_str())) {
            return Err(BadInput(unknown_word("", "section or key", key, &SECTIONS)));
        }
        let parameters = match table.get("parameter") {
            Some(Value::Array(list)) if !list.is_empty() => Parameters::read(list)?,
            Some(Value::Table(_)) => {
                return Err(BadInput("parameter: found one table, expected [[parameter]] with two brackets".into()));
            }
            _ => {
                return Err(BadInput(format!(
                    "parameter: expected at least one [[parameter]], each with name and {EXAMPLE}"
                )));
            }
        };
        let prior = parameters.prior().map_err(|e| BadInput(format!("parameter: {e}")))?;
        let (likelihood, on_failure) = likelihood(table.get("likelihood"), base)?;
        let Run { settings, seed, workers, known_log_z } = Run::read(table.get("run"))?;
        let settings = Settings { on_failure, ..settings };
        settings.validate().map_err(|e| within("run", e))?;
        Ok(Self { parameters, prior, likelihood, settings, seed, workers, known_log_z })
    }

    /// What was given on the command line wins.
    pub fn change(&mut self, changes: &Changes) -> Result<()> {
        let settings = &mut self.settings;
        settings.batch = changes.batch.unwrap_or(settings.batch);
        settings.max_evaluations = changes.max_evaluations.unwrap_or(settings.max_evaluations);
        settings.target_sd = changes.target_sd.or(settings.target_sd);
        settings.schedule = match changes.schedule {
            Some(ScheduleArg::Batch) => batchquad::settings::Schedule::Batch,
            Some(ScheduleArg::Async) => batchquad::settings::Schedule::Async,
            None => settings.schedule,
        };
        self.seed = changes.seed.or(self.seed);
        settings.validate()?;
        Ok(())
    }

    /// The header of a store for this problem; the seed of an existing store holds unless another was asked for.
    pub fn header(&self, store: Option<&Header>) -> Result<Header> {
        let seed = self.seed.or(store.map(Header::seed)).unwrap_or(0);
        let settings = crate::store::settings_map(&self.settings)?;
        Ok(Header::new(self.prior.names().to_vec(), seed, serde_json::to_value(&self.parameters)?, settings)?)
    }

    /// The command of the likelihood.
    pub fn command(&self) -> Result<&CommandSpec> {
        self.likelihood.as_ref().ok_or_else(|| {
            BadInput("likelihood: the section is missing, expected [likelihood] with command = [\"program\", …]".into())
                .into()
        })
    }
}

/// Where the store of a problem is unless somebody says otherwise.
pub fn default_store(problem: &Path) -> PathBuf {
    problem.with_extension("batchquad")
}

impl Parameters {
    fn read(list: &[Value]) -> Result<Self, BadInput> {
        let parameters = list.iter().enumerate().map(|(i, v)| Block::read(&format!("parameter[{i}]"), v));
        Ok(Self { parameters: parameters.collect::<Result<_, _>>()? })
    }

    /// The parameters in a store's header.
    pub fn of_header(header: &Header) -> Result<Self> {
        serde_json::from_value(header.problem().clone())
            .map_err(|e| BadInput(format!("the prior in the store is not one that this program knows: {e}")).into())
    }

    pub fn prior(&self) -> batchquad::Result<Prior> {
        Prior::product(self.parameters.iter().map(Block::prior).collect::<batchquad::Result<Vec<_>>>()?)
    }

    /// Each block for a problem file: the line with its name or names, and its prior.
    pub fn blocks(&self) -> Result<Vec<(String, serde_json::Value)>> {
        let block = |block: &Block| -> Result<(String, serde_json::Value)> {
            Ok(match block {
                Block::Scalar { name, prior } => (format!("name = {}", as_json(name)), serde_json::to_value(prior)?),
                Block::Joint { names, prior } => (format!("names = {}", as_json(names)), serde_json::to_value(prior)?),
            })
        };
        self.parameters.iter().map(block).collect()
    }

    /// How many parameters each block has.
    pub fn sizes(&self) -> Vec<usize> {
        let size = |block: &Block| match block {
            Block::Scalar { .. } => 1,
            Block::Joint { names, .. } => names.len(),
        };
        self.parameters.iter().map(size).collect()
    }

    /// One line for each block: its names and its prior.
    pub fn describe(&self) -> Vec<(String, String)> {
        self.parameters
            .iter()
            .map(|block| match block {
                Block::Scalar { name, prior } => (name.clone(), in_words(prior)),
                Block::Joint { names, prior } => (names.join(", "), in_words(prior)),
            })
            .collect()
    }
}

impl Block {
    fn read(at: &str, value: &Value) -> Result<Self, BadInput> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw {
            name: Option<String>,
            names: Option<Vec<String>>,
            prior: Option<Value>,
        }
        let raw: Raw = read(at, value, &[])?;
        let Some(prior) = raw.prior else {
            return Err(BadInput(format!("{at}: the key `prior` is missing, expected for instance {EXAMPLE}")));
        };
        if prior.as_table().is_none_or(|table| table.len() != 1) {
            let found = as_json(&prior);
            return Err(BadInput(format!("{at}.prior is {}, expected one family, for instance {EXAMPLE}", found)));
        }
        let at_prior = format!("{at}.prior");
        match (raw.name, raw.names) {
            (Some(name), None) if prior.get(JOINT).is_some() => Err(BadInput(format!(
                "{at}: name = {name:?} with a {JOINT} prior, expected names = [\"a\", \"b\", …], one for each dimension"
            ))),
            (Some(name), None) => {
                require_name(&format!("{at}.name"), &name)?;
                Ok(Self::Scalar { name, prior: read(&at_prior, &prior, &[JOINT])? })
            }
            (None, Some(names)) => {
                for (i, name) in names.iter().enumerate() {
                    require_name(&format!("{at}.names[{i}]"), name)?;
                }
                let prior: Joint = read(&at_prior, &prior, &[])?;
                let Joint::MultivariateNormal(normal) = &prior;
                if normal.mean().len() != names.len() {
                    let (n, d) = (names.len(), normal.mean().len());
                    return Err(BadInput(format!(
                        "{at}.names has {n} names, expected {d}, one for each element of mean"
                    )));
                }
                Ok(Self::Joint { names, prior })
            }
            (None, None) => Err(BadInput(format!("{at}: the key `name` is missing"))),
            (Some(_), Some(_)) => Err(BadInput(format!("{at}: found both name and names, expected one of them"))),
        }
    }

    fn prior(&self) -> batchquad::Result<Prior> {
        match self {
            Self::Scalar { name, prior } => Prior::independent([(name.clone(), *prior)]),
            Self::Joint { names, prior: Joint::MultivariateNormal(normal) } => {
                Prior::multivariate_normal(names.clone(), normal.mean().to_vec(), normal.covariance().to_vec())
            }
        }
    }
}

/// A prior as `normal(mean 0.0, sd 1.0)`.
fn in_words(prior: &impl Serialize) -> String {
    let json = serde_json::to_value(prior).unwrap_or_default();
    let Some((family, parameters)) = json.as_object().and_then(|object| object.iter().next()) else {
        return json.to_string();
    };
    let list = parameters.as_object().into_iter().flatten().map(|(key, value)| format!("{key} {value}"));
    format!("{family}({})", list.collect::<Vec<_>>().join(", "))
}

/// Names travel to shells, tables, web pages and other languages: they hold nothing that means something there.
fn require_name(at: &str, name: &str) -> Result<(), BadInput> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    if name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_') && name.chars().all(fits) {
        return Ok(());
    }
    let expected = "a name that begins with a letter and has only letters, digits and _ - . [ ]";
    Err(BadInput(format!("{at} is {name:?}, expected {expected}")))
}

fn likelihood(value: Option<&Value>, base: &Path) -> Result<(Option<CommandSpec>, OnFailure), BadInput> {
    let Some(value) = value else { return Ok((None, OnFailure::default())) };
    let Value::Table(table) = value else {
        return Err(BadInput(format!("likelihood is {}, expected a section [likelihood]", as_json(value))));
    };
    let mut table = table.clone();
    let on_failure = match table.remove("on_failure") {
        Some(value) => read("likelihood.on_failure", &value, &[])?,
        None => OnFailure::default(),
    };
    if let Some(Value::String(line)) = table.get("command")
        && !line.is_empty()
    {
        let words: Vec<String> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let expected = format!("a list, for instance [{}]", words.join(", "));
        return Err(BadInput(format!("likelihood.command is {line:?}, expected {expected} (no shell looks at it)")));
    }
    let mut spec: CommandSpec = read("likelihood", &Value::Table(table), &["on_failure"])?;
    let dir = base.join(spec.working_dir.unwrap_or_default());
    spec.working_dir = Some(dir).filter(|dir| !dir.as_os_str().is_empty());
    spec.validate().map_err(|e| within("likelihood", e))?;
    Ok((Some(spec), on_failure))
}

/// The section `[run]`.
#[derive(Default)]
struct Run {
    settings: Settings,
    seed: Option<u64>,
    workers: Option<usize>,
    known_log_z: Option<f64>,
}

impl Run {
    fn read(value: Option<&Value>) -> Result<Self, BadInput> {
        let Some(value) = value else { return Ok(Self::default()) };
        let Value::Table(table) = value else {
            return Err(BadInput(format!("run is {}, expected a section [run]", as_json(value))));
        };
        let mut table = table.clone();
        if table.contains_key("on_failure") {
            return Err(BadInput("run.on_failure: expected in the section [likelihood]".into()));
        }
        let seed = table.remove("seed").map(|v| read("run.seed", &v, &[])).transpose()?;
        let workers = table.remove("workers").map(|v| read("run.workers", &v, &[])).transpose()?;
        if workers == Some(0) {
            return Err(BadInput("run.workers is 0, expected at least 1".into()));
        }
        let known_log_z = table.remove("known_log_z").map(|v| read("run.known_log_z", &v, &[])).transpose()?;
        if let Some(value) = known_log_z.filter(|value: &f64| !value.is_finite()) {
            return Err(BadInput(format!("run.known_log_z is {value}, expected a finite number")));
        }
        let settings = read("run", &Value::Table(table), &["seed", "workers", "known_log_z"])?;
        Ok(Self { settings, seed, workers, known_log_z })
    }
}

/// An error of the library about a value in a section of the file.
pub fn within(section: &str, error: Error) -> BadInput {
    BadInput(match error {
        Error::Invalid { what, value, expected } => format!("{section}.{what} is {value}, expected {expected}"),
        other => format!("{section}: {other}"),
    })
}

/// A mistake in the TOML itself, with its place.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let what = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let shown = text.lines().nth(line - 1).unwrap_or("").trim();
            let hint = if shown == "[parameter]" { ", expected [[parameter]] with two brackets" } else { "" };
            format!("line {line}: {what}: {shown}{hint}")
        }
        None => what,
    }
}
