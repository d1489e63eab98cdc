//! Where to evaluate next: acquisitions, batch rules, and designs for when nothing is known.

pub(crate) mod acquire;
pub(crate) mod batch;
pub(crate) mod design;
pub(crate) mod log;
pub(crate) mod select;

pub use self::{
    acquire::{Acquisition, AcquisitionKind, Criterion, MeanIntegrand, Uncertainty, VarianceReduction},
    batch::batch,
    design::{InitialDesign, space_filling},
    select::{
        BatchRule, Cone, Constants, Fantasy, GonzalezPenalised, GonzalezPenalty, Lie, MIN_SEPARATION, Penalisation,
        Rule, Search, Selection, SoftMinimum, log_lipschitz, select,
    },
};
