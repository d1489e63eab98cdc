//! Several independent runs of the same problem: each sees its own values only, and all of them together are pooled.
//!
//! The run number `k` is the run that one would have with the seed [`repeat_seed`]`(seed, k)`: the first is the run without repeats.

use super::{Agreement, Current, Engine, agreement::has_arrived, basis::Believed};
use crate::{
    error::{Error, Result},
    journal::Event,
    numeric::rng::repeat_seed,
};

impl Engine {
    /// The independent runs, each as if it were alone; empty where there is only one.
    #[must_use]
    pub fn repeats(&self) -> &[Self] {
        &self.repeats
    }

    /// One of the independent runs, counted from zero; where there is one, that.
    #[must_use]
    pub fn repeat(&self, repeat: usize) -> &Self {
        self.repeats.get(repeat).unwrap_or(self)
    }

    /// The independent run that the last batch was asked for.
    #[must_use]
    pub fn newest_repeat(&self) -> usize {
        self.ledger.batches().last().map_or(self.number, |asked| asked.repeat)
    }

    pub(super) fn require_repeat(&self, repeat: usize) -> Result<()> {
        let there = if self.repeats.is_empty() { self.number..self.number + 1 } else { 0..self.repeats.len() };
        if there.contains(&repeat) {
            return Ok(());
        }
        Err(Error::invalid("number of a repeat", repeat, format!("from {} to {}", there.start, there.end - 1)))
    }

    /// The independent runs, made from the record of all.
    pub(super) fn split(&self) -> Result<Vec<Self>> {
        let n = self.settings.repeats();
        if let Some(asked) = self.ledger.batches().iter().find(|asked| asked.repeat >= n) {
            return Err(Error::invalid("number of a repeat", asked.repeat, format!("below {n}, which there are")));
        }
        if n == 1 {
            return Ok(Vec::new());
        }
        let run = |k: usize| {
            let ledger = self.ledger.of_repeat(k, repeat_seed(self.seed(), k));
            let run = Self::one_run(self.prior.clone(), ledger, k)?;
            Ok(Self { recalled: self.recalled.clone(), ..run })
        };
        (0..n).map(run).collect()
    }

    /// Lets an event, which counts, count in the independent runs that it is about.
    pub(super) fn hand_down(&mut self, event: &Event) -> Result<()> {
        if self.repeats.is_empty() {
            return Ok(());
        }
        let repeat = match event {
            Event::Asked(asked) => asked.repeat,
            Event::Told(told) | Event::Replaced(told) => self.ledger.entry(told.id)?.repeat,
            Event::Retried(retried) => self.ledger.entry(retried.id)?.repeat,
            Event::LeaseExpired { id } => self.ledger.entry(*id)?.repeat,
            Event::Imported { .. } | Event::Settings { .. } => {
                return self.repeats.iter_mut().try_for_each(|run| run.apply(event).map(drop));
            }
            Event::Note { .. } | Event::Remark { .. } => return Ok(()),
        };
        self.repeats.get_mut(repeat).map_or(Ok(()), |run| run.apply(event).map(drop))
    }

    /// What each run that has begun believes by itself; none where no belief can be formed.
    fn beliefs(&self) -> Result<Vec<Option<&Current>>> {
        let begun = self.repeats.iter().filter(|run| run.ledger.entries().len() > 0);
        begun
            .map(|run| match run.current() {
                Ok(current) => Ok(Some(current)),
                Err(Error::Interrupted) => Err(Error::Interrupted),
                Err(_) => Ok(None),
            })
            .collect()
    }

    /// The belief from the values of all runs. The search for it begins with the run that has the best value: one that is alone has no past by which
    /// it could tell whether the posterior still moves.
    pub(super) fn pooled(&self) -> Result<Current> {
        let beliefs = self.beliefs()?;
        let best = |current: &&&Current| {
            let recipe = current.believed.log.as_ref();
            recipe.map_or(current.estimate.scale, |recipe| recipe.main.best)
        };
        let found: Vec<&Current> = beliefs.iter().flatten().copied().collect();
        let last = found.iter().max_by(|a, b| best(a).total_cmp(&best(b))).map(|current| &current.believed);
        let mut current = self.believed_from(last)?;
        let recalled = self.recalled.iter().any(|known| known.fingerprint == current.believed.fingerprint);
        let several = found.iter().filter(|run| has_arrived(run)).count() > 1;
        if several && !recalled && !has_arrived(&current) {
            // One run may know a part of the posterior only, from which the whole is far. The checksum is another, lest this be taken for the answer.
            let near = Believed { fingerprint: !current.believed.fingerprint, ..current.believed };
            current = self.believed_from(Some(&near))?;
        }
        let stated = current.estimate;
        let agreement = Agreement::new(&beliefs, (stated.log_z, stated.log_z_sd));
        if agreement.disagrees() {
            let sd = agreement.widened(stated.log_z_sd);
            current.estimate = stated.raised(sd);
            current.believed.log_z_sd = Some(sd).filter(|sd| sd.is_finite());
        }
        current.agreement = Some(agreement);
        Ok(current)
    }
}
