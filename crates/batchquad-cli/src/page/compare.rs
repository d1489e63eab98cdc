//! The page about several models.

use anyhow::Result;
use batchquad::{
    Engine,
    evaluate::clean,
    infer::Standing,
    run::{
        Level,
        report::{Contender, Tally, Trust, conclusion, probability},
    },
};
use batchquad_plot::{Axis, Chart, Errors, Figure};
use serde::Serialize;

use super::{
    Drawn, NARROW,
    diagnostics::level,
    render,
    words::{count, plus_minus},
};

/// A model with its evidence and how it stands against the others.
pub struct Compared<'a> {
    pub name: String,
    pub engine: &'a Engine,
    pub log_z: f64,
    pub log_z_sd: f64,
    pub standing: &'a Standing,
    pub trust: &'a Trust,
}

#[derive(Serialize)]
struct Page {
    headline: String,
    warnings: Vec<String>,
    models: Vec<Model>,
    evidences: Drawn,
    probabilities: Drawn,
}

#[derive(Serialize)]
struct Model {
    name: String,
    log_z: String,
    factor: String,
    probability: String,
    evaluations: usize,
    parameters: String,
    level: &'static str,
    verdict: &'static str,
}

/// The comparison as HTML.
pub fn compare(models: &[Compared<'_>]) -> Result<String> {
    let contenders: Vec<Contender<'_>> = models
        .iter()
        .map(|m| Contender { name: &m.name, standing: m.standing, verdict: Some(m.trust.verdict) })
        .collect();
    let headline = clean(&conclusion(&contenders));
    let row = |m: &Compared<'_>| Model {
        name: clean(&m.name),
        log_z: plus_minus(m.log_z, m.log_z_sd),
        factor: match m.standing.log_bayes_factor_sd {
            sd if sd > 0.0 => plus_minus(m.standing.log_bayes_factor, sd),
            _ => "0".into(),
        },
        probability: match m.trust.verdict {
            Level::DoNotTrust => "unknown".into(),
            _ => probability(m.standing.probability, m.standing.probability_sd),
        },
        evaluations: Tally::of(m.engine.ledger()).done(),
        parameters: m.engine.prior().names().iter().map(|n| clean(n)).collect::<Vec<_>>().join(", "),
        level: level(m.trust.verdict),
        verdict: m.trust.verdict.as_str(),
    };
    let names = || models.iter().map(|m| clean(&m.name));
    let height = (34.0 * models.len() as f64).clamp(60.0, 900.0);
    let bars = models
        .iter()
        .enumerate()
        .map(|(i, m)| (i as f64, m.log_z - 2.0 * m.log_z_sd, m.log_z, m.log_z + 2.0 * m.log_z_sd));
    let evidences = Chart::new(Axis::linear("log Z (bars: ± 2 sd)"), Axis::categories("", names())).with(
        Errors::new(bars)
            .horizontal()
            .tips(models.iter().map(|m| format!("{}\nlog Z {}", clean(&m.name), plus_minus(m.log_z, m.log_z_sd)))),
    );
    let probabilities =
        Chart::new(Axis::linear("posterior probability").range(0.0, 1.0), Axis::categories("", names()));
    let probabilities = probabilities.with(
        Errors::new(models.iter().enumerate().map(|(i, m)| {
            let Standing { probability: p, probability_sd: sd, .. } = *m.standing;
            (i as f64, (p - sd).max(0.0), p, (p + sd).min(1.0))
        }))
        .horizontal()
        .colour(2),
    );
    let label = format!("Evidences of {}", count(models.len(), "model", "models"));
    let page = Page {
        headline,
        warnings: models
            .iter()
            .filter(|m| m.trust.verdict == Level::DoNotTrust)
            .map(|m| format!("{}: {}", clean(&m.name), m.trust.line()))
            .collect(),
        models: models.iter().map(row).collect(),
        evidences: Drawn::new(
            "evidences",
            &Figure::new(label.clone(), evidences.clone()).width(820.0).panel_height(height),
            "Evidences; what matters is their differences.",
        )
        .with_narrow("evidences", &Figure::new(label, evidences).width(NARROW).panel_height(height)),
        probabilities: Drawn::new(
            "probabilities",
            &Figure::new("Posterior probabilities of the models", probabilities.clone())
                .width(820.0)
                .panel_height(height),
            "Probabilities of the models, with the uncertainty that comes from that of the evidences.",
        )
        .with_narrow(
            "probabilities",
            &Figure::new("Posterior probabilities of the models", probabilities).width(NARROW).panel_height(height),
        ),
    };
    render("compare.html", &page)
}
