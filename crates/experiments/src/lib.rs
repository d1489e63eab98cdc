//! The experiments behind batchquad's defaults and claims: problems with known answers, runs that can be repeated to the bit, and
//! tables made of them.

pub mod branin;
pub mod dense;
pub mod efficiency;
pub mod figure;
pub mod grid;
pub mod penalisation;
pub mod problems;
pub mod runs;
pub mod stats;
pub mod table;
pub mod trace;
pub mod verdicts;
pub mod zoo;
