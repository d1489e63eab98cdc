//! `init`: a problem file and a likelihood to begin with.

use std::{
    fs,
    io::{IsTerminal, Write},
    process::Command,
};

use anyhow::{Context, Result};
use batchquad::prior::{Distribution, Family, require_name};
use serde_json::{Value, json};

use crate::{
    cli::{InitArgs, Language},
    exit::{BadInput, Exit},
    output::{note, print},
    problem::Problem,
    reading::unknown_word,
};

/// Families of one parameter with their keys, in the order in which they are given.
const FAMILIES: [(&str, &[&str]); 13] = [
    ("normal", &["mean", "sd"]),
    ("log-normal", &["mu", "sigma"]),
    ("uniform", &["low", "high"]),
    ("log-uniform", &["low", "high"]),
    ("beta", &["a", "b"]),
    ("gamma", &["shape", "rate"]),
    ("inverse-gamma", &["shape", "scale"]),
    ("exponential", &["rate"]),
    ("half-normal", &["scale"]),
    ("cauchy", &["location", "scale"]),
    ("half-cauchy", &["scale"]),
    ("student-t", &["dof", "location", "scale"]),
    ("truncated-normal", &["mean", "sd", "low", "high"]),
];

/// The word for a parameter whose two ends are the same place.
const PERIODIC: &str = "periodic";

/// A parameter with its prior.
struct Parameter {
    name: String,
    family: &'static str,
    values: Vec<(&'static str, Value)>,
    prior: Distribution,
}

pub fn init(args: &InitArgs) -> Result<Exit> {
    let mut parameters = args.parameter.iter().map(|text| parameter(text)).collect::<Result<Vec<_>, _>>()?;
    let mut language = args.language;
    let mut command = args.command.clone();
    if parameters.is_empty() && std::io::stdin().is_terminal() {
        (parameters, language, command) = asked(language, command)?;
    }
    if parameters.is_empty() {
        parameters = vec![parameter("slope=normal(0, 1)")?, parameter("offset=uniform(-5, 5)")?];
    }
    for (i, one) in parameters.iter().enumerate() {
        if parameters[..i].iter().any(|other| other.name == one.name) {
            return Err(BadInput(format!("the parameter {:?} is given twice, expected each once", one.name)).into());
        }
    }
    let dir = &args.dir;
    let stub = command.is_empty().then(|| Stub::new(language.unwrap_or(Language::Python), &parameters)).transpose()?;
    let problem = dir.join("problem.toml");
    let files: Vec<(std::path::PathBuf, String)> = std::iter::once((
        problem.clone(),
        problem_file(&parameters, stub.as_ref().map_or(&command, |stub| &stub.command)),
    ))
    .chain(stub.iter().map(|stub| (dir.join(stub.file), stub.text.clone())))
    .collect();
    if let Some((there, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(BadInput(format!("{} exists already, expected a directory without it", there.display())).into());
    }
    // What is written is what `run` accepts.
    Problem::parse(&files[0].1, dir)?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (path, text) in &files {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        note(&format!("wrote {}", path.display()));
    }
    if let Some(build) = stub.as_ref().and_then(|stub| stub.build) {
        let built = Command::new(build[0]).args(&build[1..]).current_dir(dir).status();
        match built {
            Ok(status) if status.success() => note(&format!("built it with `{}`", build.join(" "))),
            _ => note(&format!("build it with `{}`", build.join(" "))),
        }
    }
    let shown = problem.display();
    print(&format!(
        "Next: `batchquad check {shown}` runs one evaluation, `batchquad run {shown}` all of them.{}",
        if stub.is_some() { "\nThe likelihood is an example: put yours in its place." } else { "" }
    ))?;
    Ok(Exit::Done)
}

/// `name=family(numbers)`.
fn parameter(text: &str) -> Result<Parameter, BadInput> {
    let refuse = |expected: &str| BadInput(format!("--parameter is {text:?}, expected {expected}"));
    let example = "a name and a prior, for instance k=uniform(0, 10)";
    let (name, prior) = text.split_once(['=', '~']).ok_or_else(|| refuse(example))?;
    let name = name.trim();
    require_name("--parameter", name).map_err(|e| BadInput(e.to_string()))?;
    let (family, values, prior) = prior_of(prior)?;
    Ok(Parameter { name: name.to_owned(), family, values, prior })
}

type Read = (&'static str, Vec<(&'static str, Value)>, Distribution);

/// `family(numbers)`; of an angle or a phase `uniform(low, high, periodic)`.
fn prior_of(text: &str) -> Result<Read, BadInput> {
    let refuse = |expected: String| BadInput(format!("the prior is {:?}, expected {expected}", text.trim()));
    let (word, rest) =
        text.trim().split_once('(').ok_or_else(|| refuse("a family with numbers, for instance normal(0, 1)".into()))?;
    let word = word.trim().replace('_', "-").to_lowercase();
    let families: Vec<&str> = FAMILIES.iter().map(|(family, _)| *family).collect();
    let Some((family, keys)) = FAMILIES.iter().find(|(family, _)| *family == word) else {
        return Err(BadInput(unknown_word("prior", "family", &word, &families)));
    };
    let rest = rest.trim_end().strip_suffix(')').ok_or_else(|| refuse("a closing bracket".into()))?;
    let (circles, pieces): (Vec<&str>, Vec<&str>) =
        rest.split(',').partition(|piece| piece.split('=').next().is_some_and(|word| word.trim() == PERIODIC));
    let mut values = Vec::new();
    for (piece, key) in pieces.iter().copied().zip(*keys) {
        let number = piece.split_once('=').map_or(piece, |(_, number)| number).trim();
        let key = match piece.split_once('=') {
            Some((given, _)) => keys
                .iter()
                .find(|key| **key == given.trim())
                .ok_or_else(|| refuse(format!("{family}({})", keys.join(", "))))?,
            None => key,
        };
        let value: f64 = number.parse().map_err(|_| refuse(format!("numbers in {family}({})", keys.join(", "))))?;
        values.push((*key, json!(value)));
    }
    if pieces.len() > keys.len() {
        return Err(refuse(format!("{family}({})", keys.join(", "))));
    }
    match circles.as_slice() {
        [] => {}
        [one] if *family == "uniform" && one.split_once('=').is_none_or(|(_, is)| is.trim() == "true") => {
            values.push((PERIODIC, json!(true)));
        }
        _ => {
            return Err(refuse(
                "a uniform one for a periodic parameter, for instance uniform(0, 360, periodic)".into(),
            ));
        }
    }
    let object: serde_json::Map<String, Value> =
        values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let parsed: Family = serde_json::from_value(json!({ *family: object }))
        .map_err(|_| refuse(format!("{family}({})", keys.join(", "))))?;
    let prior = Distribution::try_from(parsed).map_err(|e| BadInput(e.to_string()))?;
    Ok((family, values, prior))
}

/// Asks on the terminal.
fn asked(language: Option<Language>, command: Vec<String>) -> Result<(Vec<Parameter>, Option<Language>, Vec<String>)> {
    let mut parameters = Vec::new();
    loop {
        let more = if parameters.is_empty() { "" } else { " (empty: no more)" };
        let name = ask(&format!("name of a parameter{more}: "))?;
        if name.is_empty() && !parameters.is_empty() {
            break;
        }
        if let Err(e) = require_name("name", &name) {
            note(&e.to_string());
            continue;
        }
        loop {
            match prior_of(&ask(&format!("prior of {name}, for instance uniform(0, 10) or normal(0, 1): "))?) {
                Ok((family, values, prior)) => {
                    parameters.push(Parameter { name, family, values, prior });
                    break;
                }
                Err(e) => note(&e.to_string()),
            }
        }
    }
    if language.is_some() || !command.is_empty() {
        return Ok((parameters, language, command));
    }
    loop {
        let word = ask("language of the likelihood (python, c, r, julia), or empty for a command of your own: ")?;
        if word.is_empty() {
            let line = ask("the command, for instance ./simulate {name}: ")?;
            let words = line.split_whitespace().map(str::to_owned).collect();
            return Ok((parameters, None, words));
        }
        match clap::ValueEnum::from_str(&word, true) {
            Ok(language) => return Ok((parameters, Some(language), Vec::new())),
            Err(_) => note(&unknown_word("", "language", &word, &["python", "c", "r", "julia"])),
        }
    }
}

fn ask(question: &str) -> Result<String> {
    let mut out = std::io::stderr().lock();
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(BadInput("the input ended, expected an answer".into()).into());
    }
    Ok(line.trim().to_owned())
}

fn problem_file(parameters: &[Parameter], command: &[String]) -> String {
    let mut text = String::from(
        "# What is to be integrated. Every key is described in docs/problem-file.md; `batchquad check problem.toml` looks at all of it.\n",
    );
    for Parameter { name, family, values, .. } in parameters {
        let values: Vec<String> = values.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        text.push_str(&format!(
            "\n[[parameter]]\nname = {name:?}\n# label = \"{name} [unit]\"   # what plots and reports call it\nprior = {{ {family} = {{ {} }} }}\n",
            values.join(", ")
        ));
    }
    let words: Vec<String> = command.iter().map(|word| toml::Value::from(word.as_str()).to_string()).collect();
    text.push_str(&format!(
        "
[likelihood]
# {{name}} becomes the value of a parameter. The answer is one number on standard output: the log-likelihood.
command = [{}]
# timeout = 3600           # seconds for one evaluation
# on_failure = \"exclude\"   # what fails is left out; \"as-zero\": its likelihood is zero; \"abort\": the run ends

[run]
max_evaluations = 64
batch = 8                  # points chosen together
# workers = 8              # evaluations at the same time; by default one per core
# target_sd = 0.05         # stop when log Z is known so well
# seed = 0                 # same seed, same points
",
        words.join(", ")
    ));
    text
}

/// A likelihood that works: normal in every parameter, around the median of its prior and narrower than it.
struct Stub {
    file: &'static str,
    text: String,
    command: Vec<String>,
    build: Option<&'static [&'static str]>,
}

impl Stub {
    fn new(language: Language, parameters: &[Parameter]) -> Result<Self> {
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let (mut centres, mut widths) = (Vec::new(), Vec::new());
        for parameter in parameters {
            let at = |u: f64| parameter.prior.to_theta(u);
            centres.push(format!("{:?}", rounded(at(0.0)?)));
            widths.push(format!("{:?}", rounded(0.25 * (at(1.0)? - at(-1.0)?))));
        }
        let (centres, widths, n) = (centres.join(", "), widths.join(", "), names.len());
        let list = names.join(", ");
        let (file, program, text, build): (_, &[&str], String, Option<&'static [&'static str]>) = match language {
            Language::Python => (
                "likelihood.py",
                &["python3", "likelihood.py"],
                format!(
                    "\"\"\"The log-likelihood of {list}, given as arguments in this order.\"\"\"

import sys

parameters = [float(word) for word in sys.argv[1:]]

# Put your model in here. As an example, {n} measurements with normal errors:
measured = [{centres}]
errors = [{widths}]
log_likelihood = sum(-0.5 * ((p - m) / e) ** 2 for p, m, e in zip(parameters, measured, errors))

# Nothing else may be printed; say the rest on standard error.
print(log_likelihood)
"
                ),
                None,
            ),
            Language::C => (
                "likelihood.c",
                &["./likelihood"],
                format!(
                    "/* The log-likelihood of {list}, given as arguments in this order. Build it with

       cc -O2 -o likelihood likelihood.c -lm
*/
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{{
    /* Put your model in here. As an example, {n} measurements with normal errors: */
    const double measured[{n}] = {{{centres}}}, error[{n}] = {{{widths}}};
    double log_likelihood = 0.0;
    if (argc != {n} + 1) {{
        fprintf(stderr, \"%d arguments, expected {n}\\n\", argc - 1);
        return 1;
    }}
    for (int i = 0; i < {n}; i++) {{
        const double z = (strtod(argv[i + 1], NULL) - measured[i]) / error[i];
        log_likelihood -= 0.5 * z * z;
    }}
    /* Nothing else may be printed; say the rest on standard error. */
    printf(\"%.17g\\n\", log_likelihood);
    return 0;
}}
"
                ),
                Some(&["cc", "-O2", "-o", "likelihood", "likelihood.c", "-lm"]),
            ),
            Language::R => (
                "likelihood.R",
                &["Rscript", "likelihood.R"],
                format!(
                    "# The log-likelihood of {list}, given as arguments in this order.
parameters <- as.numeric(commandArgs(trailingOnly = TRUE))

# Put your model in here. As an example, {n} measurements with normal errors:
measured <- c({centres})
errors <- c({widths})
log_likelihood <- sum(-0.5 * ((parameters - measured) / errors)^2)

# Nothing else may be printed; say the rest with message().
cat(format(log_likelihood, digits = 17), \"\\n\")
"
                ),
                None,
            ),
            Language::Julia => (
                "likelihood.jl",
                &["julia", "likelihood.jl"],
                format!(
                    "# The log-likelihood of {list}, given as arguments in this order.
parameters = parse.(Float64, ARGS)

# Put your model in here. As an example, {n} measurements with normal errors:
measured = [{centres}]
errors = [{widths}]
log_likelihood = sum(-0.5 .* ((parameters .- measured) ./ errors) .^ 2)

# Nothing else may be printed; say the rest on stderr.
println(log_likelihood)
"
                ),
                None,
            ),
        };
        let command =
            program.iter().map(|word| (*word).to_owned()).chain(names.iter().map(|name| format!("{{{name}}}")));
        Ok(Self { file, text, command: command.collect(), build })
    }
}

/// To three digits: an example needs no more.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_read_as_they_are_typed() {
        for (text, family, values) in [
            ("k=uniform(0, 10)", "uniform", vec![("low", 0.0), ("high", 10.0)]),
            ("k ~ Log_Uniform(1e-3,1e3)", "log-uniform", vec![("low", 1e-3), ("high", 1e3)]),
            ("x[0]=normal(sd=2, mean=1)", "normal", vec![("sd", 2.0), ("mean", 1.0)]),
            ("t=truncated-normal(0, 1, low=0)", "truncated-normal", vec![("mean", 0.0), ("sd", 1.0), ("low", 0.0)]),
        ] {
            let read = parameter(text).unwrap();
            let values: Vec<_> = values.into_iter().map(|(key, value)| (key, json!(value))).collect();
            assert_eq!((read.family, read.values), (family, values), "{text}");
        }
        for text in
            ["a=uniform(0, 360, periodic)", "a=uniform(0, 360, periodic=true)", "a=uniform(periodic, low=0, high=360)"]
        {
            let expected = Family::Uniform { low: 0.0, high: 360.0, periodic: true };
            assert_eq!(*parameter(text).unwrap().prior.family(), expected, "{text}");
        }
        for (text, said) in [
            ("k", "k=uniform(0, 10)"),
            ("1k=normal(0,1)", "begins with a letter"),
            ("k=norml(0,1)", "did you mean `normal`?"),
            ("k=normal(0,1", "a closing bracket"),
            ("k=normal(0)", "normal(mean, sd)"),
            ("k=normal(0,1,2)", "normal(mean, sd)"),
            ("k=normal(0,x)", "numbers"),
            ("k=normal(0,mu=3)", "normal(mean, sd)"),
            ("k=uniform(3,1)", "high"),
            ("k=normal(0, 1, periodic)", "uniform(0, 360, periodic)"),
            ("k=uniform(0, 1, periodic=maybe)", "uniform(0, 360, periodic)"),
            ("k=uniform(0, periodic)", "uniform(low, high)"),
        ] {
            let error = parameter(text).map(|p| p.name).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
