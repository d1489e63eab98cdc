//! The next batch, whatever is believed.

use crate::{
    belief::any::Belief,
    choose::{
        log,
        select::{Rule, Search, Selection, select},
    },
    error::{Error, Result},
    points::Points,
};

/// Chooses `n` latent points to evaluate at once, while `pending` latent ones are still being evaluated.
///
/// For a belief about the likelihood or its square root this is [`select`], by `rule` and the acquisition of `search`.
/// A belief about the logarithm has a rule of its own ([`MATH.md` §15](crate::math)), which takes how points are
/// [kept apart](Rule::apart) from `rule`, and only the seed and the number of jobs from `search`.
///
/// # Errors
/// As [`select`].
pub fn batch(belief: &Belief, rule: &dyn Rule, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
    match belief {
        Belief::Warped(surrogate) => {
            let frame = surrogate.frame();
            let chosen = select(rule, surrogate, &frame.enter(pending)?, n, search)?;
            Ok(Selection { points: frame.leave(&chosen.points)?, ..chosen })
        }
        Belief::Log(belief) => {
            if n == 0 {
                return Err(Error::invalid("size of the batch", n, "at least 1"));
            }
            belief.nodes().require_dim("pending points", pending.dim())?;
            let points = log::select(belief, rule.apart(), pending, n, (search.seed, search.asked))?;
            Ok(Selection { points, fallbacks: 0, evaluations: 0 })
        }
    }
}
