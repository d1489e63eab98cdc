//! `compare`: models side by side.

use std::path::PathBuf;

use anyhow::{Context, Result};
use batchquad::{compare::Standing, estimate::Estimate, session::peek};
use serde::Serialize;

use crate::{
    exit::Exit,
    output::{plus_minus, print, print_json, table},
};

/// A line of the comparison.
#[derive(Serialize)]
struct Model<'a> {
    store: String,
    log_z: f64,
    log_z_sd: f64,
    #[serde(flatten)]
    standing: &'a Standing,
}

pub fn compare(stores: &[PathBuf], json: bool) -> Result<Exit> {
    let mut evidences = Vec::new();
    for store in stores {
        let (engine, _) = peek(store)?;
        let Estimate { log_z, log_z_sd, .. } =
            engine.current().with_context(|| format!("{} has no log Z", store.display()))?.estimate;
        evidences.push((log_z, log_z_sd));
    }
    let standings = batchquad::compare::compare(&evidences)?;
    let models: Vec<Model<'_>> = stores
        .iter()
        .zip(evidences)
        .zip(&standings)
        .map(|((store, (log_z, log_z_sd)), standing)| Model {
            store: store.display().to_string(),
            log_z,
            log_z_sd,
            standing,
        })
        .collect();
    if json {
        print_json(&serde_json::json!({ "models": models }))?;
        return Ok(Exit::Done);
    }
    let mut rows: Vec<Vec<String>> =
        vec![["model", "log Z", "log Bayes factor", "probability"].map(String::from).to_vec()];
    for model in &models {
        let Standing { log_bayes_factor, log_bayes_factor_sd, probability, probability_sd } = *model.standing;
        let factor = if log_bayes_factor_sd > 0.0 {
            plus_minus(log_bayes_factor, log_bayes_factor_sd)
        } else {
            log_bayes_factor.to_string()
        };
        let probability = format!("{probability:.4} ± {probability_sd:.4}");
        rows.push(vec![model.store.clone(), plus_minus(model.log_z, model.log_z_sd), factor, probability]);
    }
    print(&table(&rows))?;
    print("Bayes factors are against the best model; probabilities are for equal prior odds.")?;
    Ok(Exit::Done)
}
