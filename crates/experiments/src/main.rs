//! `cargo run --release -p experiments -- NAME [--runs R] [--seed S] [--out DIR] [--threads T]`.

#![forbid(unsafe_code)]

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, Result};
use batchquad::{Settings, choose::BatchRule};
use clap::{Args, Parser, Subcommand};
use experiments::{
    ablation, branin, calibration,
    cluster::{self, Law},
    comparators, convergence, families, in_model, model_evidence, penalisation,
    plan::Plan,
    problems::Choice,
    publish,
    runs::Workshop,
    stopping, stopping_log, synthetic, verdicts, world, zoo,
};
use serde_json::Value;

#[derive(Parser)]
#[command(about = "The experiments behind batchquad's defaults and claims")]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Figure 1 of the paper: an acquisition, Lipschitz cones, their hard and soft minimum.
    Penalisation(Common),
    /// Integrands that the model could have drawn; hyperparameters known and fitted.
    InModel(Common),
    /// Mixtures of Gaussians in four dimensions.
    Synthetic(Common),
    /// Batches of Bayesian quadrature beside parallel Markov chains on the evidence of a Gaussian process.
    ModelEvidence(Common),
    /// What the paper left open: the constants of local penalisation, other rules, and the library's defaults.
    Ablation(Common),
    /// Other ways to an evidence on all problems at equal evaluations.
    Comparators(Common),
    /// |Δ log Z| of every method on shapes beyond the paper's and on real data.
    Zoo(Common),
    /// Error bars against errors in all runs of the other experiments, and what the stopping rule makes of them.
    Stopping(Common),
    /// How often the verdict of the diagnostics is right.
    Verdicts(Common),
    /// |Δ log Z| and error bars of the default belief on problems of the kind that users bring, beside the square root's.
    World {
        #[command(flatten)]
        common: Common,
        /// Some of the problems, by name; all by default.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// How often the stated intervals hold the truth, on all problems, also with noise, jumps and constraints.
    Coverage {
        #[command(flatten)]
        common: Common,
        /// Some of the problems, by name; all by default.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// The batch sizes.
        #[arg(long, value_delimiter = ',', default_values_t = calibration::BATCHES)]
        batches: Vec<usize>,
    },
    /// Errors and intervals of the default belief on families of generated problems, on which nothing was tuned.
    Families {
        #[command(flatten)]
        common: Common,
        /// Some of the families, by name; all by default.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// The batch sizes.
        #[arg(long, value_delimiter = ',', default_values_t = families::BATCHES)]
        batches: Vec<usize>,
        /// A `readings.csv` of another version, to be compared with member by member.
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
    /// When the default belief stops at target_sd = 0.05, beside when its error was below 0.05 for good.
    StoppingLog {
        #[command(flatten)]
        common: Common,
        /// Some of the problems, by name; all by default.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// All of the above and `efficiency`, one after the other.
    All(Common),
    /// Evaluations to 2 % by batch size and rule, for problems, rules and sizes of your choice.
    Efficiency {
        #[command(flatten)]
        common: Common,
        /// The problems.
        #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Choice::Mixture, Choice::GpEvidence])]
        problems: Vec<Choice>,
        /// The batch rules, as the settings name them.
        #[arg(long, value_delimiter = ',', default_value = "kriging-believer,local-penalisation")]
        rules: Vec<String>,
        /// The batch sizes; ratios are to the smallest.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 8, 16])]
        batches: Vec<usize>,
    },
    /// Evaluations and wall time to an error of 0.02 with the default belief on a simulated cluster, by the number of workers.
    Cluster {
        #[command(flatten)]
        common: Common,
        /// The problems, any of this project; by default mixture, gp-evidence, banana and gaussian-6.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// The batch rules, as the settings name them.
        #[arg(long, value_delimiter = ',', default_value = "kriging-believer")]
        rules: Vec<String>,
        /// How long evaluations take.
        #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Law::Constant, Law::LogNormal, Law::OneToTen])]
        laws: Vec<Law>,
        /// Numbers of workers; ratios are to the first.
        #[arg(long, value_delimiter = ',', default_values_t = cluster::WORKERS)]
        workers: Vec<usize>,
    },
    /// Copies the figures of finished experiments to a directory and their tables into a page.
    Publish {
        /// Where the results are.
        #[arg(long, default_value = "results")]
        out: PathBuf,
        /// The page, with places for tables.
        #[arg(long, default_value = "crates/experiments/RESULTS.md")]
        page: PathBuf,
        /// The directory for figures.
        #[arg(long, default_value = "crates/experiments/figures")]
        figures: PathBuf,
    },
    /// Prints the data of the GP-evidence problem as they were made.
    BraninData,
}

#[derive(Args, Clone)]
struct Common {
    /// Runs of each kind; by default the experiment's own number.
    #[arg(long)]
    runs: Option<u64>,
    /// The seed of the first run; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where results are kept, in a directory for each experiment; finished runs found there are not made again.
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Runs at a time; one per core by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Evaluations a run, instead of the experiment's own number.
    #[arg(long)]
    budget: Option<usize>,
    /// A setting of the library, as JSON: `--set initial_size=8`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Common {
    fn workshop(&self) -> Workshop {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Workshop { out: self.out.clone(), threads: self.threads.unwrap_or(cores) }
    }

    fn plan(&self) -> Result<Plan> {
        if self.runs == Some(0) {
            anyhow::bail!("--runs 0: expected at least 1");
        }
        if self.budget == Some(0) {
            anyhow::bail!("--budget 0: expected at least 1");
        }
        Ok(Plan { runs: self.runs, seed: self.seed, budget: self.budget, settings: self.settings()? })
    }

    /// The default settings with what `--set` changes.
    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for change in &self.set {
            settings = changed(&settings, change).with_context(|| format!("--set {change}"))?;
        }
        Ok(settings)
    }
}

/// `settings` with one of them replaced, from `KEY=VALUE`.
fn changed(settings: &Settings, change: &str) -> Result<Settings> {
    let (key, value) = change.split_once('=').context("expected KEY=VALUE")?;
    let mut map = serde_json::to_value(settings)?;
    // A bare word is a string.
    map[key] = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
    let settings: Settings = serde_json::from_value(map)?;
    settings.validate()?;
    Ok(settings)
}

/// An experiment: what is to be done, to what was found.
type Run = fn(&Plan, &Workshop) -> Result<String>;

/// In an order in which later ones find the runs of earlier ones.
const ALL: [(&str, Run); 10] = [
    ("penalisation", penalisation::run),
    ("in-model", in_model::run),
    ("synthetic", synthetic::run),
    ("model-evidence", model_evidence::run),
    ("ablation", ablation::run),
    ("comparators", comparators::run),
    ("zoo", zoo::run),
    ("efficiency", efficiency),
    ("stopping", stopping::run),
    ("verdicts", verdicts::run),
];

/// What batches cost with the library's own defaults.
fn efficiency(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let problems = [Choice::Mixture, Choice::GpEvidence];
    let grid = |problem| convergence::grid(problem, "", &in_model::RULES, &model_evidence::BATCHES, plan);
    convergence::run("efficiency", &problems.map(grid).concat(), 40, plan, workshop)
}

fn make(common: &Common, run: Run) -> Result<()> {
    print!("{}", run(&common.plan()?, &common.workshop())?);
    Ok(())
}

fn all(common: &Common) -> Result<()> {
    let begin = Instant::now();
    for (i, (name, run)) in ALL.iter().enumerate() {
        let start = Instant::now();
        println!("== {name} ({} of {})\n", i + 1, ALL.len());
        make(common, *run)?;
        println!("{:.0} s\n", start.elapsed().as_secs_f64());
    }
    println!("All of it took {:.1} minutes.", begin.elapsed().as_secs_f64() / 60.0);
    Ok(())
}

fn main() -> ExitCode {
    match perform(Cli::parse().experiment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experiments: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Batch rules as the settings name them.
fn batch_rules(names: &[String]) -> Result<Vec<BatchRule>> {
    let named = |r: &String| -> Result<BatchRule> {
        serde_json::from_value(Value::String(r.clone())).with_context(|| format!("--rules {r:?}"))
    };
    names.iter().map(named).collect()
}

fn perform(experiment: Experiment) -> Result<()> {
    match experiment {
        Experiment::Penalisation(common) => make(&common, penalisation::run),
        Experiment::InModel(common) => make(&common, in_model::run),
        Experiment::Synthetic(common) => make(&common, synthetic::run),
        Experiment::ModelEvidence(common) => make(&common, model_evidence::run),
        Experiment::Ablation(common) => make(&common, ablation::run),
        Experiment::Comparators(common) => make(&common, comparators::run),
        Experiment::Zoo(common) => make(&common, zoo::run),
        Experiment::Stopping(common) => make(&common, stopping::run),
        Experiment::Verdicts(common) => make(&common, verdicts::run),
        Experiment::World { common, only } => {
            print!("{}", world::run(&common.plan()?, &common.workshop(), &only)?);
            Ok(())
        }
        Experiment::Coverage { common, only, batches } => {
            print!("{}", calibration::run(&common.plan()?, &common.workshop(), &only, &batches)?);
            Ok(())
        }
        Experiment::Families { common, only, batches, against } => {
            let (plan, workshop) = (common.plan()?, common.workshop());
            print!("{}", families::run(&plan, &workshop, &only, &batches, against.as_deref())?);
            Ok(())
        }
        Experiment::StoppingLog { common, only } => {
            print!("{}", stopping_log::run(&common.plan()?, &common.workshop(), &only)?);
            Ok(())
        }
        Experiment::All(common) => all(&common),
        Experiment::Cluster { common, only, rules, laws, workers } => {
            let problems = cluster::problems(&only)?;
            if workers.contains(&0) {
                anyhow::bail!("--workers 0: expected at least 1");
            }
            let comparison = cluster::Comparison { problems, rules: batch_rules(&rules)?, laws, workers };
            print!("{}", cluster::run(&comparison, &common.plan()?, &common.workshop())?);
            Ok(())
        }
        Experiment::Efficiency { common, problems, rules, batches } => {
            let plan = common.plan()?;
            let rules = batch_rules(&rules)?;
            let grid = |&problem: &Choice| convergence::grid(problem, "", &rules, &batches, &plan);
            let arms: Vec<_> = problems.iter().flat_map(grid).collect();
            print!("{}", convergence::run("efficiency", &arms, 40, &plan, &common.workshop())?);
            Ok(())
        }
        Experiment::Publish { out, page, figures } => publish::run(&out, &page, &figures),
        Experiment::BraninData => {
            print!("{}", branin::to_csv(&branin::optimise(branin::branin, 20)?)?);
            Ok(())
        }
    }
}
