//! What command to run, and how.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::placeholders::{Piece, Template, parse};
use crate::error::{Error, Result};

/// A command that computes the log-likelihood, as written in a problem file.
///
/// ```
/// use batchquad::evaluate::CommandSpec;
///
/// let spec = CommandSpec::new(["python3", "likelihood.py"]);
/// assert_eq!(spec.retries, 2);
/// let same: CommandSpec = serde_json::from_str(r#"{"command": ["python3", "likelihood.py"]}"#).unwrap();
/// assert_eq!(spec, same);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// The program and its arguments: no shell looks at them.
    ///
    /// In [`Mode::PerCall`], the name of a parameter in braces inside an argument becomes its value in full precision: `{k}`, `--mass={mass}`.
    /// `{id}` and `{seed}` become those of the job. `{in}` and `{out}` become the paths of two files in a private temporary
    /// directory: the question is then in the first instead of on standard input, and the answer is expected in the
    /// second instead of on standard output. Any other name in braces is refused; `{{name}}` stands for the text `{name}`, and braces around
    /// something that is no name stay as they are. In a script for a shell, `${name}` is the shell's. A program given by a relative path is looked for in [`working_dir`](Self::working_dir).
    pub command: Vec<String>,
    /// Whether `command` is instead a single script for `/bin/sh -c`.
    #[serde(default)]
    pub shell: bool,
    /// One process per evaluation, or long-lived ones.
    #[serde(default)]
    pub mode: Mode,
    /// How long one attempt may take (seconds in a problem file). In [`Mode::Server`] the start of the process counts
    /// towards its first answer. Without it, an evaluation takes as long as it takes.
    #[serde(default, with = "optional_seconds", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How often an evaluation is tried again after a signal, a timeout or a lost worker. Other failures would repeat.
    #[serde(default = "defaults::retries")]
    pub retries: u32,
    /// Where it runs; the caller's own working directory by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
    /// Environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Which of the caller's environment variables it gets beside those.
    #[serde(default)]
    pub inherit_env: Inherit,
    /// The longest answer in bytes; more is a failure of kind `parse`, and ends the process at once. What is printed to
    /// standard error may be of any length: its last 4 KiB are kept.
    #[serde(default = "defaults::max_output")]
    pub max_output: usize,
    /// How long a process that is asked to end (SIGTERM) has before it is killed (SIGKILL). Seconds in a problem file.
    #[serde(default = "defaults::grace", with = "seconds")]
    pub grace: Duration,
}

/// How long a process of the likelihood lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One evaluation: it gets the question, answers and exits with code 0.
    #[default]
    PerCall,
    /// A run: it reads one question a line and writes one answer a line, with the id of the question. For programs that are slow
    /// to start.
    Server,
}

/// Which environment variables are passed on: `true`, `false` or a list of names in a problem file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "RawInherit", into = "RawInherit")]
pub enum Inherit {
    /// All of them.
    #[default]
    All,
    /// None of them.
    Nothing,
    /// Those named, where they are set.
    Only(Vec<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a list of names of environment variables")]
enum RawInherit {
    Flag(bool),
    Names(Vec<String>),
}

impl From<RawInherit> for Inherit {
    fn from(raw: RawInherit) -> Self {
        match raw {
            RawInherit::Flag(true) => Self::All,
            RawInherit::Flag(false) => Self::Nothing,
            RawInherit::Names(names) => Self::Only(names),
        }
    }
}

impl From<Inherit> for RawInherit {
    fn from(inherit: Inherit) -> Self {
        match inherit {
            Inherit::All => Self::Flag(true),
            Inherit::Nothing => Self::Flag(false),
            Inherit::Only(names) => Self::Names(names),
        }
    }
}

pub(super) mod defaults {
    use std::time::Duration;

    pub fn retries() -> u32 {
        2
    }

    pub fn max_output() -> usize {
        1 << 20
    }

    pub fn grace() -> Duration {
        Duration::from_secs(5)
    }
}

mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom(format!("a duration is {seconds}, expected a number of seconds >= 0")))
    }
}

pub(super) mod optional_seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    #[derive(Deserialize)]
    struct Seconds(#[serde(with = "super::seconds")] Duration);

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_some(&duration.as_secs_f64()),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Seconds>::deserialize(deserializer)?.map(|Seconds(duration)| duration))
    }
}

impl CommandSpec {
    /// A command with the default settings: one process per call, no shell, no timeout, two retries.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            shell: false,
            mode: Mode::default(),
            timeout: None,
            retries: defaults::retries(),
            working_dir: None,
            env: BTreeMap::new(),
            inherit_env: Inherit::default(),
            max_output: defaults::max_output(),
            grace: defaults::grace(),
        }
    }

    /// Checks what can be checked without looking at the machine.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the field.
    pub fn validate(&self) -> Result<()> {
        let refuse =
            |what: &str, value: &dyn std::fmt::Debug, expected: &str| Err(Error::invalid(what, value, expected));
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return refuse("command", &self.command, "a program and its arguments");
        }
        if self.shell && self.command.len() != 1 {
            return refuse("command", &self.command, "a single script, because shell = true");
        }
        if let Some(argument) = self.command.iter().find(|argument| argument.contains('\0')) {
            return refuse("command", argument, "text without NUL characters");
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return refuse("timeout", &0.0, "a number of seconds > 0");
        }
        if self.max_output == 0 {
            return refuse("max_output", &0, "a number of bytes > 0");
        }
        let listed: &[String] = if let Inherit::Only(names) = &self.inherit_env { names } else { &[] };
        if let Some(name) = self.env.keys().chain(listed).find(|n| n.is_empty() || n.contains(['=', '\0'])) {
            return refuse("name of an environment variable", name, "text without '=' and NUL characters");
        }
        match self.env.iter().find(|(_, value)| value.contains('\0')) {
            Some((name, value)) => refuse(&format!("env.{name}"), value, "text without NUL characters"),
            None => Ok(()),
        }
    }

    /// [`validate`](Self::validate), and looks whether the working directory and the program are there.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming what was looked for and where.
    pub fn check(&self) -> Result<()> {
        self.validate()?;
        if let Some(dir) = self.working_dir.as_deref().filter(|dir| !dir.is_dir()) {
            return Err(Error::invalid("working_dir", dir, "an existing directory"));
        }
        if self.shell { Ok(()) } else { self.find_program() }
    }

    /// Checks the names in braces, for points whose coordinates are called `names`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is nobody's, and in [`Mode::Server`] for any: a server is started before there is a point.
    pub fn require_names(&self, names: &[impl AsRef<str>]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        self.templates(&names).map(drop)
    }

    /// The arguments in pieces; those of a script are the script itself.
    pub(super) fn templates(&self, names: &[String]) -> Result<Vec<Template>> {
        let arguments = &self.command[usize::from(!self.shell).min(self.command.len())..];
        let templates =
            arguments.iter().map(|argument| parse(argument, names, self.shell)).collect::<Result<Vec<_>>>()?;
        let is_value = |piece: &Piece| !matches!(piece, Piece::Text(_));
        if self.mode == Mode::Server && templates.iter().flatten().any(is_value) {
            let expected = "no names in braces, because mode = \"server\": its questions come on standard input";
            return Err(Error::invalid("command", &self.command, expected));
        }
        Ok(templates)
    }

    fn find_program(&self) -> Result<()> {
        let program = &self.command[0];
        let base = self.working_dir.as_deref().unwrap_or(Path::new(""));
        let path = self.child_variable("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let candidates: Vec<PathBuf> = if program.contains('/') {
            vec![base.join(program)]
        } else {
            std::env::split_paths(&path).map(|dir| base.join(dir).join(program)).collect()
        };
        let files: Vec<&PathBuf> = candidates.iter().filter(|candidate| candidate.is_file()).collect();
        if files.iter().any(|file| is_executable(file)) {
            return Ok(());
        }
        let expected = match files.first() {
            Some(file) => format!("a program that may be executed (chmod +x {})", file.display()),
            None if program.contains('/') => format!("a program: there is no file {}", candidates[0].display()),
            None => format!("a program found in one of {}", path.display()),
        };
        Err(Error::invalid("command", program, expected))
    }

    /// The value that an environment variable will have for the command.
    fn child_variable(&self, name: &str) -> Option<OsString> {
        let inherited = match &self.inherit_env {
            Inherit::All => true,
            Inherit::Nothing => false,
            Inherit::Only(names) => names.iter().any(|listed| listed == name),
        };
        let set = self.env.get(name).map(OsString::from);
        set.or_else(|| std::env::var_os(name).filter(|_| inherited))
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<CommandSpec, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn problem_files_are_read_and_written() {
        let json = r#"{"command": ["a", "b"], "shell": false, "mode": "per-call", "timeout": 1.5, "retries": 0,
            "working_dir": "x", "env": {"A": "1"}, "inherit_env": ["PATH"], "max_output": 10, "grace": 1}"#;
        let spec = parse(json).unwrap();
        assert_eq!((spec.timeout, spec.grace), (Some(Duration::from_millis(1500)), Duration::from_secs(1)));
        assert_eq!(spec.inherit_env, Inherit::Only(vec!["PATH".into()]));
        assert_eq!(parse(&serde_json::to_string(&spec).unwrap()).unwrap(), spec);
        assert_eq!(parse(r#"{"command": ["a"], "mode": "server", "timeout": null}"#).unwrap().mode, Mode::Server);
    }

    #[test]
    fn mistakes_in_problem_files_are_refused_with_what_was_expected() {
        for (json, said) in [
            (r#"{"command": ["a"], "time_out": 3}"#, "unknown field `time_out`"),
            (r#"{"commands": ["a"]}"#, "unknown field `commands`"),
            (r#"{}"#, "missing field `command`"),
            (r#"{"command": "a b"}"#, "expected a sequence"),
            (r#"{"command": ["a"], "mode": "percall"}"#, "expected `per-call` or `server`"),
            (r#"{"command": ["a"], "timeout": -1}"#, "expected a number of seconds"),
            (r#"{"command": ["a"], "timeout": "5s"}"#, "expected f64"),
            (r#"{"command": ["a"], "inherit_env": 3}"#, "expected true, false or a list"),
            (r#"{"command": ["a"], "retries": -1}"#, "expected u32"),
        ] {
            let error = parse(json).unwrap_err();
            assert!(error.contains(said), "{json}: {error}");
        }
    }

    #[test]
    fn specs_that_cannot_work_are_refused() {
        let good = CommandSpec::new(["true"]);
        good.check().unwrap();
        let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        for (spec, said) in [
            (CommandSpec::new(Vec::<String>::new()), "command is []"),
            (CommandSpec::new([""]), "command is [\"\"]"),
            (CommandSpec::new(["a\0b"]), "NUL"),
            (CommandSpec { shell: true, ..CommandSpec::new(["a", "b"]) }, "single script"),
            (CommandSpec { timeout: Some(Duration::ZERO), ..good.clone() }, "timeout is 0"),
            (CommandSpec { max_output: 0, ..good.clone() }, "max_output is 0"),
            (CommandSpec { env: env("A=B", ""), ..good.clone() }, "\"A=B\""),
            (CommandSpec { env: env("A", "\0"), ..good.clone() }, "env.A"),
            (CommandSpec { inherit_env: Inherit::Only(vec![String::new()]), ..good.clone() }, "environment variable"),
            (CommandSpec { working_dir: Some("/no/such".into()), ..good.clone() }, "working_dir is \"/no/such\""),
            (CommandSpec::new(["no-such-program-1"]), "command is \"no-such-program-1\", expected a program found in"),
            (CommandSpec::new(["./no-such-program-1"]), "no file ./no-such-program-1"),
            (CommandSpec { env: env("PATH", "/no/such"), ..good }, "found in one of /no/such"),
        ] {
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains(said), "{error} lacks {said}");
        }
    }

    #[test]
    fn a_server_has_no_values_in_its_arguments() {
        let spec = |argument: &str| CommandSpec { mode: Mode::Server, ..CommandSpec::new(["a", argument]) };
        for argument in ["{in}", "{k}", "--seed={seed}"] {
            let error = spec(argument).require_names(&["k"]).unwrap_err().to_string();
            assert!(error.contains("mode = \"server\""), "{error}");
        }
        assert!(spec("{kk}").require_names(&["k"]).unwrap_err().to_string().contains("not {kk}"));
        spec("{{k}}").require_names(&["k"]).unwrap();
    }
}
