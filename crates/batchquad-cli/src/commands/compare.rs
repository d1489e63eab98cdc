//! `compare`: models side by side.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use batchquad::{
    belief::Estimate,
    infer::Standing,
    run::{Level, diagnose, peek, report::Trust},
};
use serde::Serialize;

use crate::{
    exit::Exit,
    output::{note, plus_minus, print, print_json, table},
    page,
};

/// A line of the comparison.
#[derive(Serialize)]
struct Model<'a> {
    store: String,
    log_z: f64,
    log_z_sd: f64,
    #[serde(flatten)]
    standing: &'a Standing,
    #[serde(flatten)]
    trust: Trust,
}

pub fn compare(stores: &[PathBuf], json: bool, html: Option<&Path>) -> Result<Exit> {
    let (mut engines, mut evidences, mut trusts) = (Vec::new(), Vec::new(), Vec::new());
    for store in stores {
        let (engine, _) = peek(store)?;
        let Estimate { log_z, log_z_sd, .. } =
            engine.current().with_context(|| format!("{} has no log Z", store.display()))?.estimate;
        evidences.push((log_z, log_z_sd));
        trusts.push(Trust::new(&diagnose(&engine)?, engine.ledger()));
        engines.push(engine);
    }
    let standings = batchquad::infer::compare(&evidences)?;
    let models: Vec<Model<'_>> = stores
        .iter()
        .zip(evidences)
        .zip(&standings)
        .zip(trusts)
        .map(|(((store, (log_z, log_z_sd)), standing), trust)| Model {
            store: store.display().to_string(),
            log_z,
            log_z_sd,
            standing,
            trust,
        })
        .collect();
    if let Some(file) = html {
        let compared: Vec<page::Compared<'_>> = models
            .iter()
            .zip(&engines)
            .map(|(model, engine)| page::Compared {
                name: model.store.clone(),
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
        return Ok(Exit::Done);
    }
    if json {
        print_json(&serde_json::json!({ "models": models }))?;
        return Ok(Exit::Done);
    }
    let mut rows: Vec<Vec<String>> =
        vec![["model", "log Z", "log Bayes factor", "probability", "verdict"].map(String::from).to_vec()];
    for model in &models {
        let Standing { log_bayes_factor, log_bayes_factor_sd, probability, probability_sd } = *model.standing;
        let factor = if log_bayes_factor_sd > 0.0 {
            plus_minus(log_bayes_factor, log_bayes_factor_sd)
        } else {
            log_bayes_factor.to_string()
        };
        let probability = format!("{probability:.4} ± {probability_sd:.4}");
        rows.push(vec![
            model.store.clone(),
            plus_minus(model.log_z, model.log_z_sd),
            factor,
            probability,
            model.trust.verdict.as_str().into(),
        ]);
    }
    print(&table(&rows))?;
    for model in models.iter().filter(|model| model.trust.verdict == Level::DoNotTrust) {
        print(&format!("{}: {}", model.store, model.trust.line()))?;
    }
    print("Bayes factors are against the best model; probabilities are for equal prior odds.")?;
    Ok(Exit::Done)
}
