//! What can be typed: commands, arguments and their help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed: there is no log Z to report, or an evaluation failed and on_failure = \"abort\"
  2    bad configuration or input
  3    stopped before its target: the budget was used up, or log Z no longer moves
  4    the store is in use by another process
  5    the store is damaged
  6    with --strict: log Z is not to be trusted
  130  interrupted; run the same command again to resume";

/// Model evidences from expensive likelihoods, a batch of parallel evaluations at a time.
///
/// A problem file names the parameters, their priors and the command that computes the log-likelihood. Every evaluation is
/// kept in a store, on the disk before it counts; a run that was stopped goes on where it was.
#[derive(Debug, Parser)]
#[command(name = "batchquad", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what it does: a built-in problem, its progress, its result and its report
    Demo(DemoArgs),
    /// Begin a problem: write a commented problem file and a likelihood that works, in Python, C, R or Julia
    Init(InitArgs),
    /// Run a problem, or resume it: choose points, evaluate them, estimate log Z
    #[command(after_long_help = EXIT_CODES)]
    Run(RunArgs),
    /// Validate a problem file, run one evaluation at the prior median and say what a run would do
    Check {
        /// The problem file
        #[arg(value_hint = ValueHint::FilePath)]
        problem: PathBuf,
    },
    /// Make an empty store for a problem, to be filled by `ask` and `tell` or by `run`
    New(NewArgs),
    /// Choose points to evaluate and print them, one JSON object per line
    Ask(AskArgs),
    /// Take in answers, one JSON object per line: {"id": 3, "log_likelihood": -1.5} or {"id": 3, "failed": "why"}
    ///
    /// A noisy value comes with its standard deviation: {"id": 3, "log_likelihood": -1.5, "sd": 0.2}. Several such values for the same
    /// evaluation all count, by their precision.
    Tell {
        /// The store
        #[arg(value_hint = ValueHint::DirPath)]
        store: PathBuf,
        /// A file with the answers; standard input by default
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Let the answers count in place of those told by mistake, which are kept in the store
        #[arg(long)]
        replace: bool,
    },
    /// Take in a table of evaluations made elsewhere (CSV: one column per parameter, and log_likelihood)
    ///
    /// A column named sd holds the standard deviations of noisy values; it may be empty where there is none.
    Import {
        /// The store
        #[arg(value_hint = ValueHint::DirPath)]
        store: PathBuf,
        /// The table
        #[arg(value_hint = ValueHint::FilePath)]
        table: PathBuf,
    },
    /// Say how far a run is, also while it is running
    Status(StoreArgs),
    /// Watch a run while it is running: log Z, workers, failures (read-only; ends with q or with the run)
    Watch {
        /// The store
        #[arg(value_hint = ValueHint::DirPath)]
        store: PathBuf,
        /// Print one frame and end; also what happens where there is no terminal
        #[arg(long, conflicts_with = "html")]
        once: bool,
        /// Serve a page that follows the run, to this machine alone, and print its address
        #[arg(long)]
        html: bool,
        /// Show that page in the browser
        #[arg(long, requires = "html")]
        open: bool,
    },
    /// Work out log Z and the posterior from the evaluations in a store
    Result(ResultArgs),
    /// Print draws from the posterior, in the parameters' own units
    Draws(DrawsArgs),
    /// Print all evaluations as CSV
    Export {
        /// The store
        #[arg(value_hint = ValueHint::DirPath)]
        store: PathBuf,
    },
    /// Compare models: log Z side by side, Bayes factors, posterior model probabilities under equal prior odds
    Compare {
        /// The stores, one per model; `name=store` gives the model a name of your own
        #[arg(required = true, num_args = 2.., value_hint = ValueHint::DirPath, value_name = "[NAME=]STORE")]
        stores: Vec<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Write a page with figures to this file instead, or to standard output with `-`
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
        html: Option<PathBuf>,
        /// End with exit code 6 when any log Z is not to be trusted
        #[arg(long)]
        strict: bool,
    },
    /// Write a report: one HTML file with the result, figures, diagnostics and all evaluations
    Report(ReportArgs),
    /// Look for damage in a store, and save what can be saved
    Doctor {
        /// The store
        #[arg(value_hint = ValueHint::DirPath)]
        store: PathBuf,
        /// Write all records that prove themselves to a new store here; the old one is left as it is
        #[arg(long, value_name = "NEW", value_hint = ValueHint::DirPath)]
        repair: Option<PathBuf>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all commands to a directory
    #[command(hide = true)]
    Man {
        /// The directory
        #[arg(long, value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
}

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The file of the report, or `-` for standard output; batchquad-demo.html by default
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Show the report in the browser; by default on a terminal
    #[arg(long, value_name = "WHEN", default_missing_value = "yes", num_args = 0..=1)]
    pub open: Option<YesNo>,
}

/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The directory to write to
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// A parameter and its prior, for instance `k=uniform(0, 10)`; once for each. On a terminal they are asked for
    #[arg(short, long, value_name = "NAME=PRIOR")]
    pub parameter: Vec<String>,
    /// The language of the likelihood that is written
    #[arg(short, long, conflicts_with = "command")]
    pub language: Option<Language>,
    /// The command that computes the log-likelihood, with `{name}` for parameters; nothing is written in its place
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `--language`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Python
    Python,
    /// C
    C,
    /// R
    R,
    /// Julia
    Julia,
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The problem file
    #[arg(value_hint = ValueHint::FilePath)]
    pub problem: PathBuf,
    /// The store; beside the problem file by default, with the extension .batchquad
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Evaluations at the same time; by default one per core
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// What replaces the problem file's settings.
    #[command(flatten)]
    pub changes: Changes,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Refuse to start anew: the store must exist
    #[arg(long)]
    pub resume: bool,
    /// End with exit code 6 when log Z is not to be trusted, whatever else would have been said
    #[arg(long)]
    pub strict: bool,
}

/// `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The problem file
    #[arg(value_hint = ValueHint::FilePath)]
    pub problem: PathBuf,
    /// The store; beside the problem file by default, with the extension .batchquad
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// What replaces the problem file's settings.
    #[command(flatten)]
    pub changes: Changes,
    /// Start with a table of evaluations made elsewhere (CSV: one column per parameter, and log_likelihood)
    #[arg(long, value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub import: Option<PathBuf>,
}

/// Settings that can be given on the command line; they win over the problem file.
#[derive(Debug, Args)]
pub struct Changes {
    /// Points chosen together
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Evaluations after which to stop
    #[arg(long, value_name = "N")]
    pub max_evaluations: Option<usize>,
    /// Stop when the standard deviation of log Z is at most this
    #[arg(long, value_name = "SD")]
    pub target_sd: Option<f64>,
    /// Stop when one more batch would reduce the standard deviation of log Z by less than this share of it
    #[arg(long, value_name = "SHARE")]
    pub stop_gain: Option<f64>,
    /// Independent runs, each with the limits above and a seed of its own; their values are pooled at the end, and whether they agree is said
    ///
    /// A store may get more of them later, but not fewer.
    #[arg(long, value_name = "N")]
    pub repeats: Option<usize>,
    /// The seed; a store keeps the one it was made with
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// When workers get new points
    #[arg(long)]
    pub schedule: Option<ScheduleArg>,
}

/// `--schedule`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScheduleArg {
    /// When the whole batch is back
    Batch,
    /// As soon as one is free
    Async,
}

/// `ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The store
    #[arg(value_hint = ValueHint::DirPath)]
    pub store: PathBuf,
    /// How many points; the batch of the problem by default
    #[arg(short, value_name = "N")]
    pub n: Option<usize>,
    /// Choose nothing: print again what was asked and not answered
    #[arg(long, conflicts_with_all = ["n", "max_evaluations"])]
    pub pending: bool,
    /// Change the number of evaluations after which nothing more is asked
    #[arg(long, value_name = "N")]
    pub max_evaluations: Option<usize>,
}

/// `draws`.
#[derive(Debug, Args)]
pub struct DrawsArgs {
    /// The store
    #[arg(value_hint = ValueHint::DirPath)]
    pub store: PathBuf,
    /// How many
    #[arg(short, value_name = "N", default_value_t = 1000)]
    pub n: usize,
    /// The seed: the same one gives the same draws; by default that of the run
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// How they are written
    #[arg(long, value_enum, default_value_t = DrawsFormat::Csv)]
    pub format: DrawsFormat,
    /// Importance draws with the logarithms of their weights, which sum to one, instead of equally weighted ones; at least 64, because fewer
    /// cannot be fitted to the posterior
    #[arg(long)]
    pub weighted: bool,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrawsFormat {
    /// A table with a header
    Csv,
    /// One JSON object per line
    Jsonl,
}

/// `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The store
    #[arg(value_hint = ValueHint::DirPath)]
    pub store: PathBuf,
    /// The file to write, or `-` for standard output; beside the store by default, with the extension .html
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// The answer, where it is known: drawn beside the estimate; by default the one that the problem file had
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub known_log_z: Option<f64>,
    /// Show it in the browser
    #[arg(long, value_name = "WHEN", default_value = "no", default_missing_value = "yes", num_args = 0..=1)]
    pub open: YesNo,
}

/// `yes` or `no`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    /// Do it
    Yes,
    /// Leave it
    No,
}

/// `result`.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// The store, and how to print.
    #[command(flatten)]
    pub of: StoreArgs,
    /// End with exit code 6 when log Z is not to be trusted
    #[arg(long)]
    pub strict: bool,
}

/// A command that reads a store.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The store
    #[arg(value_hint = ValueHint::DirPath)]
    pub store: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
