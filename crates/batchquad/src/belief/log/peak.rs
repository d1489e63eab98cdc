//! One peak: from its values to a belief about it. Which coordinates, which hyperparameters, whether it is found. `MATH.md` §15.
//!
//! Everything that is searched for is written down in a [`PeakRecipe`]. A peak is made from its values and the recipe alone, by the same
//! function in a live run and in a resumed one.

use serde::{Deserialize, Serialize};

use super::{
    approach::{FEW_DRAWS, Search, SearchRecipe, make_search, search_recipe},
    bend::Bend,
    cells::Cell,
    fit::fit,
    integral::{Adapted, Integral, Target, adapt, integrate, resample},
    known::{Known, coefficients, high},
    process::{Hyper, Process},
    support::Support,
    uncertainty::{Uncertainty, uncertainty},
    view::{Region, View, divergence},
};
use crate::error::{Error, Result};

/// Draws that integrate the surrogate of a peak that is found, and those that do where the first leave too much open.
const DRAWS: [usize; 2] = [4_096, 16_384];

/// While there are at most this many values, or one and a half for each coefficient of a quadratic, every fit has several starts: before a quadratic is
/// determined nothing contradicts another explanation. Later fits have several only when the values have grown by half.
const CHEAP: usize = 40;

/// The coordinates follow the posterior until it is this many nats from where they expect it, so often at the most.
const SETTLED: f64 = 0.1;
const MOVES: usize = 3;

/// A run has arrived when a batch moves the posterior by less than this many nats.
const STEADY: f64 = 0.5;

/// Points of the sample behind the covariances of the process.
const COVARIANCES: usize = 384;

/// The sampling may leave open so much of what the process does, which counts as no less than [`fine`].
const SAMPLING: f64 = 0.3;

/// What the process leaves open of `log Z` counts as no less. In up to three dimensions draws are cheap.
fn fine(dim: usize) -> f64 {
    if dim <= 3 { 5e-4 } else { 2e-3 }
}

/// Points of the posterior's sample that a bend is fitted to, and how many nats it has to gain at each, to be tried.
const BENT: usize = 512;
const WORTH: f64 = 0.01;

/// A bend is kept if it raises the marginal likelihood by so many nats, and so many for each of its coefficients.
const EVIDENT: f64 = 4.0;
const PER: f64 = 1.0;

/// One is looked for again when there are so many times as many values.
const MORE: f64 = 1.1;

/// Chosen by measurement: so many values that are as surprising as the process expects stand beside those that there are.
const DOUBT: f64 = 2.0;

/// All that was searched for: with its values it makes the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeakRecipe {
    /// Whether the posterior of the surrogate is where the values are.
    pub(crate) found: bool,
    /// Whether it has also stopped moving.
    pub(crate) arrived: bool,
    /// Whether it is not found although its values have stopped rising: what is not known lies around them.
    #[serde(default)]
    pub(crate) blurred: bool,
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
    /// In these coordinates, those in which the posterior is straight, where it is bent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bend: Option<Bend>,
    /// How many nodes there were when one was last looked for.
    #[serde(default)]
    bent: usize,
    /// Nodes far below that the process has to be told of.
    active: Vec<usize>,
    /// Nodes that belong to another peak.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    foreign: Vec<usize>,
    /// Of the process on labels, where likelihoods of zero cut through the posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    support: Option<Hyper>,
    search: Option<SearchRecipe>,
}

/// What is believed about one peak of the posterior, from the values that belong to it.
#[derive(Debug, Clone)]
pub(crate) struct Peak {
    pub(crate) log_z: f64,
    pub(crate) model_sd: f64,
    pub(crate) jackknife_sd: f64,
    /// How much larger the errors of leaving out single values are than the process expects: a factor of its variance.
    pub(crate) surprise: f64,
    pub(crate) monte_carlo_sd: f64,
    /// What is not known about where the likelihood becomes zero.
    pub(crate) edge_sd: f64,
    pub(crate) support: Option<Support>,
    pub(crate) view: View,
    pub(crate) process: Process,
    pub(crate) integral: Integral,
    pub(crate) search: Option<Search>,
    pub(crate) known: Known,
    pub(crate) recipe: PeakRecipe,
}

impl PeakRecipe {
    /// Whether hyperparameters were searched for from several starts with the values that it has.
    pub(crate) fn is_new(&self) -> bool {
        self.searched == self.nodes
    }

    /// Whether it holds for other values as well: the peak is found, and no value is named by its number.
    pub(crate) fn names_no_value(&self) -> bool {
        self.active.is_empty() && self.foreign.is_empty() && self.search.is_none()
    }
}

impl Peak {
    /// Nodes far below that the process has been told of.
    pub(crate) fn active(&self) -> &[usize] {
        &self.recipe.active
    }

    /// The integrand of the surrogate, zero outside a cell.
    pub(crate) fn target<'a>(&'a self, cell: Option<Cell<'a>>) -> Target<'a> {
        target(&self.known, &self.view, &self.process, self.support.as_ref(), cell)
    }
}

/// The process on the values that matter, with `active` ones of the others.
fn near_process(known: &Known, view: &View, recipe: &PeakRecipe) -> Result<Process> {
    let data = known.near_data(view, &known.near(), &recipe.active, recipe.bend.as_ref())?;
    Process::new(recipe.hyper.clone(), data)
}

/// A process with what it was told, and where the likelihood is not zero.
struct Settled {
    process: Process,
    /// How well the first fit, without those that joined, explains the values.
    objective: f64,
    active: Vec<usize>,
    support: Option<Support>,
}

/// A fit on the values that matter; others join where the fit contradicts them. Likelihoods of zero where the fit expects much are the business of a
/// [`Support`]: a smooth process cannot fall off a cliff.
fn settle(
    known: &Known,
    view: &View,
    bend: Option<&Bend>,
    (warm, warm_support): (Option<&Hyper>, Option<&Hyper>),
    thorough: bool,
) -> Result<Settled> {
    let near = known.near();
    let mut support = None;
    let cap = known.noise_cap();
    let mut active: Vec<usize> = Vec::new();
    let first = fit(&known.near_data(view, &near, &active, bend)?, warm, thorough, cap)?;
    let (mut process, objective) = (first.process, first.objective / first.share);
    for round in 0..3 {
        let mut more = known.contradicted(view, &process, &near, &active)?;
        if support.is_none() && more.iter().any(|&i| known.depth[i].is_infinite()) {
            support = Some(Support::fit(&known.distances(view, &near)?, warm_support)?);
        }
        more.retain(|&i| known.depth[i].is_finite());
        if more.is_empty() {
            break;
        }
        active.extend(more);
        let data = known.near_data(view, &near, &active, bend)?;
        process = if round == 0 {
            fit(&data, Some(&process.hyper.clone()), false, cap)?.process
        } else {
            Process::new(process.hyper, data)?
        };
    }
    Ok(Settled { process, objective, active, support })
}

/// The same values in other coordinates, straight where these are bent or the other way round, if they are explained better so.
fn straighten(
    known: &Known,
    view: &View,
    settled: &Settled,
    integral: &Integral,
    warm_support: Option<&Hyper>,
) -> Result<Option<Settled>> {
    let own = settled.process.data.bend.as_ref();
    let warm = (Some(&settled.process.hyper), warm_support);
    let mut best: Option<(f64, Settled)> = None;
    let sample = integral.points.select(&resample(&integral.weights, BENT, 0.5));
    let allowance = |bend: Option<&Bend>| bend.map_or(0.0, |b| EVIDENT + PER * b.coefficients() as f64);
    let now = settled.objective - allowance(own);
    let candidate = Bend::fit(&sample, settled.process.len()).filter(|(_, gain)| *gain > WORTH).map(|c| c.0);
    let straight = own.is_some().then_some(None);
    for bend in candidate.as_ref().map(Some).into_iter().chain(straight) {
        let other = settle(known, view, bend, warm, own.is_some() != bend.is_some())?;
        let score = other.objective - allowance(bend);
        if score > now && best.as_ref().is_none_or(|b| score > b.0) {
            best = Some((score, other));
        }
    }
    Ok(best.map(|b| b.1))
}

fn target<'a>(
    known: &Known,
    view: &'a View,
    process: &'a Process,
    support: Option<&'a Support>,
    cell: Option<Cell<'a>>,
) -> Target<'a> {
    Target { process, view, ceiling: known.ceiling(view), support, cell }
}

/// What the search for a peak begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begin<'a> {
    /// Nothing.
    Nowhere,
    /// What was known of it with fewer values.
    Last(&'a PeakRecipe),
    /// Where it is said to be.
    There(&'a Region),
}

/// Looks for the coordinates, the hyperparameters and the state of the search, beginning with those of `last`.
///
/// A peak that was found is looked for without the values of another one first, so that these do not undo it.
pub(crate) fn search(known: &Known, begin: Begin<'_>, cell: Option<Cell<'_>>, seed: u64) -> Result<Peak> {
    if let Begin::Last(last) = begin
        && last.found
    {
        let strangers = known.strangers(&last.posterior)?;
        if !strangers.is_empty() {
            let alone = attempt(&known.without(&strangers), begin, cell, seed)?;
            if alone.recipe.found {
                return Ok(alone);
            }
        }
    }
    attempt(known, begin, cell, seed)
}

fn attempt(known: &Known, begin: Begin<'_>, cell: Option<Cell<'_>>, seed: u64) -> Result<Peak> {
    let last = match begin {
        Begin::Last(last) => Some(last),
        Begin::Nowhere | Begin::There(_) => None,
    };
    let (d, n) = (known.dim(), known.len());
    let searched = last.map_or(0, |r| r.searched);
    let coefficients = coefficients(d);
    let thorough = n <= CHEAP.max(3 * coefficients / 2) || n as f64 >= 1.5 * searched as f64;
    let (rise, was_found) = match begin {
        Begin::Nowhere => (f64::INFINITY, false),
        Begin::Last(r) => (known.best - r.best, r.found),
        Begin::There(_) => (0.0, true),
    };
    let mut looking = None;
    let mut posterior = match begin {
        Begin::Last(r) if r.found => r.posterior.clone(),
        Begin::There(region) => region.clone(),
        Begin::Last(_) | Begin::Nowhere => {
            let warm = last.and_then(|r| r.search.as_ref()).map(|s| &s.hyper);
            let recipe = search_recipe(known, warm, thorough)?;
            let search = make_search(known, &recipe, cell, seed)?;
            let region = search.view.leave_moments(&search.integral.mean, &search.integral.covariance);
            looking = Some((recipe, search));
            region
        }
    };
    // The coordinates follow the posterior until it has settled.
    let mut hyper = last.map(|r| r.hyper.clone());
    let mut bend = last.and_then(|r| r.bend.clone().zip(View::new(r.view.clone())));
    let mut made: Option<(View, Settled, Adapted, Integral)> = None;
    let warm_support = last.and_then(|r| r.support.as_ref());
    let mut moved = f64::INFINITY;
    let mut again = false;
    let mut round = 0;
    while round < MOVES {
        let Some(view) = View::new(posterior.clone()) else { break };
        let own = bend.as_ref().map(|(bend, of)| bend.moved(of, &view));
        let warm = (hyper.as_ref(), warm_support);
        let settled = settle(known, &view, own.as_ref(), warm, thorough || again || hyper.is_none())?;
        let aim = target(known, &view, &settled.process, settled.support.as_ref(), cell);
        let adapted = adapt(&aim, &known.starts(&view), seed)?;
        let integral = integrate(&aim, &adapted, FEW_DRAWS, seed)?;
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
        bend = own.zip(View::new(view.region.clone()));
        made = Some((view, settled, adapted, integral));
        if !good || far < SETTLED {
            break;
        }
        round += 1;
    }
    let Some((view, mut settled, mut adapted, mut integral)) = made else {
        // The region that the search began with has no coordinates.
        return Err(Error::Numerical { what: "coordinates of the posterior".into(), reason: "there are none".into() });
    };
    let last_bent = last.map_or(0, |r| r.bent);
    let look = n as f64 >= MORE * last_bent as f64 && settled.process.len() >= coefficients + 2;
    if look
        && integral.effective > 0.02
        && let Some(bent) = straighten(known, &view, &settled, &integral, warm_support)?
    {
        let aim = target(known, &view, &bent.process, bent.support.as_ref(), cell);
        adapted = adapt(&aim, &known.starts(&view), seed)?;
        integral = integrate(&aim, &adapted, FEW_DRAWS, seed)?;
        if integral.effective > 0.02 {
            posterior = view.leave_moments(&integral.mean, &integral.covariance);
        }
        settled = bent;
    }
    let Settled { process, active, support, .. } = settled;
    let mut recipe = PeakRecipe {
        found: false,
        arrived: false,
        blurred: false,
        best: known.best,
        nodes: n,
        searched: if thorough { n } else { searched },
        view: view.region.clone(),
        posterior,
        hyper: process.hyper.clone(),
        bend: process.data.bend.clone(),
        bent: if look { n } else { last_bent },
        active,
        foreign: known.foreign(),
        support: support.as_ref().map(|s| s.hyper().clone()),
        search: looking.as_ref().map(|l| l.0.clone()),
    };
    let credible = |sampled: &Sampled| {
        sampled.uncertain.model_variance < 1.0
            && sampled.integral.effective > 0.05
            && log_evidence(known, &view, sampled) < known.largest_likelihood + 1.0
    };
    let mut sampled = Sampled::new(&process, integral)?;
    recipe.found = known.near_count() >= d + 2
        && sampled.integral.top < credible_top(d)
        && rise < if was_found { 3.0 + 0.5 * d as f64 } else { 2.0 + 0.25 * d as f64 }
        && credible(&sampled);
    // A few draws may miss what many see.
    if recipe.found {
        let many = many_draws(&target(known, &view, &process, support.as_ref(), cell), &adapted, false, seed)?;
        recipe.found = credible(&many);
        if recipe.found {
            sampled = many;
        }
    }
    let steady = rise < 1.0 + 0.1 * d as f64;
    recipe.blurred = !recipe.found && steady && known.near_count() >= 2 * (d + 1);
    // With fewer values than a quadratic has coefficients nothing contradicts it.
    let determined = process.len() >= coefficients + 2;
    let alone = recipe.foreign.iter().all(|&i| known.depth[i] > high(d));
    recipe.arrived = recipe.found && determined && alone && moved < STEADY && steady;
    let looking = if recipe.found {
        recipe.search = None;
        None
    } else {
        looking.map(|l| l.1)
    };
    finish(known, recipe, (view, process, support, sampled), looking, seed)
}

/// An integral of the surrogate, what the process does not know about it, and how far it can be believed.
struct Sampled {
    integral: Integral,
    uncertain: Uncertainty,
    /// The variance of `log Z` by the jackknife, and its [ratio](surprise) to what the process expects.
    jackknife: f64,
    surprise: f64,
}

impl Sampled {
    fn new(process: &Process, integral: Integral) -> Result<Self> {
        let uncertain = uncertainty(process, &integral, COVARIANCES)?;
        let (jackknife, surprise) = surprise(process, &uncertain.influence);
        Ok(Self { integral, uncertain, jackknife, surprise })
    }
}

/// The integral of the surrogate of a peak that is found, with so many draws that the sampling leaves little open beside the process; for a `rough` one
/// with the fewest.
fn many_draws(aim: &Target<'_>, adapted: &Adapted, rough: bool, seed: u64) -> Result<Sampled> {
    let sd = |sampled: &Sampled| sampled.uncertain.model_variance.sqrt().max(fine(aim.process.dim()));
    let mut sampled = Sampled::new(aim.process, integrate(aim, adapted, DRAWS[0], seed)?)?;
    if !rough && sampled.integral.monte_carlo > SAMPLING * sd(&sampled) {
        sampled = Sampled::new(aim.process, integrate(aim, adapted, DRAWS[1], seed)?)?;
        let wanted = (SAMPLING, sd(&sampled));
        sampled.integral.sharpen(aim, wanted, seed)?;
    }
    Ok(sampled)
}

/// The logarithm of the expected integral. Where values are less surprising than the process expects, its variances are too large, and so is what they add.
fn log_evidence(known: &Known, view: &View, sampled: &Sampled) -> f64 {
    let inflation = sampled.surprise.min(1.0) * sampled.uncertain.inflation.0;
    known.best + sampled.integral.log_mass + view.log_volume + inflation
}

/// By how much the surrogate's maximum may exceed the best node, in nats.
fn credible_top(d: usize) -> f64 {
    2.0 + 0.5 * d as f64
}

/// The peak that the values and an earlier recipe for them make, to the bit; a `rough` one is for choosing points.
pub(crate) fn recall(
    known: &Known,
    recipe: &PeakRecipe,
    cell: Option<Cell<'_>>,
    (rough, seed): (bool, u64),
) -> Result<Peak> {
    let known = &known.without(&recipe.foreign);
    let view = View::made(recipe.view.clone())?;
    let process = near_process(known, &view, recipe)?;
    let labels = |hyper: &Hyper| Support::new(hyper.clone(), known.distances(&view, &known.near())?);
    let support = recipe.support.as_ref().map(labels).transpose()?;
    let aim = target(known, &view, &process, support.as_ref(), cell);
    let adapted = adapt(&aim, &known.starts(&view), seed)?;
    let sampled = if recipe.found {
        many_draws(&aim, &adapted, rough, seed)?
    } else {
        Sampled::new(&process, integrate(&aim, &adapted, FEW_DRAWS, seed)?)?
    };
    let search = recipe.search.as_ref().map(|s| make_search(known, s, cell, seed)).transpose()?;
    finish(known, recipe.clone(), (view, process, support, sampled), search, seed)
}

/// The process that a recipe makes of values, without its integral: enough to predict.
pub(crate) fn predictor(known: &Known, recipe: &PeakRecipe) -> Result<(View, Process)> {
    let known = &known.without(&recipe.foreign);
    let view = View::made(recipe.view.clone())?;
    let process = near_process(known, &view, recipe)?;
    Ok((view, process))
}

/// The variance of `log Z` by the jackknife, `J = Σᵢ (bᵢrᵢ)²`, and its ratio to what the process expects it to be, `E = Σᵢ bᵢ²/pᵢ` with precisions
/// `pᵢ = [K⁻¹]ᵢᵢ`. It is told by `m = E²/Σᵢ(bᵢ²/pᵢ)²` independent values, less the share that a quadratic takes. So its logarithm counts `m/(m + k)` times,
/// where `k` is [`DOUBT`]: few values that happen to be unsurprising say little.
fn surprise(process: &Process, influence: &[f64]) -> (f64, f64) {
    let precision = process.factor.inverse_diagonal();
    let (mut jackknife, mut expected, mut squares) = (0.0, 0.0, 0.0);
    for ((w, p), b) in process.weights.iter().zip(&precision).zip(influence) {
        let share = b * b / p;
        jackknife += (b * w / p).powi(2);
        expected += share;
        squares += share * share;
    }
    let free = (1.0 - coefficients(process.dim()) as f64 / process.len() as f64).max(0.0);
    let count = free * expected * expected / squares.max(f64::MIN_POSITIVE);
    let ratio = jackknife / expected.max(f64::MIN_POSITIVE);
    (jackknife, ratio.powf(count / (count + DOUBT)))
}

fn finish(
    known: &Known,
    recipe: PeakRecipe,
    (view, process, support, sampled): (View, Process, Option<Support>, Sampled),
    search: Option<Search>,
    seed: u64,
) -> Result<Peak> {
    let log_z = log_evidence(known, &view, &sampled);
    let Sampled { integral, uncertain, jackknife, surprise } = sampled;
    let edge_sd = match &support {
        Some(support) => support.spread(&integral, seed)?,
        None => 0.0,
    };
    Ok(Peak {
        log_z,
        model_sd: uncertain.model_variance.sqrt(),
        jackknife_sd: jackknife.sqrt(),
        surprise,
        monte_carlo_sd: integral.monte_carlo.hypot(uncertain.inflation.1),
        edge_sd,
        support,
        view,
        process,
        integral,
        search,
        known: known.clone(),
        recipe,
    })
}
