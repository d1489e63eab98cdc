//! One peak: from its values to a belief about it. Which coordinates, which hyperparameters, whether it is found. `MATH.md` §15.
//!
//! Everything that is searched for is written down in a [`PeakRecipe`]. A peak is made from its values and the recipe alone, by the same
//! function in a live run and in a resumed one.

use serde::{Deserialize, Serialize};

use super::{
    approach::{FEW_DRAWS, Search, SearchRecipe, make_search, search_recipe},
    bend::Bend,
    cells::Cell,
    integral::{Adapted, Integral, Target, adapt, integrate},
    known::{Known, coefficients, high},
    own::{Own, Straight},
    process::{Hyper, Process},
    sampled::{Sampled, log_evidence, many_draws},
    settle::{Settled, crooked, insist, keep, possible, settle, straighten},
    support::Support,
    view::{Region, View, divergence},
};
use crate::error::{Error, Result};

/// While there are at most this many values, or one and a half for each coefficient of a quadratic, every fit has several starts: before a quadratic is
/// determined nothing contradicts another explanation. Later fits have several only when the values have grown by half.
const CHEAP: usize = 40;

/// The coordinates follow the posterior until it is this many nats from where they expect it, so often at the most.
const SETTLED: f64 = 0.1;
const MOVES: usize = 3;

/// A run has arrived when a batch moves the posterior by less than this many nats.
const STEADY: f64 = 0.5;

/// A posterior that had arrived is elsewhere when a batch moves it by so many nats.
const JUMP: f64 = 1.0;

/// Hyperparameters and bends are looked for again when there are so many times as many values.
pub(super) const MORE: f64 = 1.1;

/// … or when the best value has risen by so many nats.
const RISEN: f64 = 1.0;

/// With a smaller effective share of the sample, draws are tried in the coordinates of a bend.
const CROOKED: f64 = 0.6;

/// With a smaller one the sample says nothing.
const USABLE: f64 = 0.02;

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
    /// Whether it is not found because of what only many draws show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    many: bool,
    /// The largest logarithm of likelihood times prior density.
    pub(crate) best: f64,
    /// How many nodes there were.
    pub(crate) nodes: usize,
    /// How many nodes the last fit with several starts had.
    searched: usize,
    /// How many nodes the last fit had.
    #[serde(default)]
    fitted: usize,
    /// The coordinates of the process.
    view: Region,
    /// Where the posterior is: the coordinates to begin with when there are more values.
    pub(crate) posterior: Region,
    hyper: Hyper,
    /// In these coordinates, those in which the posterior is straight, where it is bent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bend: Option<Bend>,
    /// Whether the process is in the parameters' own coordinates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    own: bool,
    /// How many nodes there were when one was last looked for.
    #[serde(default)]
    bent: usize,
    /// The bend in whose coordinates the integral is drawn, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawn: Option<Bend>,
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

    /// Whether its hyperparameters may do for a few more values: it has arrived, and little is new.
    fn serves(&self, known: &Known, rise: f64) -> bool {
        let few = (known.len() as f64) < MORE * self.fitted as f64;
        self.arrived && few && rise < RISEN && self.support.is_none() && self.foreign == known.foreign()
    }

    /// The coordinates of the kernel and the mean in those of a view.
    fn straight(&self, known: &Known, view: &View) -> Option<Straight> {
        if self.own { Own::new(&known.scales, view).map(Straight::Own) } else { self.bend.clone().map(Straight::Bent) }
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
    let straight = recipe.straight(known, view);
    let data = known.near_data(view, &known.near(), &recipe.active, straight.as_ref())?;
    Process::new(recipe.hyper.clone(), data)
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

/// A process and its integral.
struct Made {
    view: View,
    settled: Settled,
    adapted: Adapted,
    integral: Integral,
}

impl Made {
    fn new((known, cell): (&Known, Option<Cell<'_>>), view: View, settled: Settled, seed: u64) -> Result<Self> {
        let aim = target(known, &view, &settled.process, settled.support.as_ref(), cell);
        let adapted = adapt(&aim, &known.starts(&view), None, seed)?;
        let integral = integrate(&aim, &adapted, FEW_DRAWS, seed)?;
        Ok(Self { view, settled, adapted, integral })
    }
}

/// A proposal in the coordinates of another bend, the one of `before` or a new one, if few draws of an integral are effective and more are so.
fn draw_better(
    aim: &Target<'_>,
    starts: &[Vec<f64>],
    integral: &Integral,
    before: Option<Bend>,
    seed: u64,
) -> Result<Option<(Bend, Adapted)>> {
    if integral.effective >= CROOKED {
        return Ok(None);
    }
    let Some(bend) = before.or_else(|| crooked(integral)) else { return Ok(None) };
    let adapted = adapt(aim, starts, Some(&bend), seed)?;
    let better = integrate(aim, &adapted, FEW_DRAWS, seed)?.effective > integral.effective;
    Ok(better.then_some((bend, adapted)))
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
    let before_view = last.and_then(|r| View::new(r.view.clone()));
    let mut bend = last.zip(before_view).and_then(|(r, view)| Some((r.straight(known, &view)?, view)));
    // On the way up the values around the best say little about it; all of them say more.
    if let Some((recipe, search)) = &looking
        && recipe.own
    {
        bend = search.process.data.bend.clone().map(|own| (own, search.view.clone()));
    }
    let mut made: Option<Made> = None;
    let warm_support = last.and_then(|r| r.support.as_ref());
    let mut moved = f64::INFINITY;
    let mut again = false;
    let mut kept = last.filter(|r| !thorough && cell.is_none() && r.serves(known, rise));
    let mut before = last.filter(|r| r.found && r.support.is_none());
    let mut insisting = false;
    let mut round = 0;
    while round < MOVES {
        let Some(view) = View::new(posterior.clone()) else { break };
        let own = bend.as_ref().and_then(|(bend, of)| bend.moved(of, &view));
        let settled = match (kept, before) {
            (Some(r), _) => match keep(known, &view, own.as_ref(), (&r.hyper, &r.active), r.nodes)? {
                Some(settled) => settled,
                None => {
                    kept = None;
                    continue;
                }
            },
            (None, Some(r)) if insisting => match insist(known, &view, own.as_ref(), (&r.hyper, &r.active))? {
                Some(settled) => settled,
                None => {
                    (insisting, before) = (false, None);
                    continue;
                }
            },
            _ => {
                let warm = (hyper.as_ref(), warm_support);
                let many = thorough || again || hyper.is_none();
                match own
                    .as_ref()
                    .map(|own| possible(settle(known, &view, Some(own), warm, many)))
                    .transpose()?
                    .flatten()
                {
                    Some(settled) => settled,
                    // There is no bend, or it serves no longer.
                    None => settle(known, &view, None, warm, many || own.is_some())?,
                }
            }
        };
        let new = Made::new((known, cell), view, settled, seed)?;
        let Made { view, settled, integral, .. } = &new;
        let far = divergence(&integral.mean, &integral.covariance);
        let good = integral.effective > USABLE;
        let incredible = integral.top > credible_top(d);
        if kept.is_some() && (!good || far >= SETTLED || incredible) {
            kept = None;
            continue;
        }
        // Hyperparameters that had served and no longer do are searched for once more from the beginning. Where the surrogate runs away with those as well, or
        // a posterior that had arrived is elsewhere, those of before have to do, if with them it does not.
        let astray = was_found && (incredible || round == 0 && far > JUMP && last.is_some_and(|r| r.arrived));
        if astray && incredible && !again && !thorough {
            again = true;
            continue;
        }
        if astray && before.is_some() {
            if insisting {
                before = None;
            }
            insisting = !insisting;
            continue;
        }
        if round == 0 && was_found {
            moved = far;
        }
        if good {
            posterior = view.leave_moments(&integral.mean, &integral.covariance);
        }
        hyper = Some(settled.process.hyper.clone());
        bend = settled.process.data.bend.clone().zip(View::new(view.region.clone()));
        made = Some(new);
        if !good || far < SETTLED {
            break;
        }
        round += 1;
    }
    let Some(mut made) = made else {
        // The region that the search began with has no coordinates.
        return Err(Error::Numerical { what: "coordinates of the posterior".into(), reason: "there are none".into() });
    };
    let last_bent = last.map_or(0, |r| r.bent);
    let look = kept.is_none() && n as f64 >= MORE * last_bent as f64 && made.settled.process.len() >= coefficients + 2;
    if look && made.integral.effective > USABLE {
        let straight = straighten(known, &made.view, &made.settled, &made.integral, warm_support)?;
        if let Some(settled) = straight {
            let other = Made::new((known, cell), made.view.clone(), settled, seed)?;
            // What cannot be integrated explains nothing.
            if other.integral.effective > USABLE {
                made = other;
            }
        }
    }
    if made.integral.effective > USABLE {
        posterior = made.view.leave_moments(&made.integral.mean, &made.integral.covariance);
    }
    let Made { view, settled, mut adapted, integral } = made;
    let Settled { process, active, support, .. } = settled;
    let mut recipe = PeakRecipe {
        found: false,
        arrived: false,
        blurred: false,
        many: false,
        best: known.best,
        nodes: n,
        searched: if thorough { n } else { searched },
        fitted: kept.or(before.filter(|_| insisting)).map_or(n, |r| r.fitted),
        view: view.region.clone(),
        posterior,
        hyper: process.hyper.clone(),
        bend: process.data.bend.as_ref().and_then(Straight::bend).cloned(),
        own: matches!(process.data.bend, Some(Straight::Own(_))),
        bent: if look { n } else { last_bent },
        drawn: None,
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
        let aim = target(known, &view, &process, support.as_ref(), cell);
        let before = last.and_then(|r| Some(r.drawn.as_ref()?.moved(&View::new(r.view.clone())?, &view)));
        if let Some((bend, better)) = draw_better(&aim, &known.starts(&view), &sampled.integral, before, seed)? {
            (recipe.drawn, adapted) = (Some(bend), better);
        }
        let many = many_draws(&aim, &adapted, false, seed)?;
        recipe.found = credible(&many);
        recipe.many = !recipe.found;
        sampled = many;
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
    let adapted = adapt(&aim, &known.starts(&view), recipe.drawn.as_ref(), seed)?;
    let sampled = if recipe.found || recipe.many {
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

/// By how much the surrogate's maximum may exceed the best node, in nats.
fn credible_top(d: usize) -> f64 {
    2.0 + 0.5 * d as f64
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
