//! A run's state for another thread, and what that thread brings back.

use std::{cell::OnceCell, collections::BTreeSet, sync::Arc};

use super::{
    Believed, Current, Engine,
    believe::{MOST_CLIMBED, Rough, Values, hold},
};
use crate::{
    belief::any::Belief,
    error::{Error, Result},
    points::Points,
};

impl Engine {
    /// The same state, for another thread to work with. What is believed comes along.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self {
            prior: self.prior.clone(),
            settings: self.settings.clone(),
            starts: self.starts.clone(),
            ledger: self.ledger.clone(),
            latent: self.latent.clone(),
            last: self.last.clone(),
            recalled: self.recalled.clone(),
            history: self.history.clone(),
            fallbacks: self.fallbacks,
            number: self.number,
            repeats: self.repeats.iter().map(Self::snapshot).collect(),
            current: self.current.clone(),
            posterior: OnceCell::new(),
            revision: self.revision,
        }
    }

    /// Takes over the beliefs that a snapshot has come to, where no value has arrived since it was taken.
    pub fn adopt(&mut self, snapshot: Self) {
        let Self { repeats, current, revision, .. } = snapshot;
        for (own, other) in self.repeats.iter_mut().zip(repeats) {
            own.adopt(other);
        }
        // A belief with somebody else's hyperparameters is for choosing only.
        if let Some(current) = current.into_inner().filter(|current| revision == self.revision && !current.is_held()) {
            let _ = self.current.set(current);
        }
    }

    /// Lets this snapshot believe with the hyperparameters of an earlier belief instead of searching for its own: a tenth of the time, for
    /// choosing points while the search goes on elsewhere. Its checksum says that they were not searched for these values. Says whether it does:
    /// nothing changes where the posterior was not found then or no belief can be formed so.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn hold(&mut self, repeat: usize, earlier: &Believed) -> Result<bool> {
        let run = match self.repeats.get_mut(repeat) {
            Some(run) => run,
            None => self,
        };
        if run.current.get().is_some() || earlier.log.as_ref().is_some_and(|recipe| !recipe.main.found) {
            return Ok(false);
        }
        // In other coordinates nothing of it holds.
        if run.cuts(Some(earlier)) != earlier.cuts {
            return Ok(false);
        }
        let values = match run.data(None, &earlier.cuts) {
            Ok(values) => Values { rough: Some(Rough::Held), ..values },
            Err(Error::NoFiniteValue { .. }) => return Ok(false),
            Err(e) => return Err(e),
        };
        match hold(&run.settings, (run.prior.dim(), run.ledger.header().seed()), &values, earlier) {
            Ok(Some(mut current)) => {
                current.believed.cuts.clone_from(&earlier.cuts);
                Ok(run.current.set(current).is_ok())
            }
            Ok(None) => Ok(false),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(_) => Ok(false),
        }
    }

    /// What to choose points from: the belief itself, or one with the same hyperparameters and fewer nodes where an acquisition is climbed, which
    /// is looked at thousands of times.
    pub(super) fn sketch(&self, current: &Current) -> Result<Arc<Belief>> {
        let whole = Arc::clone(&current.surrogate);
        if whole.warped().is_none() || whole.nodes().len() <= MOST_CLIMBED || self.settings.known_kernel.is_some() {
            return Ok(whole);
        }
        let values = Values { rough: Some(Rough::Climbed), ..self.data(None, &current.believed.cuts)? };
        match hold(&self.settings, (self.prior.dim(), self.ledger.header().seed()), &values, &current.believed) {
            Ok(found) => Ok(found.map_or(whole, |current| current.surrogate)),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(_) => Ok(whole),
        }
    }

    /// Points without those that were asked before, which a belief that leaves values out may propose again; all where none would be left.
    pub(super) fn new_among(&self, points: Points) -> Result<Points> {
        let asked: BTreeSet<Vec<u64>> = self.latent.values().map(|u| bits(u)).collect();
        let new: Vec<&[f64]> = points.rows().filter(|u| !asked.contains(&bits(u))).collect();
        if new.is_empty() || new.len() == points.len() {
            return Ok(points);
        }
        Points::from_rows(&new)
    }

    /// Whether the next points are those of the beginning, which need no belief.
    pub(crate) fn is_beginning(&self, repeat: usize) -> bool {
        let run = self.repeat(repeat);
        run.ledger.entries().len() < run.initial_size() || !run.has_value()
    }

    /// Whether points were chosen from a belief before.
    pub(crate) fn has_believed(&self) -> bool {
        !self.history.is_empty()
    }

    /// How many values the belief of one of the independent runs would rest on now.
    pub(crate) fn values_of(&self, repeat: usize) -> usize {
        let run = self.repeat(repeat);
        run.ledger.values().count() + run.ledger.imported().len()
    }
}

fn bits(point: &[f64]) -> Vec<u64> {
    point.iter().map(|v| v.to_bits()).collect()
}

impl Current {
    /// Whether its hyperparameters are those of an earlier belief.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::{Event, Told},
        prior::{Distribution, Prior},
        run::settings::Settings,
        types::Outcome,
    };

    /// A bump of sd ½, known at so many points.
    fn engine(values: usize) -> Engine {
        let normal = || Distribution::normal(0.0, 1.0).unwrap();
        let prior = Prior::independent([("x", normal()), ("y", normal())]).unwrap();
        let mut engine = Engine::new(prior, Settings::default(), 3).unwrap();
        while engine.values_of(0) < values {
            more(&mut engine, 8);
        }
        engine
    }

    fn more(engine: &mut Engine, n: usize) {
        let asked = engine.ask(n).unwrap();
        engine.apply(&Event::Asked(asked.clone())).unwrap();
        for job in asked.jobs {
            let value = -2.0 * job.theta.iter().map(|t| (t - 0.5).powi(2)).sum::<f64>();
            engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(value)))).unwrap();
        }
    }

    #[test]
    fn earlier_hyperparameters_serve_for_choosing_and_for_nothing_else() {
        let mut engine = engine(32);
        let earlier = engine.current().unwrap().believed.clone();
        more(&mut engine, 8);
        let mut snapshot = engine.snapshot();
        assert!(snapshot.hold(0, &earlier).unwrap());
        let held = snapshot.current().unwrap().clone();
        assert!(held.is_held() && held.believed.values == 40);
        // The logarithm of this posterior is a quadratic, which both beliefs find.
        let searched = engine.snapshot();
        let found = searched.current().unwrap();
        assert!((held.estimate.log_z - found.estimate.log_z).abs() < 0.01);
        assert_ne!(held.believed.fingerprint, found.believed.fingerprint);

        let asked = snapshot.ask(4).unwrap();
        engine.adopt(snapshot);
        assert!(engine.known().is_none(), "what was held is not taken over");
        let bits = found.estimate.log_z.to_bits();
        engine.adopt(searched);
        assert_eq!(engine.known().unwrap().estimate.log_z.to_bits(), bits);

        // Points chosen so count, and what follows is searched for as ever.
        engine.apply(&Event::Asked(asked)).unwrap();
        assert!(!engine.snapshot().hold(0, &earlier).unwrap(), "what is known is not believed anew");
        more(&mut engine, 1);
        assert!(!engine.current().unwrap().is_held());
    }

    #[test]
    fn a_belief_is_not_taken_over_when_values_have_arrived_since() {
        let mut engine = engine(16);
        let snapshot = engine.snapshot();
        snapshot.current().unwrap();
        more(&mut engine, 2);
        engine.adopt(snapshot);
        assert!(engine.known().is_none());
    }
}
