//! Batches for a belief about the logarithm: `MATH.md` §15.
//!
//! The covariance of the process does not depend on the values, so a batch is chosen greedily, conditioning on each point as it is chosen:
//! Kriging Believer with nothing to believe.

mod climb;
mod elsewhere;
mod field;
mod pool;

use self::{
    climb::Climb,
    elsewhere::{Elsewhere, SCOUTED},
    field::Field,
};
use crate::{
    belief::log::LogBelief,
    choose::select::Apart,
    error::Result,
    interrupt::check,
    numeric::rng::{Purpose, Stream},
    points::{Points, square_distance},
};

/// Points closer than this, in latent coordinates, are the same.
const SAME: f64 = 2e-5;

/// While nothing is found, so many of so many points are maxima of the surrogates, and the last looks elsewhere.
const TOPS: u64 = 6;
const SEARCHING: u64 = 8;

/// Afterwards one in so many, and more where the scout still expects something.
const FOUND: u64 = 8;
const EXPECTING: u64 = 4;

/// In up to so many dimensions a few points can cover the prior: among so many first points, more of them do.
const LOW: usize = 3;
const EARLY: u64 = 64;

/// The share of `Z` from which on a suspected peak is worth a look.
const SUSPICIOUS: f64 = 0.003;

/// A point whose number modulo eight is `i` goes up to a further peak if more than `CLIMBS[i]` of eight do. The fourth and the eighth never do.
const CLIMBS: [u64; 8] = [3, 4, 0, u64::MAX, 2, 5, 1, u64::MAX];

/// The numbers of those of eight points that ask whether there is another peak while that keeps a run from arriving, as many as there are questions:
/// those that would climb first. Later, points that would climb ask first.
const ASKS: [u64; 4] = [2, 6, 0, 4];

/// How many of eight points at least go up to a peak that matters and is not found.
const LOST: u64 = 2;

/// A peak with a smaller share of `Z` than this needs no more values.
const NEGLIGIBLE: f64 = 1e-4;

/// The share of `Z` from which on the scout expects something.
const EXPECTED: f64 = 0.03;

/// `n` further latent points that are kept `apart`, while `pending` ones are under way and `asked` were asked before.
///
/// # Errors
/// Numerical errors when covariances cannot be factorised.
pub(crate) fn select(
    belief: &LogBelief,
    apart: Apart,
    pending: &Points,
    n: usize,
    (seed, asked): (u64, u64),
) -> Result<Points> {
    let mut elsewhere = Elsewhere::new(belief, pending, seed, asked);
    let chosen = match Climb::new(belief.main(), pending, seed, asked)? {
        Some(climb) if !belief.main().recipe.blurred => find(climb, n, asked, &mut elsewhere)?,
        _ => refine(belief, apart, pending, n, (seed, asked), &mut elsewhere)?,
    };
    // A point that is known or under way is not asked again; one that a twin asks for is beside it.
    let mut free: Vec<Vec<f64>> = Vec::new();
    for point in chosen {
        let mut point = point;
        for _ in 0..SCOUTED {
            let same = |t: &[f64]| square_distance(t, &point) < SAME * SAME;
            let taken = belief.known.nodes.rows().chain(pending.rows()).chain(free.iter().map(Vec::as_slice)).any(same);
            if !taken {
                break;
            }
            point = elsewhere.next()?;
        }
        free.push(point);
    }
    Points::from_rows(&free)
}

/// The posterior is found, or its top is and what surrounds it is not known: alternately the point that lowers the variance of `Z` most, `(Σ wⱼ c(x, uⱼ))²/(v + η²)`, and the one at which the integrand
/// varies most, `2m + v + log(eᵛ − 1)`, of all peaks; with cones, the latter alone.
fn refine(
    belief: &LogBelief,
    apart: Apart,
    pending: &Points,
    n: usize,
    (seed, asked): (u64, u64),
    elsewhere: &mut Elsewhere<'_>,
) -> Result<Vec<Vec<f64>>> {
    let offset = Stream::new(seed, Purpose::Select, asked << 8).uniform();
    let mut fields = Vec::new();
    for (share, peak) in belief.shares().zip(&belief.peaks) {
        if share > NEGLIGIBLE {
            fields.push(Field::new(belief, (peak, share), apart, pending, (n, offset))?);
        }
    }
    // A peak that matters and is not found any more comes before further ones.
    let lost = belief.shares().zip(&belief.peaks).find(|(share, peak)| *share > NEGLIGIBLE && peak.search.is_some());
    let mut climb = match (lost, &belief.climb) {
        (Some((_, peak)), _) => Climb::new(peak, pending, seed, asked)?,
        (None, Some(peak)) => Climb::further(peak, &belief.known.nodes, pending, seed, asked)?,
        (None, None) => None,
    };
    // At a top whose surroundings are not known, the way up is no further news.
    let mut blurred = match (&lost, &belief.climb) {
        (None, Some(peak)) if peak.recipe.blurred => {
            Some(Field::new(belief, (peak, 1.0), apart, pending, (n, offset))?)
        }
        _ => None,
    };
    let eighths = belief.recipe.eighths().max(if lost.is_some() { LOST } else { 0 });
    let early = asked < EARLY && belief.known.dim() <= LOW;
    let period = if early || belief.unseen() > EXPECTED { EXPECTING } else { FOUND };
    let suspicious = belief.scout.suspects.first().is_some_and(|s| s.0 > SUSPICIOUS);
    let suspected = if suspicious { EXPECTING } else { FOUND };
    let under_way = |u: &[f64]| pending.rows().any(|p| square_distance(p, u) < SAME * SAME);
    let questions: Vec<Vec<f64>> = belief.recipe.questions().filter(|u| !under_way(u)).map(<[f64]>::to_vec).collect();
    let asks = if belief.asks() { questions.len().min(ASKS.len()) } else { 0 };
    let mut questions = questions.into_iter();
    let mut chosen = Vec::new();
    for k in 0..n {
        check()?;
        let number = asked + k as u64;
        let climbs = CLIMBS[(number % 8) as usize] < eighths;
        if (climbs || ASKS[..asks].contains(&(number % 8)))
            && let Some(between) = questions.next()
        {
            chosen.push(between);
            continue;
        }
        if climbs {
            let around = blurred.as_ref().and_then(|field| field.best(number.is_multiple_of(2)));
            chosen.push(match (&mut blurred, around, &mut climb) {
                (Some(field), Some((_, i)), _) => field.take(i)?,
                (_, _, Some(climb)) => climb.next(),
                _ => elsewhere.next()?,
            });
            continue;
        }
        if number % suspected == 1
            && let Some(u) = elsewhere.suspect()
        {
            chosen.push(u);
            continue;
        }
        let all =
            fields.iter().enumerate().filter_map(|(f, field)| field.best(number.is_multiple_of(2)).map(|b| (b, f)));
        let best = all.max_by(|a, b| a.0.0.total_cmp(&b.0.0));
        chosen.push(match best {
            Some(((_, i), f)) if number % period != period - 1 => fields[f].take(i)?,
            _ => elsewhere.next()?,
        });
    }
    Ok(chosen)
}

/// The posterior is not found: the way up, and every eighth point elsewhere. Which is whose turn depends on the number of the point, so single points
/// take the same turns as batches.
fn find(mut climb: Climb<'_>, n: usize, asked: u64, elsewhere: &mut Elsewhere<'_>) -> Result<Vec<Vec<f64>>> {
    let numbers = asked..asked + n as u64;
    let turn = |number: u64| number % SEARCHING;
    numbers
        .map(|number| match turn(number) {
            t if t < TOPS => Ok(climb.next()),
            t if t == SEARCHING - 1 => elsewhere.next(),
            _ => Ok(climb.draw()),
        })
        .collect()
}
