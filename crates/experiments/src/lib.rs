//! The experiments behind batchquad's defaults and claims: problems with known answers, runs that can be repeated to the bit, and
//! tables and figures made of them.

#![forbid(unsafe_code)]

pub mod ablation;
pub mod arms;
pub mod branin;
pub mod calibration;
pub mod cluster;
pub mod comparators;
pub mod convergence;
pub mod coverage;
pub mod dense;
pub mod families;
pub mod figures;
pub mod grid;
pub mod in_model;
pub mod mcmc;
pub mod methods;
pub mod model_evidence;
pub mod output;
pub mod penalisation;
pub mod plan;
pub mod png;
pub mod problems;
pub mod progress;
pub mod publish;
pub mod readings;
pub mod runs;
pub mod stats;
pub mod stopping;
pub mod stopping_log;
pub mod synthetic;
pub mod table;
pub mod trace;
pub mod verdicts;
pub mod world;
pub mod zoo;
