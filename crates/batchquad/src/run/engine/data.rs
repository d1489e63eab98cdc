//! The values of a run as its beliefs see them.

use super::{
    Current, Engine,
    basis::Believed,
    believe::{self, Memories, Values, believe},
};
use crate::{
    belief::any,
    error::{Error, Result},
    infer::posterior::mass_nearest,
    journal::Told,
    points::Points,
    run::settings::OnFailure,
    types::{JobId, Outcome},
};

impl Engine {
    /// What is believed now if that is known without a search: worked out already, or remembered from earlier for the very same values.
    #[must_use]
    pub fn remembered(&self) -> Option<&Believed> {
        match self.known() {
            Some(current) => Some(&current.believed),
            None => {
                let values = self.data(None, &self.recalled.last()?.cuts).ok()?;
                believe::remembered(&self.settings, &values, &self.recalled)
            }
        }
    }

    /// The belief given all values, for which another one is where the search begins.
    pub(super) fn believed_from(&self, last: Option<&Believed>) -> Result<Current> {
        let cuts = self.cuts(last);
        let values = self.data(None, &cuts)?;
        // In other coordinates nothing of it holds.
        let earlier = Memories { last: last.filter(|b| b.cuts == cuts), recalled: &self.recalled };
        let mut current = believe(&self.settings, (self.prior.dim(), self.seed()), &values, earlier)?;
        current.believed.cuts = cuts;
        Ok(current)
    }

    /// The belief that the hyperparameters recorded with a batch give to all that was asked before job `first`.
    pub(crate) fn belief_before(&self, first: JobId, believed: &Believed) -> Result<any::Earlier> {
        believe::recall(&self.settings, self.prior.dim(), &self.data(Some(first), &believed.cuts)?, believed)
    }

    /// Latent coordinates with their log-likelihoods, under the prior with its circles cut at shares of them: imported rows first, then jobs by
    /// id, up to one if that is named.
    pub(super) fn data(&self, before: Option<JobId>, cuts: &[f64]) -> Result<Values> {
        let cut = self.cut(cuts)?;
        let mut data =
            Values { imported: self.ledger.imported().len(), scales: cut.prior.scales(), ..Values::default() };
        let mut add = |row: Vec<f64>, log: f64, sd: Option<f64>| {
            data.rows.push(row);
            data.logs.push(log);
            data.sds.push(sd);
        };
        for row in self.ledger.imported() {
            add(cut.prior.to_latent(&row.theta)?, row.log_likelihood.get(), row.sd);
        }
        for entry in self.ledger.entries().take_while(|entry| before.is_none_or(|id| entry.job.id < id)) {
            let failed = matches!(entry.answer, Some(Told { outcome: Outcome::Failed { .. }, .. }));
            if failed && self.settings.on_failure == OnFailure::AsZero {
                add(self.latent_in(&cut, entry.job.id)?, f64::NEG_INFINITY, None);
            }
            for (value, sd) in entry.values() {
                add(self.latent_in(&cut, entry.job.id)?, value, sd);
            }
        }
        if !data.logs.iter().any(|l| l.is_finite()) {
            return Err(Error::NoFiniteValue { count: data.logs.len() });
        }
        Ok(data)
    }

    pub(super) fn has_value(&self) -> bool {
        let finite = |v: f64| v.is_finite();
        self.ledger.values().any(|(_, v)| finite(v))
            || self.ledger.imported().iter().any(|r| finite(r.log_likelihood.get()))
    }

    /// Points that must not be asked again, with circles cut at shares of them: those being evaluated, and those that failed for good.
    pub(super) fn avoided(&self, cuts: &[f64]) -> Result<Points> {
        let cut = self.cut(cuts)?;
        let zero = self.settings.on_failure == OnFailure::AsZero;
        let mut flat = Vec::new();
        for entry in self.ledger.entries() {
            let failed = entry.answer.is_some() && entry.value().is_none();
            if entry.is_pending() || (failed && !zero) {
                flat.extend(self.latent_in(&cut, entry.job.id)?);
            }
        }
        Points::new(self.prior.dim(), flat)
    }

    /// The latent coordinates of a job, under the prior as the batch that it is of saw it.
    ///
    /// # Errors
    /// [`Error::UnknownJob`].
    pub fn latent_of(&self, id: JobId) -> Result<&[f64]> {
        self.latent.get(&id).map(Vec::as_slice).ok_or(Error::UnknownJob { id })
    }

    /// The share of the prior that is nearer to a point whose evaluation failed than to any value: what the
    /// belief can only guess. None when nothing failed, or when failures count as likelihood zero.
    ///
    /// # Errors
    /// When an imported point cannot be mapped to latent coordinates.
    pub fn excluded_mass(&self) -> Result<Option<f64>> {
        let cut = self.cut(&self.cuts(self.last.as_ref()))?;
        let (mut failed, mut known) = (Vec::new(), Vec::new());
        for entry in self.ledger.entries().filter(|entry| !entry.is_pending()) {
            let points = if entry.value().is_some() { &mut known } else { &mut failed };
            points.extend(self.latent_in(&cut, entry.job.id)?);
        }
        if failed.is_empty() || self.settings.on_failure == OnFailure::AsZero {
            return Ok(None);
        }
        for row in self.ledger.imported() {
            known.extend(cut.prior.to_latent(&row.theta)?);
        }
        let (failed, known) = (Points::new(self.prior.dim(), failed)?, Points::new(self.prior.dim(), known)?);
        mass_nearest(&failed, &known, 4096, self.seed()).map(Some)
    }
}
