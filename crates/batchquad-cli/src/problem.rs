//! The problem file: parameters and priors, the likelihood's command, the run's settings.

use std::path::{Path, PathBuf};

use anyhow::Result;
use batchquad::{
    Error, Prior, Settings,
    evaluate::{CommandEvaluator, CommandSpec, Evaluator, Mode, UmbridgeEvaluator, UmbridgeSpec},
    prior::{JointPrior, MultivariateNormal, Parameter, Parameters, require_name},
    run::{OnFailure, Plan},
};
use serde::Deserialize;
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
    /// What plots and reports call them, where the file says so.
    pub labels: Vec<(String, String)>,
    pub prior: Prior,
    /// Absent in problems that are evaluated by hand.
    pub likelihood: Option<Likelihood>,
    /// The section `[likelihood]` as it was written, without `on_failure` and without the values of `env`: readers of a store or a report need
    /// not see these.
    pub written: Table,
    pub settings: Settings,
    pub seed: Option<u64>,
    pub workers: Option<usize>,
    /// The answer, if it is known: shown beside the estimate and not used for anything.
    pub known_log_z: Option<f64>,
}

const SECTIONS: [&str; 3] = ["parameter", "likelihood", "run"];
/// What stands for the value of an environment variable.
const HIDDEN: &str = "…";
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
        let labels;
        let parameters = match table.get("parameter") {
            Some(Value::Array(list)) if !list.is_empty() => {
                let read = |(i, value)| parameter(&format!("parameter[{i}]"), value);
                let (list, all): (Vec<Parameter>, Vec<Labels>) =
                    list.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
                labels = all.concat();
                let parameters = Parameters::new(list);
                parameters
                    .and_then(|parameters| parameters.require_free_names().map(|()| parameters))
                    .map_err(|e| BadInput(format!("parameter: {e}")))?
            }
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
        let Section { likelihood, on_failure, written } = Section::read(table.get("likelihood"), base)?;
        if let Some(Likelihood::Command(spec)) = &likelihood {
            spec.require_names(prior.names()).map_err(|e| within("likelihood", e))?;
        }
        let Run { settings, seed, workers, known_log_z } = Run::read(table.get("run"))?;
        let settings = Settings { on_failure, ..settings };
        settings.validate().and_then(|()| settings.start_points(&prior)).map_err(|e| within("run", e))?;
        Ok(Self { parameters, labels, prior, likelihood, written, settings, seed, workers, known_log_z })
    }

    /// What was given on the command line wins.
    pub fn change(&mut self, changes: &Changes) -> Result<()> {
        let settings = &mut self.settings;
        settings.batch = changes.batch.unwrap_or(settings.batch);
        settings.max_evaluations = changes.max_evaluations.unwrap_or(settings.max_evaluations);
        settings.target_sd = changes.target_sd.or(settings.target_sd);
        settings.stop_gain = changes.stop_gain.or(settings.stop_gain);
        settings.repeats = changes.repeats.or(settings.repeats);
        settings.schedule = match changes.schedule {
            Some(ScheduleArg::Batch) => batchquad::run::Schedule::Batch,
            Some(ScheduleArg::Async) => batchquad::run::Schedule::Async,
            None => settings.schedule,
        };
        self.seed = changes.seed.or(self.seed);
        settings.validate()?;
        Ok(())
    }

    /// What a store for this problem is made from, or compared with.
    pub fn plan(&self) -> Result<Plan> {
        let problem = serde_json::to_value(&self.parameters)?;
        Ok(Plan { prior: self.prior.clone(), problem, settings: self.settings.clone(), seed: self.seed })
    }

    /// Who evaluates, if anybody but the user does.
    pub fn likelihood(&self) -> Result<&Likelihood> {
        self.likelihood.as_ref().ok_or_else(|| {
            BadInput("likelihood: the section is missing, expected [likelihood] with command = [\"program\", …]".into())
                .into()
        })
    }
}

/// Who computes the log-likelihood.
#[derive(Debug, Clone)]
pub enum Likelihood {
    Command(CommandSpec),
    Umbridge(UmbridgeSpec),
}

impl Likelihood {
    /// `workers` evaluations at a time of points whose coordinates are called `names`.
    pub fn evaluator(&self, names: &[String], workers: usize) -> batchquad::Result<Box<dyn Evaluator>> {
        Ok(match self {
            Self::Command(spec) => Box::new(CommandEvaluator::new(spec.clone(), names, workers)?),
            Self::Umbridge(spec) => Box::new(UmbridgeEvaluator::new(spec.clone(), names, workers)?),
        })
    }

    /// What `check` calls it, and the words for it.
    pub fn describe(&self) -> (&'static str, String) {
        match self {
            Self::Command(spec) => {
                let mode = if spec.mode == Mode::Server { "server" } else { "one process per call" };
                ("command", format!("{:?} ({mode})", spec.command))
            }
            Self::Umbridge(spec) => {
                ("umbridge", format!("{} at {}", spec.umbridge.model, spec.umbridge.url.join(", ")))
            }
        }
    }

    /// The key of `[likelihood]` that says who computes, and its value: the words of a command, or where servers are and which model they have.
    pub fn key(&self) -> Result<(&'static str, serde_json::Value)> {
        Ok(match self {
            Self::Command(spec) => ("command", serde_json::to_value(&spec.command)?),
            Self::Umbridge(spec) => ("umbridge", serde_json::to_value(&spec.umbridge)?),
        })
    }
}

/// What the names of stores end in.
pub const STORE_EXTENSION: &str = "batchquad";

/// The default place of a problem's store.
pub fn default_store(problem: &Path) -> PathBuf {
    problem.with_extension(STORE_EXTENSION)
}

/// What parameters are called in plots and reports, by name.
type Labels = Vec<(String, String)>;

/// One `[[parameter]]`, with its labels.
fn parameter(at: &str, value: &Value) -> Result<(Parameter, Labels), BadInput> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        name: Option<String>,
        names: Option<Vec<String>>,
        label: Option<String>,
        labels: Option<Vec<String>>,
        prior: Option<Value>,
        periodic: Option<Value>,
    }
    let raw: Raw = read(at, value, &[])?;
    if let Some(found) = raw.periodic {
        let expected = "prior = { uniform = { low = 0, high = 360, periodic = true } }";
        return Err(BadInput(format!("{at}.periodic is {}, expected it with the prior: {expected}", as_json(&found))));
    }
    let Some(prior) = raw.prior else {
        return Err(BadInput(format!("{at}: the key `prior` is missing, expected for instance {EXAMPLE}")));
    };
    if prior.as_table().is_none_or(|table| table.len() != 1) {
        let found = as_json(&prior);
        return Err(BadInput(format!("{at}.prior is {}, expected one family, for instance {EXAMPLE}", found)));
    }
    let at_prior = format!("{at}.prior");
    let name_of = |at: String, name: &str| require_name(&at, name).map_err(|e| BadInput(e.to_string()));
    match (raw.name, raw.names) {
        (Some(name), None) if prior.get(JOINT).is_some() => Err(BadInput(format!(
            "{at}: name = {name:?} with a {JOINT} prior, expected names = [\"a\", \"b\", …], one for each dimension"
        ))),
        (Some(name), None) => {
            name_of(format!("{at}.name"), &name)?;
            if raw.labels.is_some() {
                return Err(BadInput(format!("{at}.labels: expected label = \"…\" for a single parameter")));
            }
            let labels = raw.label.into_iter().map(|label| (name.clone(), label)).collect();
            Ok((Parameter::Scalar { name, prior: read(&at_prior, &prior, &[JOINT])? }, labels))
        }
        (None, Some(names)) => {
            for (i, name) in names.iter().enumerate() {
                name_of(format!("{at}.names[{i}]"), name)?;
            }
            let JointInFile::MultivariateNormal(normal) = read(&at_prior, &prior, &[])?;
            if normal.mean().len() != names.len() {
                let (n, d) = (names.len(), normal.mean().len());
                return Err(BadInput(format!("{at}.names has {n} names, expected {d}, one for each element of mean")));
            }
            if raw.label.is_some() || raw.labels.as_ref().is_some_and(|labels| labels.len() != names.len()) {
                return Err(BadInput(format!(
                    "{at}: expected labels = [\"…\", …], one for each of the {} names",
                    names.len()
                )));
            }
            let labels = names.iter().cloned().zip(raw.labels.into_iter().flatten()).collect();
            Ok((Parameter::Joint { names, prior: JointPrior::MultivariateNormal(normal) }, labels))
        }
        (None, None) => Err(BadInput(format!("{at}: the key `name` is missing"))),
        (Some(_), Some(_)) => Err(BadInput(format!("{at}: found both name and names, expected one of them"))),
    }
}

/// The joint priors that a file can hold.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum JointInFile {
    MultivariateNormal(MultivariateNormal),
}

/// The section `[likelihood]`.
#[derive(Default)]
struct Section {
    likelihood: Option<Likelihood>,
    on_failure: OnFailure,
    written: Table,
}

impl Section {
    fn read(value: Option<&Value>, base: &Path) -> Result<Self, BadInput> {
        let Some(value) = value else { return Ok(Self::default()) };
        let Value::Table(table) = value else {
            return Err(BadInput(format!("likelihood is {}, expected a section [likelihood]", as_json(value))));
        };
        let mut table = table.clone();
        let on_failure = match table.remove("on_failure") {
            Some(value) => read("likelihood.on_failure", &value, &[])?,
            None => OnFailure::default(),
        };
        let mut written = table.clone();
        if let Some(Value::Table(env)) = written.get_mut("env") {
            env.iter_mut().for_each(|(_, value)| *value = Value::String(HIDDEN.into()));
        }
        let likelihood = if table.contains_key("umbridge") { umbridge(table)? } else { command(table, base)? };
        Ok(Self { likelihood: Some(likelihood), on_failure, written })
    }
}

fn umbridge(table: Table) -> Result<Likelihood, BadInput> {
    if table.contains_key("command") {
        return Err(BadInput("likelihood: found both command and umbridge, expected one of them".into()));
    }
    let spec: UmbridgeSpec = read("likelihood", &Value::Table(table), &["on_failure"])?;
    spec.validate().map_err(|e| within("likelihood", e))?;
    Ok(Likelihood::Umbridge(spec))
}

fn command(table: Table, base: &Path) -> Result<Likelihood, BadInput> {
    if let Some(Value::String(line)) = table.get("command")
        && !line.is_empty()
    {
        let words: Vec<String> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let expected = format!("a list, for instance [{}]", words.join(", "));
        return Err(BadInput(format!("likelihood.command is {line:?}, expected {expected} (no shell looks at it)")));
    }
    let mut spec: CommandSpec = read("likelihood", &Value::Table(table), &["on_failure", "umbridge"])?;
    let dir = base.join(spec.working_dir.unwrap_or_default());
    spec.working_dir = Some(dir).filter(|dir| !dir.as_os_str().is_empty());
    spec.validate().map_err(|e| within("likelihood", e))?;
    Ok(Likelihood::Command(spec))
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
