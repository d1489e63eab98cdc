//! `cargo run --release -p experiments -- NAME [--runs R] [--seed S] [--out DIR] [--threads T]`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use batchquad::{Settings, select::BatchRule};
use clap::{Args, Parser, Subcommand};
use experiments::{branin, efficiency, penalisation, problems::Choice, runs::Workshop, verdicts, zoo};
use serde_json::Value;

#[derive(Parser)]
#[command(about = "The experiments behind batchquad's defaults and claims")]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Evaluations to 2 % by batch size and rule, with coverage.
    Efficiency {
        #[command(flatten)]
        common: Common,
        /// The problems.
        #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Choice::Mixture, Choice::GpEvidence])]
        problems: Vec<Choice>,
        /// The batch rules, as the settings name them.
        #[arg(long, value_delimiter = ',', default_value = "kriging-believer,local-penalisation")]
        rules: Vec<String>,
        /// The batch sizes; ratios are to the first.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 8, 16])]
        batches: Vec<usize>,
        /// Evaluations a run, instead of the problem's own.
        #[arg(long)]
        budget: Option<usize>,
    },
    /// |Δ log Z| over shapes beyond the paper's.
    Zoo {
        #[command(flatten)]
        common: Common,
    },
    /// How often the diagnostics' verdict is right.
    Verdicts {
        #[command(flatten)]
        common: Common,
    },
    /// Figure 1 of the paper: an acquisition, Lipschitz cones, their hard and soft minimum.
    Penalisation {
        /// Where `penalisation.svg` is written.
        #[arg(long, default_value = "results/penalisation")]
        out: PathBuf,
    },
    /// Prints the data of the GP-evidence problem as they were made.
    BraninData,
}

#[derive(Args)]
struct Common {
    /// Runs of each kind.
    #[arg(long, default_value_t = 10)]
    runs: u64,
    /// The seed of the first run; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where results are kept; finished runs found there are not made again. By default `results/NAME`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Runs at a time; one a core by default.
    #[arg(long)]
    threads: Option<usize>,
    /// A setting of the library, as JSON: `--set initial_size=8`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Common {
    fn workshop(&self, name: &str) -> Workshop {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(name));
        Workshop { out, threads: self.threads.unwrap_or(cores) }
    }

    /// The default settings with what `--set` changes.
    fn settings(&self) -> Result<Settings> {
        let mut map = serde_json::to_value(Settings::default())?;
        for change in &self.set {
            let (key, value) = change.split_once('=').with_context(|| format!("{change:?}: expected KEY=VALUE"))?;
            // A bare word is a string.
            map[key] = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
        }
        let settings: Settings = serde_json::from_value(map)?;
        settings.validate()?;
        Ok(settings)
    }
}

fn main() -> Result<()> {
    match Cli::parse().experiment {
        Experiment::Efficiency { common, problems, rules, batches, budget } => {
            let named = |r: &String| -> Result<BatchRule> { Ok(serde_json::from_value(Value::String(r.clone()))?) };
            let rules = rules.iter().map(named).collect::<Result<_>>()?;
            let (runs, seed, settings) = (common.runs, common.seed, common.settings()?);
            let plan = efficiency::Plan { problems, rules, batches, runs, seed, settings, budget };
            print!("{}", efficiency::run(&plan, &common.workshop("efficiency"))?);
        }
        Experiment::Zoo { common } => {
            print!("{}", zoo::run(&common.settings()?, common.runs, common.seed, &common.workshop("zoo"))?);
        }
        Experiment::Verdicts { common } => {
            let workshop = common.workshop("verdicts");
            print!("{}", verdicts::run(&common.settings()?, common.runs, common.seed, &workshop)?);
        }
        Experiment::Penalisation { out } => {
            std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
            let path = out.join("penalisation.svg");
            std::fs::write(&path, penalisation::figure()?)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
        Experiment::BraninData => print!("{}", branin::to_csv(&branin::optimise(branin::branin, 20)?)),
    }
    Ok(())
}
