//! `run`: the whole of it.

use std::{path::Path, time::Duration};

use anyhow::Result;
use batchquad::{
    Error,
    evaluate::Evaluator,
    interrupt::heeding,
    journal::Holder,
    run::{Progress, Report, Run, Session, Status, Stop, aborted},
};

use crate::{
    cli::RunArgs,
    exit::{BadInput, Exit},
    output::{note, print, print_json},
    problem::{Problem, default_store, within},
    progress::Display,
    report::{report, text},
    signals::Signals,
    store,
};

/// With more values than this, the report of an interrupted run is brief: a user who interrupts does not want to wait.
const QUICKLY_REPORTED: usize = 200;

/// How long a step waits before it looks for signals and redraws.
const PATIENCE: Duration = Duration::from_millis(50);

pub fn run(args: &RunArgs) -> Result<Exit> {
    let mut problem = Problem::read(&args.problem)?;
    problem.change(&args.changes)?;
    problem.workers = args.workers.or(problem.workers);
    let workers = problem.workers.unwrap_or_else(cores);
    // Before the store: a mistake in the command should leave nothing behind.
    let evaluator = problem.likelihood()?.evaluator(problem.prior.names(), workers);
    let mut evaluator = evaluator.map_err(|e| blame(e, args))?;
    let dir = args.store.clone().unwrap_or_else(|| default_store(&args.problem));
    let (json, store, left) = (args.json, dir.clone(), dir.clone());
    let signals =
        Signals::listen(evaluator.interrupt(), move || Holder::resign(&left), move || say_goodbye(json, &store))?;
    heeding(signals.computing(), || integrate(&problem, evaluator.as_mut(), &signals, &dir, args))
}

/// What is wrong with the evaluator, in the words of the problem file.
fn blame(error: Error, args: &RunArgs) -> BadInput {
    match error {
        Error::Invalid { what, value, expected } if what == "number of workers" => {
            let key = if args.workers.is_some() { "--workers" } else { "run.workers" };
            BadInput(format!("{key} is {value}, expected {expected}"))
        }
        other => within("likelihood", other).of(&args.problem),
    }
}

fn integrate(
    problem: &Problem,
    evaluator: &mut dyn Evaluator,
    signals: &Signals,
    dir: &Path,
    args: &RunArgs,
) -> Result<Exit> {
    let mut session = open(dir, problem, args)?;
    if aborted(&session.engine).is_some() {
        note("set on_failure to \"exclude\" or \"as-zero\" to go on, or give its value to `batchquad tell`");
    }
    let mut display = Display::new(&session.engine, args.quiet);
    let mut run = Run::new(&mut session.engine, evaluator, session.record.as_mut())?;
    let stop = drive(&mut run, signals, &mut display);
    display.finish();
    let stop = stop?;
    evaluator.shutdown();
    finish(&mut session, &stop, dir, args)
}

/// The store of the problem: the one that is there, or a new one.
fn open(dir: &Path, problem: &Problem, args: &RunArgs) -> Result<Session> {
    if batchquad::journal::Store::exists(dir) {
        return resume(dir, problem, args);
    }
    if args.resume {
        return Err(
            BadInput(format!("there is no store at {}, expected one because of --resume", dir.display())).into()
        );
    }
    match store::create(dir, problem) {
        // Somebody else has made it since we looked: it is his, or free again.
        Err(e) if matches!(e.downcast_ref(), Some(batchquad::Error::StoreExists { .. })) => resume(dir, problem, args),
        created => created,
    }
}

fn resume(dir: &Path, problem: &Problem, args: &RunArgs) -> Result<Session> {
    let session = store::resume(dir, problem)?;
    if !args.quiet {
        let done = session.engine.ledger().entries().filter(|e| !e.is_pending()).count();
        note(&format!("resuming {} with {done} evaluations", dir.display()));
    }
    Ok(session)
}

/// Advances the run to its end, or until it is interrupted.
pub fn drive(run: &mut Run<'_>, signals: &Signals, display: &mut Display) -> Result<Stop> {
    let mut interrupted = false;
    loop {
        if signals.arrived() && !interrupted {
            interrupted = true;
            run.finish_early(by_a_signal());
            run.interrupt();
        }
        match run.advance(PATIENCE) {
            Ok(Progress::Done(stop)) => return Ok(stop),
            Ok(_) => {}
            // What an interrupt breaks off is not the run's fault.
            Err(_) if signals.arrived() => {
                run.interrupt();
                return Ok(by_a_signal());
            }
            Err(e) => return Err(e.into()),
        }
        display.update(run);
    }
}

fn finish(session: &mut Session, stop: &Stop, dir: &Path, args: &RunArgs) -> Result<Exit> {
    let values = session.engine.ledger().values().count() + session.engine.ledger().imported().len();
    let report = if stop.status == Status::Interrupted && values > QUICKLY_REPORTED {
        Report::brief(&session.engine, stop)?.stored_at(dir.display().to_string())
    } else {
        report(&session.engine, Some(stop), dir)?.with_posterior(&session.engine)
    };
    if let Some(trust) = &report.trust
        && let Err(e) = store::remember_end(session, trust)
    {
        note(&format!("what was found out could not be kept in the store: {e:#}"));
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    if stop.status == Status::Interrupted {
        note(&resumable());
    } else if stop.status == Status::Failed && report.log_z.is_none() {
        note(&format!("there is no log Z: {}", stop.reason));
    }
    Ok(Exit::of_stop(stop, session.engine.settings()).strictly(args.strict, report.trust.as_ref()))
}

fn resumable() -> String {
    format!("interrupted and resumable: all finished evaluations are kept. Resume with\n  {}", again())
}

/// Ends a run in the middle of a computation that is no longer wanted.
fn say_goodbye(json: bool, store: &Path) {
    let stop = by_a_signal();
    let (status, reason) = (stop.status.as_str(), &stop.reason);
    let printed = if json {
        print_json(&serde_json::json!({ "status": status, "reason": reason, "store": store.display().to_string() }))
    } else {
        print(&format!("status  {status}: {reason}"))
    };
    drop(printed);
    note(&resumable());
}

fn by_a_signal() -> Stop {
    Stop { status: Status::Interrupted, reason: "a signal arrived".into() }
}

/// This very command, fit to be pasted into a shell.
fn again() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@".contains(c);
    let quote = |word: String| {
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = crate::WORDS.get().into_iter().flatten();
    words.map(|word| quote(word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}
