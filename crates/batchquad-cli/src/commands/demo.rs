//! `demo`: a built-in problem from the first point to the report.

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use anyhow::Result;
use batchquad::{
    Error, Prior, Settings,
    evaluate::{Evaluator, ThreadEvaluator},
    interrupt::heeding,
    journal::Topic,
    prior::{Distribution, Parameters},
    run::{Plan, Run, Session, Status},
};

use crate::{
    cli::{DemoArgs, YesNo},
    commands::{report::open, run::drive},
    exit::Exit,
    output::{note, print},
    page,
    progress::Display,
    report::{report, text},
    signals::Signals,
};

/// Degrees Fahrenheit at the launch of 23 shuttle flights, and whether an O-ring was damaged.
const FLIGHTS: [(f64, bool); 23] = [
    (53.0, true),
    (57.0, true),
    (58.0, true),
    (63.0, true),
    (66.0, false),
    (67.0, false),
    (67.0, false),
    (67.0, false),
    (68.0, false),
    (69.0, false),
    (70.0, true),
    (70.0, false),
    (70.0, true),
    (70.0, false),
    (72.0, false),
    (73.0, false),
    (75.0, false),
    (75.0, true),
    (76.0, false),
    (76.0, false),
    (78.0, false),
    (79.0, false),
    (81.0, false),
];

/// log Z on a grid of 1201 × 1201 points.
const KNOWN: f64 = -14.019_41;

/// How long an evaluation pretends to take, so that there is something to see.
const PRETENCE: Duration = Duration::from_millis(60);

const INTRODUCTION: &str = "\
Did the cold matter? Before the last flight of the shuttle Challenger there were 23 others; on seven of them an O-ring was damaged.
The model: damage with probability 1 / (1 + exp(-(a + b t))), t = (°F - 70) / 10, a and b ~ normal(0, 5).
Its evidence is the integral of the likelihood over a and b. 64 evaluations, 8 at a time:
";

pub fn demo(args: &DemoArgs) -> Result<Exit> {
    print(INTRODUCTION)?;
    let normal = Distribution::normal(0.0, 5.0)?;
    let prior = Prior::independent([("a", normal), ("b", normal)])?;
    let problem = serde_json::to_value(Parameters::of(&prior)?)?;
    let plan = Plan { prior, problem, settings: Settings { max_evaluations: 64, ..Settings::default() }, seed: None };
    let mut session = Session::in_memory(&plan)?;
    session.remark(Topic::KnownLogZ, &KNOWN)?;
    let mut evaluator = ThreadEvaluator::new(session.engine.settings().batch, |theta| {
        std::thread::sleep(PRETENCE);
        log_likelihood(theta)
    })?;
    let signals = Signals::listen(evaluator.interrupt(), || {}, || {})?;
    let stop = heeding(signals.computing(), || -> Result<_> {
        let mut display = Display::new(&session.engine, false);
        let mut run = Run::new(&mut session.engine, &mut evaluator, session.record.as_mut())?;
        let stop = drive(&mut run, &signals, &mut display);
        display.finish();
        stop
    })?;
    evaluator.shutdown();
    if stop.status == Status::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let mut found = report(&session.engine, Some(&stop), std::path::Path::new("demo"))?.with_posterior(&session.engine);
    found.store = None;
    print(&text(&found))?;
    let transcript = session.transcript.as_ref().map(|transcript| transcript.lines());
    let lines = transcript.transpose()?.ok_or_else(|| Error::invalid("demo", "without a journal", "one in memory"))?;
    let (_, replay) = batchquad::journal::Lines::read(lines.bytes().to_vec())?;
    let html = page::report(&session.engine, &replay, std::path::Path::new("demo"), None)?;
    let (file, named) = match &args.output {
        Some(file) => (file.clone(), page::Named::ByUser),
        None => (PathBuf::from("batchquad-demo.html"), page::Named::ByUs),
    };
    page::save(&html, &file, named)?;
    if file.as_os_str() != "-" {
        note(&format!("the report is in {}; `batchquad init` begins a problem of your own", file.display()));
        let watched = std::io::stdout().is_terminal();
        if args.open.map_or(watched, |open| open == YesNo::Yes) {
            open(&file);
        }
    }
    Ok(Exit::Done)
}

fn log_likelihood(theta: &[f64]) -> f64 {
    let each = |(fahrenheit, damaged): &(f64, bool)| {
        let z = theta[0] + theta[1] * (fahrenheit - 70.0) / 10.0;
        let z = if *damaged { z } else { -z };
        // log(1 / (1 + exp(-z))), without overflow on either side.
        z.min(0.0) - (-z.abs()).exp().ln_1p()
    };
    FLIGHTS.iter().map(each).sum()
}
