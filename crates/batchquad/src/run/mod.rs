//! A run: its choices, its state, its loop, where it is kept and whether to believe it.

pub(crate) mod ahead;
pub(crate) mod diagnostics;
pub(crate) mod drive;
pub(crate) mod engine;
pub(crate) mod integration;
pub(crate) mod outlook;
pub(crate) mod record;
pub mod report;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod stop;

pub use self::{
    ahead::{Ahead, Hands, Ready, on_this_thread},
    diagnostics::{Diagnosis, Finding, Forecast, Level, diagnose},
    drive::{Config, Integral, Losses, Progress, Run, Step, aborted, honest, next_step, no_evidence, standing},
    engine::{Agreement, Believed, Current, Engine, MOST_ASKED, MOST_NODES, Repairs, Round},
    integration::{Glance, Integration, integrate, integrate_noisy},
    outlook::Outlook,
    record::{Memory, Record, Transcript},
    report::Report,
    session::{Plan, Session, peek, peek_before_damage},
    settings::{
        BATCH_GROWTH, KernelChoice, KnownKernel, MOST_FOR_LOG, OnFailure, Reference, Schedule, Settings, Start,
        SurrogateChoice, initial_size, log_batch_growth, log_initial_size,
    },
    stop::{Status, Stop, target_met},
};
