//! From values to a belief: which coordinates, which hyperparameters, whether the posterior is found. `MATH.md` §15.
//!
//! Everything that is searched for is written down in a [`Recipe`]. A belief is made from the values and the recipe alone, by the same
//! function in a live run and in a resumed one.

use serde::{Deserialize, Serialize};

use super::{
    LogBelief, Search,
    fit::fit,
    integral::{Integral, Target, integrate, resample, uncertainty},
    known::{Known, log_prior, typical_depth},
    process::{Hyper, Process},
    support::Support,
    view::{Region, View, divergence},
};
use crate::{
    error::{Error, Result},
    numeric::{log_sum::log_sum_exp, normal::log_cdf, quantile::normal_quantile, sobol::SobolSequence},
    points::Points,
};

/// Draws that integrate the surrogate.
const DRAWS: usize = 16_384;

/// Draws that show where to search.
const FEW_DRAWS: usize = 2_048;

/// While there are at most this many values, every fit has several starts; later only when they have grown by half.
const CHEAP: usize = 40;

/// The coordinates follow the posterior until it is this many nats from where they expect it, so often at the most.
const SETTLED: f64 = 0.1;
const MOVES: usize = 3;

/// A run has arrived when a batch moves the posterior by less than this many nats.
const STEADY: f64 = 0.5;

/// The smallest share of the prior that the scout can resolve.
const LEAST_SHARE: f64 = 1e-3;

/// Draws from the prior at which the scout is asked what may be there.
const SCOUTED: usize = 512;

/// Points of the sample behind the covariances of the process.
const COVARIANCES: usize = 384;

/// All that was searched for: with the values it makes the belief.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Whether the posterior of the surrogate is where the values are.
    pub(crate) found: bool,
    /// Whether it has also stopped moving.
    pub(crate) arrived: bool,
    /// The radius of the search, in prior standard deviations.
    pub(crate) radius: f64,
    /// The largest logarithm of likelihood times prior density.
    pub(crate) best: f64,
    /// How many nodes there were.
    pub(crate) nodes: usize,
    /// How many nodes the last fit with several starts had.
    searched: usize,
    /// The coordinates of the process.
    view: Region,
    /// Where the posterior is: the coordinates to begin with when there are more values.
    pub(crate) posterior: Region,
    hyper: Hyper,
    /// Nodes far below that the process has to be told of.
    active: Vec<usize>,
    /// Of the process on labels, where likelihoods of zero cut through the posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    support: Option<Hyper>,
    scout: Hyper,
    search: Option<SearchRecipe>,
}

/// What is searched with while nothing is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SearchRecipe {
    region: Region,
    /// The depth beyond which values are compressed; none are where there is none.
    limit: Option<f64>,
    hyper: Hyper,
}

fn no_view() -> Error {
    Error::Numerical { what: "coordinates of the posterior".into(), reason: "they are not positive definite".into() }
}

/// The process on the values that matter, with `active` ones of the others.
fn near_process(known: &Known, view: &View, hyper: Hyper, active: &[usize]) -> Result<Process> {
    Process::new(hyper, known.near_data(view, &known.near(), active)?)
}

/// A process with what it was told, and where the likelihood is not zero.
struct Settled {
    process: Process,
    active: Vec<usize>,
    support: Option<Support>,
}

/// A fit on the values that matter; others join where the fit contradicts them. Likelihoods of zero where the fit expects much are the business of a
/// [`Support`]: a smooth process cannot fall off a cliff.
fn settle(known: &Known, view: &View, warm: (Option<&Hyper>, Option<&Hyper>), thorough: bool) -> Result<Settled> {
    let (warm, warm_support) = warm;
    let near = known.near();
    let mut support = None;
    let cap = known.noise_cap();
    let mut active: Vec<usize> = Vec::new();
    let mut process = fit(&known.near_data(view, &near, &active)?, warm, thorough, cap)?.process;
    for round in 0..3 {
        let mut more = known.contradicted(view, &process, &near, &active)?;
        if support.is_none() && more.iter().any(|&i| known.depth[i].is_infinite()) {
            support = Some(Support::fit(&known.labels(view, &near)?, warm_support)?);
        }
        more.retain(|&i| known.depth[i].is_finite());
        if more.is_empty() {
            break;
        }
        active.extend(more);
        let data = known.near_data(view, &near, &active)?;
        process = if round == 0 {
            fit(&data, Some(&process.hyper.clone()), false, cap)?.process
        } else {
            Process::new(process.hyper, data)?
        };
    }
    Ok(Settled { process, active, support })
}

fn target<'a>(known: &Known, view: &'a View, process: &'a Process, support: Option<&'a Support>) -> Target<'a> {
    Target { process, prior: &view.prior, ceiling: known.ceiling(view), support }
}

/// A fit of all values around the best nodes, compressed as much as the marginal likelihood asks for.
fn search_recipe(known: &Known, warm: Option<&Hyper>, thorough: bool) -> Result<SearchRecipe> {
    let region = known.elite();
    let view = View::new(region.clone()).ok_or_else(no_view)?;
    let sorted = known.sorted_depths();
    let deepest = sorted[sorted.len() - 1];
    let mut limits = vec![f64::INFINITY];
    for share in [2, 4, 8] {
        let at = sorted[sorted.len() / share].max(typical_depth(known.dim()));
        if deepest > 1.5 * at && limits.iter().all(|l| (l / at - 1.0).abs() > 0.1) {
            limits.push(at);
        }
    }
    let mut best: Option<(f64, SearchRecipe)> = None;
    for limit in limits {
        let (data, jacobian) = known.compressed(&view, limit)?;
        let fitted = match fit(&data, warm, thorough, known.noise_cap()) {
            Err(Error::Numerical { .. } | Error::NotPositiveDefinite { .. }) => continue,
            fitted => fitted?,
        };
        let objective = fitted.objective + jacobian;
        if best.as_ref().is_none_or(|b| objective > b.0) {
            let limit = Some(limit).filter(|l| l.is_finite());
            best = Some((objective, SearchRecipe { region: region.clone(), limit, hyper: fitted.process.hyper }));
        }
    }
    best.map(|b| b.1).ok_or_else(|| Error::Numerical {
        what: "search for hyperparameters".into(),
        reason: "the values could not be fitted under any compression".into(),
    })
}

fn make_search(known: &Known, recipe: &SearchRecipe, seed: u64) -> Result<Search> {
    let view = View::new(recipe.region.clone()).ok_or_else(no_view)?;
    let limit = recipe.limit.unwrap_or(f64::INFINITY);
    let process = Process::new(recipe.hyper.clone(), known.compressed(&view, limit)?.0)?;
    let integral = integrate(&target(known, &view, &process, None), &known.starts(&view), FEW_DRAWS, seed)?;
    Ok(Search { view, process, integral })
}

/// Looks for the coordinates, the hyperparameters and the state of the search, beginning with those of `last`.
pub(crate) fn search(known: &Known, last: Option<&Recipe>, seed: u64) -> Result<LogBelief> {
    let (d, n) = (known.dim(), known.len());
    let searched = last.map_or(0, |r| r.searched);
    let thorough = n <= CHEAP || n as f64 >= 1.5 * searched as f64;
    let rise = last.map_or(f64::INFINITY, |r| known.best - r.best);
    let was_found = last.is_some_and(|r| r.found);
    let mut looking = None;
    let mut posterior = match last {
        Some(r) if r.found => r.posterior.clone(),
        _ => {
            let warm = last.and_then(|r| r.search.as_ref()).map(|s| &s.hyper);
            let recipe = search_recipe(known, warm, thorough)?;
            let search = make_search(known, &recipe, seed)?;
            let region = search.view.leave_moments(&search.integral.mean, &search.integral.covariance);
            looking = Some((recipe, search));
            region
        }
    };
    // The coordinates follow the posterior until it has settled.
    let mut hyper = last.map(|r| r.hyper.clone());
    let mut made: Option<(View, Settled, Integral)> = None;
    let warm_support = last.and_then(|r| r.support.as_ref());
    let mut moved = f64::INFINITY;
    let mut again = false;
    let mut round = 0;
    while round < MOVES {
        let Some(view) = View::new(posterior.clone()) else { break };
        let settled = settle(known, &view, (hyper.as_ref(), warm_support), thorough || again || hyper.is_none())?;
        let aim = target(known, &view, &settled.process, settled.support.as_ref());
        let integral = integrate(&aim, &known.starts(&view), DRAWS, seed)?;
        // Hyperparameters that had served and no longer do are searched for once more from the beginning.
        if was_found && !again && !thorough && integral.top > credible_top(d) {
            again = true;
            continue;
        }
        let far = divergence(&integral.mean, &integral.covariance);
        if round == 0 && was_found {
            moved = far;
        }
        let good = integral.effective > 0.02;
        if good {
            posterior = view.leave_moments(&integral.mean, &integral.covariance);
        }
        hyper = Some(settled.process.hyper.clone());
        made = Some((view, settled, integral));
        if !good || far < SETTLED {
            break;
        }
        round += 1;
    }
    let Some((view, Settled { process, active, support }, integral)) = made else { return Err(no_view()) };
    let home = View::new(Region::round(&vec![0.0; d], 1.0)).ok_or_else(no_view)?;
    let everything = known.compressed(&home, typical_depth(d))?.0;
    let scout = fit(&everything, last.map(|r| &r.scout), thorough, known.noise_cap())?.process;
    let mut recipe = Recipe {
        found: false,
        arrived: false,
        radius: match last {
            None => 1.5,
            Some(r) if r.nodes == n => r.radius,
            Some(r) if rise > 1.0 => (1.6 * r.radius).min(2.0),
            Some(r) => (0.5 * r.radius).max(1e-4),
        },
        best: known.best,
        nodes: n,
        searched: if thorough { n } else { searched },
        view: view.region.clone(),
        posterior,
        hyper: process.hyper.clone(),
        active,
        support: support.as_ref().map(|s| s.hyper().clone()),
        scout: scout.hyper.clone(),
        search: looking.as_ref().map(|l| l.0.clone()),
    };
    let mut belief =
        finish(known, recipe.clone(), (view, process, support, integral), (home, scout), looking.map(|l| l.1), seed)?;
    let found = belief.model_sd < 1.0
        && belief.integral.effective > 0.05
        && known.near_count() >= d + 2
        && belief.integral.top < credible_top(d)
        && belief.log_z < known.largest_likelihood + 1.0
        && rise < if was_found { 3.0 + 0.5 * d as f64 } else { 2.0 + 0.25 * d as f64 };
    recipe.found = found;
    recipe.arrived = found && moved < STEADY && rise < 1.0 + 0.1 * d as f64;
    if found {
        recipe.search = None;
        belief.search = None;
    } else if was_found {
        let widest = (0..d).map(|a| recipe.posterior.covariance[a * d + a].sqrt()).fold(0.0, f64::max);
        recipe.radius = widest.clamp(0.05, 1.0);
    }
    belief.recipe = recipe;
    Ok(belief)
}

/// By how much the surrogate's maximum may exceed the best node, in nats.
fn credible_top(d: usize) -> f64 {
    2.0 + 0.5 * d as f64
}

/// The belief that the values and an earlier recipe for them make, to the bit.
pub(crate) fn recall(known: &Known, recipe: &Recipe, seed: u64) -> Result<LogBelief> {
    let view = View::new(recipe.view.clone()).ok_or_else(no_view)?;
    let process = near_process(known, &view, recipe.hyper.clone(), &recipe.active)?;
    let labels = |hyper: &Hyper| Support::new(hyper.clone(), known.labels(&view, &known.near())?);
    let support = recipe.support.as_ref().map(labels).transpose()?;
    let aim = target(known, &view, &process, support.as_ref());
    let integral = integrate(&aim, &known.starts(&view), DRAWS, seed)?;
    let home = View::new(Region::round(&vec![0.0; known.dim()], 1.0)).ok_or_else(no_view)?;
    let scout = Process::new(recipe.scout.clone(), known.compressed(&home, typical_depth(known.dim()))?.0)?;
    let search = recipe.search.as_ref().map(|s| make_search(known, s, seed)).transpose()?;
    finish(known, recipe.clone(), (view, process, support, integral), (home, scout), search, seed)
}

/// The process that a recipe makes of values, without its integral: enough to predict.
pub(crate) fn predictor(known: &Known, recipe: &Recipe) -> Result<(View, Process)> {
    let view = View::new(recipe.view.clone()).ok_or_else(no_view)?;
    let process = near_process(known, &view, recipe.hyper.clone(), &recipe.active)?;
    Ok((view, process))
}

fn finish(
    known: &Known,
    recipe: Recipe,
    (view, process, support, integral): (View, Process, Option<Support>, Integral),
    scout: (View, Process),
    search: Option<Search>,
    seed: u64,
) -> Result<LogBelief> {
    let uncertain = uncertainty(&process, &integral, COVARIANCES)?;
    let precision = process.factor.inverse_diagonal();
    let moves = process.weights.iter().zip(&precision).zip(&uncertain.influence);
    let jackknife_sd = moves.map(|((w, p), b)| (b * w / p).powi(2)).sum::<f64>().sqrt();
    let log_z = known.best + integral.log_mass + view.log_volume + uncertain.inflation.0;
    let edge_sd = match &support {
        Some(support) => edge(support, &integral)?,
        None => 0.0,
    };
    let unseen = view_share(&recipe.posterior) * unseen(known, &scout.1, log_z, seed)?;
    let twin = known.twin_wanted(process.hyper.noise);
    Ok(LogBelief {
        log_z,
        model_sd: uncertain.model_variance.sqrt(),
        jackknife_sd,
        monte_carlo_sd: integral.monte_carlo.hypot(uncertain.inflation.1),
        edge_sd,
        support,
        unseen,
        twin,
        view,
        process,
        integral,
        scout,
        search,
        known: known.clone(),
        recipe,
    })
}

/// How much of the posterior may be on the wrong side of the edge of the likelihood: `E[1 − p]` over the posterior.
fn edge(support: &Support, integral: &Integral) -> Result<f64> {
    let chosen = resample(&integral.weights, COVARIANCES, 0.5);
    let rows: Vec<&[f64]> = chosen.iter().map(|&i| integral.points.row(i)).collect();
    let logs = support.log_probability(&Points::from_rows(&rows)?);
    Ok(logs.iter().map(|l| -l.exp_m1()).sum::<f64>() / logs.len() as f64)
}

/// `count` quasi-random points of the prior, others for every `address`.
pub(crate) fn prior_points(d: usize, count: usize, seed: u64, address: u64) -> Result<Vec<Vec<f64>>> {
    let sobol = SobolSequence::new(d, seed ^ 0x5eed)?;
    let first = (address as u32).wrapping_mul(count as u32) % (1 << 30);
    Ok((0..count as u32).map(|i| sobol.point(first + i).iter().map(|p| normal_quantile(*p)).collect()).collect())
}

/// The volume of the posterior in prior standard deviations, at most one: a peak that nobody has seen is taken to be as wide as those that have been.
/// Zero where they are so narrow that the scout, which sees the whole prior, cannot tell.
fn view_share(posterior: &Region) -> f64 {
    let share = View::new(posterior.clone()).map_or(0.0, |view| view.log_volume.min(0.0).exp());
    if share < LEAST_SHARE { 0.0 } else { share }
}

/// What the scout expects, relative to `Z`, where it knows next to nothing: `E[min(ℓ, largest ℓ seen)]` over the draws from the prior at
/// which the variance of `log ℓ` is above one.
fn unseen(known: &Known, scout: &Process, log_z: f64, seed: u64) -> Result<f64> {
    let draws = prior_points(known.dim(), SCOUTED, seed, known.len() as u64)?;
    let there = scout.predict(&Points::from_rows(&draws)?);
    let mut sum = 0.0;
    for ((u, m), v) in draws.iter().zip(there.mean).zip(there.variance) {
        if v > 1.0 {
            let log_likelihood = known.best + m - log_prior(u);
            sum += (log_expected_minimum(log_likelihood, v, known.largest_likelihood) - log_z).exp();
        }
    }
    Ok(sum / SCOUTED as f64)
}

/// `log E[min(eᵗ, eᶜ)]` for `t ~ N(m, v)`: `e^{m + v/2} Φ((c − m − v)/√v) + eᶜ Φ((m − c)/√v)`.
fn log_expected_minimum(m: f64, v: f64, c: f64) -> f64 {
    let s = v.sqrt();
    log_sum_exp(&[m + 0.5 * v + log_cdf((c - m - v) / s), c + log_cdf((m - c) / s)])
}
