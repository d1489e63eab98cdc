//! All that is needed to repeat a run.

use batchquad::{
    Engine, Settings,
    evaluate::clean,
    journal::{Event, FORMAT, Replay, Topic},
    prior::{Parameter, Parameters},
    run::report::{known_log_z, labels},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::words::{count, date};
use crate::store::{WORKERS, bridge, command, evaluated_by};

/// Settings, versions, seed and command.
#[derive(Debug, Serialize)]
pub struct Repeat {
    seed: u64,
    written_by: String,
    format: u32,
    /// A problem file that makes the same run.
    problem: String,
    settings: Vec<Setting>,
    events: Vec<(String, String)>,
}

/// A choice of the run.
#[derive(Debug, Serialize)]
struct Setting {
    name: String,
    value: String,
    default: bool,
}

pub fn repeat(engine: &Engine, replay: &Replay) -> anyhow::Result<Repeat> {
    let header = engine.ledger().header();
    let defaults = Settings::default().to_map()?;
    let settings = engine.settings().to_map()?.into_iter().map(|(name, value)| Setting {
        default: defaults.get(&name) == Some(&value),
        value: if value.is_null() { "not set".into() } else { value.to_string().replace('"', "") },
        name,
    });
    Ok(Repeat {
        seed: engine.seed(),
        written_by: clean(header.written_by()),
        format: FORMAT,
        problem: problem_file(engine)?,
        settings: settings.collect(),
        events: events(replay),
    })
}

/// The run as a problem file.
fn problem_file(engine: &Engine) -> anyhow::Result<String> {
    let ledger = engine.ledger();
    let mut text = String::new();
    let labels = labels(ledger);
    for parameter in Parameters::from_problem(ledger.header().problem())?.iter() {
        let (key, prior) = match parameter {
            Parameter::Scalar { name, prior } => (format!("name = {}", toml(&name.as_str().into())?), json!(prior)),
            Parameter::Joint { names, prior } => (format!("names = {}", toml(&names.as_slice().into())?), json!(prior)),
        };
        let own: Vec<Option<&String>> = parameter.names().iter().map(|name| labels.get(name)).collect();
        let label = match (parameter, own.iter().copied().collect::<Option<Vec<_>>>()) {
            (Parameter::Scalar { .. }, Some(own)) => format!("label = {}\n", toml(&json!(own[0]))?),
            (Parameter::Joint { .. }, Some(own)) => format!("labels = {}\n", toml(&json!(own))?),
            _ => String::new(),
        };
        text.push_str(&format!("[[parameter]]\n{key}\n{label}prior = {}\n\n", toml(&prior)?));
    }
    let settings = engine.settings().to_map()?;
    let how = evaluated_by(ledger).unwrap_or_default();
    let likelihood = match (command(ledger), bridge(ledger)) {
        (Some(words), _) => Some(format!("command = {}", toml(&Value::from(words))?)),
        (None, Some(bridge)) => Some(format!("umbridge = {}", toml(&json!(bridge))?)),
        (None, None) => None,
    };
    if let Some(line) = likelihood {
        text.push_str(&format!("[likelihood]\n{line}\n"));
        for (key, value) in how.iter().filter(|(key, _)| !["command", "umbridge", WORKERS].contains(&key.as_str())) {
            // The store may come from anywhere: what is not a key and value of a problem file is left out.
            let (true, Ok(value)) = (is_key(key), toml(value)) else { continue };
            text.push_str(&format!("{key} = {value}\n"));
            if key == "env" {
                text.push_str("# values of environment variables are not kept: put yours in\n");
            }
        }
        if let Some(value) = settings.get("on_failure") {
            text.push_str(&format!("on_failure = {}\n", toml(value)?));
        }
        text.push('\n');
    }
    text.push_str(&format!("[run]\nseed = {}\n", engine.seed()));
    if let Some(workers) = how.get(WORKERS).and_then(Value::as_u64) {
        text.push_str(&format!("{WORKERS} = {workers}\n"));
    }
    if let Some(known) = known_log_z(ledger) {
        text.push_str(&format!("known_log_z = {known:?}\n"));
    }
    for (key, value) in settings.iter().filter(|(key, value)| !value.is_null() && *key != "on_failure") {
        text.push_str(&format!("{key} = {}\n", toml(value)?));
    }
    Ok(clean(&text))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// A JSON value as TOML on one line.
fn toml(value: &Value) -> anyhow::Result<String> {
    Ok(::toml::Value::try_from(value)?.to_string())
}

/// What happened beside asking and telling, with its time.
fn events(replay: &Replay) -> Vec<(String, String)> {
    let mut events = vec![(date(replay.created), "the store was made".to_owned())];
    for record in &replay.records {
        let text = match &record.event {
            Event::Settings { changes } => {
                let list: Vec<String> = changes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("settings changed: {}", list.join(", "))
            }
            Event::Imported { rows } => format!("{} imported", count(rows.len(), "evaluation", "evaluations")),
            event => match (event.remark(), event) {
                (Some((Topic::Likelihood, value)), _) => {
                    let how = value.get("command").or_else(|| value.get("umbridge"));
                    format!("likelihood: {}", how.unwrap_or(&value))
                }
                (Some((Topic::KnownLogZ, value)), _) => format!("known log Z: {value}"),
                // The other remarks are for programs.
                (None, Event::Note { text }) => text.clone(),
                _ => continue,
            },
        };
        events.push((date(record.at), clean(&text)));
    }
    if let Some(last) = replay.records.last() {
        events.push((date(last.at), "the last record".into()));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_toml_that_means_the_same() {
        let value = serde_json::json!({
            "a b": [1, 2.5, -1e300, "quote \" slash \\ bell \u{7} del \u{7f} line\n"], "t": {"x": true, "y": []}, "é": "ü"
        });
        let parsed: ::toml::Table = format!("v = {}", toml(&value).unwrap()).parse().unwrap();
        assert_eq!(serde_json::to_value(&parsed["v"]).unwrap(), value);
    }
}
