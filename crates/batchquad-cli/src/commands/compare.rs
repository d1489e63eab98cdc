//! `compare`: models side by side.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use batchquad::{
    belief::Estimate,
    infer::Standing,
    run::{
        Level, diagnose, peek,
        report::{Contender, Trust, conclusion, probability},
    },
};
use serde::Serialize;

use crate::{
    exit::{BadInput, Exit},
    output::{note, plus_minus, print, print_json, table},
    page,
};

/// A line of the comparison.
#[derive(Serialize)]
struct Model<'a> {
    name: String,
    store: String,
    log_z: f64,
    log_z_sd: f64,
    #[serde(flatten)]
    standing: &'a Standing,
    #[serde(flatten)]
    trust: Trust,
}

/// The name of a model and its store: `name=store`, or a store alone, which is then its own name.
fn named(word: &str) -> (String, PathBuf) {
    let whole = Path::new(word);
    match word.split_once('=') {
        Some((name, store)) if !name.is_empty() && !whole.exists() => (name.to_owned(), PathBuf::from(store)),
        _ => (word.to_owned(), whole.to_owned()),
    }
}

pub fn compare(words: &[String], json: bool, html: Option<&Path>, strict: bool) -> Result<Exit> {
    let (names, stores): (Vec<String>, Vec<PathBuf>) = words.iter().map(|word| named(word)).unzip();
    let twice = |(i, name): (usize, &String)| (names[..i].contains(name) && words[i] != *name).then(|| name.clone());
    if let Some(name) = names.iter().enumerate().find_map(twice) {
        return Err(BadInput(format!("two models are called {name:?}, expected a name for each: name=store")).into());
    }
    let (mut engines, mut evidences, mut trusts) = (Vec::new(), Vec::new(), Vec::new());
    for store in &stores {
        let (engine, _) = peek(store)?;
        let Estimate { log_z, log_z_sd, .. } =
            engine.current().with_context(|| format!("{} has no log Z", store.display()))?.estimate;
        evidences.push((log_z, log_z_sd));
        trusts.push(Trust::new(&diagnose(&engine)?, engine.ledger()));
        engines.push(engine);
    }
    let standings = batchquad::infer::compare(&evidences)?;
    let models: Vec<Model<'_>> = names
        .iter()
        .zip(&stores)
        .zip(evidences)
        .zip(&standings)
        .zip(trusts)
        .map(|((((name, store), (log_z, log_z_sd)), standing), trust)| Model {
            name: name.clone(),
            store: store.display().to_string(),
            log_z,
            log_z_sd,
            standing,
            trust,
        })
        .collect();
    let exit = if strict && models.iter().any(|m| m.trust.verdict == Level::DoNotTrust) {
        Exit::NotTrusted
    } else {
        Exit::Done
    };
    if let Some(file) = html {
        let compared: Vec<page::Compared<'_>> = models
            .iter()
            .zip(&engines)
            .map(|(model, engine)| page::Compared {
                name: model.name.clone(),
                engine,
                log_z: model.log_z,
                log_z_sd: model.log_z_sd,
                standing: model.standing,
                trust: &model.trust,
            })
            .collect();
        page::save(&page::compare(&compared)?, file, page::Named::ByUser)?;
        if file.as_os_str() != "-" {
            note(&format!("wrote {}", file.display()));
        }
        return Ok(exit);
    }
    let contenders: Vec<Contender<'_>> = models
        .iter()
        .map(|m| Contender { name: &m.name, standing: m.standing, verdict: Some(m.trust.verdict) })
        .collect();
    let said = conclusion(&contenders);
    if json {
        print_json(&serde_json::json!({ "conclusion": said, "models": models }))?;
        return Ok(exit);
    }
    let mut rows: Vec<Vec<String>> =
        vec![["model", "log Z", "log Bayes factor", "probability", "verdict"].map(String::from).to_vec()];
    for model in &models {
        let Standing { log_bayes_factor, log_bayes_factor_sd, probability: p, probability_sd } = *model.standing;
        let factor = if log_bayes_factor_sd > 0.0 {
            plus_minus(log_bayes_factor, log_bayes_factor_sd)
        } else {
            log_bayes_factor.to_string()
        };
        rows.push(vec![
            model.name.clone(),
            plus_minus(model.log_z, model.log_z_sd),
            factor,
            match model.trust.verdict {
                Level::DoNotTrust => "unknown".into(),
                _ => probability(p, probability_sd),
            },
            model.trust.verdict.as_str().into(),
        ]);
    }
    print(&table(&rows))?;
    for model in models.iter().filter(|model| model.trust.verdict == Level::DoNotTrust) {
        print(&format!("{}: {}", model.name, model.trust.line()))?;
    }
    print(&format!("{said}."))?;
    print("Bayes factors are against the best model; probabilities are for equal prior odds.")?;
    Ok(exit)
}
