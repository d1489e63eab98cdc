//! From values to a belief: which peaks there are, and what is believed about each. `MATH.md` §15.
//!
//! Everything that is searched for is written down in a [`Recipe`]. A belief is made from the values and the recipe alone, by the same
//! function in a live run and in a resumed one.

use serde::{Deserialize, Serialize};

use super::{
    LogBelief,
    cells::Cells,
    climb::{self, Around, ClimbRecipe, Trail},
    integral::Mode,
    known::{Known, typical_depth},
    peak::{self, Begin, Peak, PeakRecipe},
    process::Process,
    proposal::Normal,
    scout::{self, Scout, ScoutRecipe, Seen},
    view::{Region, View},
};
use crate::{error::Result, numeric::log_sum::log_sum_exp, points::Points};

/// Most peaks with a process of their own.
const MOST_PEAKS: usize = 8;

/// Peaks are told apart when less than this share of the posterior is near the border between their cells, and stay apart up to the second.
const BORDER_SHARE: [f64; 2] = [3e-3, 0.02];

/// A maximum of a process is another peak if it is at least this far away, in standard deviations of both.
const APART: f64 = 5.0;

/// All that was searched for: with the values it makes the belief.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The largest peak.
    #[serde(flatten)]
    pub(crate) main: PeakRecipe,
    /// The process that looks for what the others cannot see.
    scout: ScoutRecipe,
    /// Further peaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<PeakRecipe>,
    /// The regions that tell their cells apart, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cells: Vec<Region>,
    /// The climb to a further peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    climb: Option<ClimbRecipe>,
    /// What earlier climbs have left behind.
    #[serde(default, skip_serializing_if = "Trail::is_empty")]
    trail: Trail,
    /// How many values there were.
    #[serde(default, rename = "values")]
    pub(crate) nodes: usize,
    /// Whether a climb to another peak keeps the run from arriving, as every one did in older records.
    #[serde(default = "always")]
    pressing: bool,
    /// See [`Recipe::asking`].
    #[serde(default)]
    asking: bool,
    /// How many values there were when the newest peak was found.
    #[serde(default)]
    newest: usize,
    /// Whether there are several peaks, and too little is known about further ones.
    #[serde(default)]
    exploring: bool,
    /// How many of eight points were to go on with the climb.
    #[serde(default)]
    eighths: u64,
    /// How many values there were when the largest peak was found; none while it is not.
    #[serde(default)]
    since: usize,
}

fn always() -> bool {
    true
}

impl Recipe {
    /// How many of eight points go on with the climb.
    pub(crate) fn eighths(&self) -> u64 {
        self.eighths
    }

    /// Latent points that would tell whether values that no peak explains belong to another.
    pub(crate) fn questions(&self) -> impl Iterator<Item = &[f64]> {
        self.trail.questions.open(self.nodes).map(|q| &q.at[..])
    }

    /// Whether a climb is on its way to another peak.
    fn climbing(&self) -> bool {
        self.climb.as_ref().is_some_and(|c| c.apart) && self.trail.promising()
    }

    /// Whether it is not known yet where values that no peak explains belong.
    pub(crate) fn asking(&self) -> bool {
        self.asking
    }

    /// Whether the largest peak was found long ago, as values are counted.
    pub(crate) fn seasoned(&self) -> bool {
        self.nodes as f64 >= climb::SEASONED * self.since as f64
    }

    /// Whether there are several peaks, and too little is known about further ones.
    pub(crate) fn exploring(&self) -> bool {
        self.exploring
    }

    /// Whether values suggest another peak that matters.
    pub(crate) fn beyond(&self) -> bool {
        self.climbing() && self.pressing || self.asking
    }

    /// Whether there may well be another peak that matters.
    pub(crate) fn promising(&self) -> bool {
        self.beyond() || self.exploring
    }

    /// The same without what is said of single values by their numbers, so that it may serve for others; none where that is essential.
    pub(crate) fn for_other_values(&self) -> Option<Self> {
        let plain = self.peaks().all(PeakRecipe::names_no_value);
        plain.then(|| Self { climb: None, trail: Trail::default(), ..self.clone() })
    }

    fn peaks(&self) -> impl Iterator<Item = &PeakRecipe> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// Peaks that share the values, each with its own.
struct Peaks {
    regions: Vec<Region>,
    cells: Cells,
    members: Vec<Vec<usize>>,
    peaks: Vec<Peak>,
}

/// The values of each cell.
fn divide(known: &Known, cells: &Cells, count: usize) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); count];
    for (i, u) in known.nodes.rows().enumerate() {
        members[cells.at(u)].push(i);
    }
    members
}

/// The values of a peak, which are all of them where there is no other.
fn own(known: &Known, members: &[usize]) -> Result<Known> {
    if members.len() == known.len() { Ok(known.clone()) } else { known.subset(members) }
}

impl Peaks {
    /// Peaks in the cells of regions, each beginning with what is known of it. None if they cannot be told apart or, where one of them is `new`, if
    /// not all are found.
    fn search(known: &Known, places: &[(Region, Option<&PeakRecipe>)], new: bool, seed: u64) -> Result<Option<Self>> {
        let regions: Vec<Region> = places.iter().map(|p| p.0.clone()).collect();
        let cells = Cells::new(&regions)?;
        let members = divide(known, &cells, regions.len());
        let mut peaks = Vec::new();
        for (k, (own_members, (region, last))) in members.iter().zip(places).enumerate() {
            if own_members.iter().all(|&i| known.depth[i].is_infinite()) {
                return Ok(None);
            }
            let begin = last.map_or(Begin::There(region), Begin::Last);
            let peak = peak::search(&own(known, own_members)?, begin, cells.cell(k), seed)?;
            if new && !peak.recipe.found {
                return Ok(None);
            }
            peaks.push(peak);
        }
        let made = Self { regions, cells, members, peaks };
        Ok((made.border_share() < BORDER_SHARE[usize::from(!new)]).then_some(made))
    }

    /// The share of the posterior that is near the border between two cells.
    fn border_share(&self) -> f64 {
        let logs: Vec<f64> = self.peaks.iter().map(|p| p.log_z).collect();
        let total = log_sum_exp(&logs);
        let near = |peak: &Peak| -> f64 {
            let sample = peak.integral.points.rows().zip(&peak.integral.weights);
            sample.filter(|(x, w)| **w > 0.0 && self.cells.near_border(&peak.view.leave(x))).map(|(_, w)| w).sum()
        };
        self.peaks.iter().zip(logs).map(|(peak, log)| (log - total).exp() * near(peak)).sum()
    }

    /// The largest first.
    fn sorted(mut self) -> Result<Self> {
        let mut order: Vec<usize> = (0..self.peaks.len()).collect();
        order.sort_by(|&a, &b| self.peaks[b].log_z.total_cmp(&self.peaks[a].log_z));
        self.regions = order.iter().map(|&k| self.regions[k].clone()).collect();
        self.members = order.iter().map(|&k| self.members[k].clone()).collect();
        self.peaks = order.iter().map(|&k| self.peaks[k].clone()).collect();
        self.cells = Cells::new(&self.regions)?;
        Ok(self)
    }

    /// Where each peak is, and what is known of it.
    fn places(&self) -> Vec<(Region, Option<&PeakRecipe>)> {
        self.peaks.iter().map(|p| (p.recipe.posterior.clone(), Some(&p.recipe))).collect()
    }

    /// One of the processes has two maxima that are far apart: each becomes a peak, if that can be.
    fn split(&self, known: &Known, seed: u64) -> Result<Option<Self>> {
        for (k, peak) in self.peaks.iter().enumerate() {
            if !peak.recipe.found || self.peaks.len() >= MOST_PEAKS {
                continue;
            }
            let deep = typical_depth(known.dim());
            let apart = apart(&peak.integral.modes, deep);
            if apart.len() < 2 {
                continue;
            }
            let mut places = self.places();
            places.remove(k);
            let there = |normal: &Normal| peak.view.leave_moments(&normal.mean, &normal.covariance());
            places.extend(apart.iter().map(|normal| (there(normal), None)));
            if let Some(split) = Self::search(known, &places, true, seed)? {
                return Ok(Some(split));
            }
        }
        Ok(None)
    }
}

/// The normal distributions of maxima that are far apart and not too low.
fn apart(modes: &[Mode], deep: f64) -> Vec<&Normal> {
    let mut chosen: Vec<&Normal> = Vec::new();
    let Some(top) = modes.first().map(|m| m.0) else { return chosen };
    let far = |a: &Normal, b: &Normal| a.white(&b.mean).iter().map(|z| z * z).sum::<f64>() > APART * APART;
    for (height, _, normal) in modes {
        if let Some(normal) = normal
            && *height > top - deep
            && chosen.iter().all(|c| far(c, normal) && far(normal, c))
        {
            chosen.push(normal);
        }
    }
    chosen
}

/// Looks for the peaks, the coordinates, the hyperparameters and the state of the search, beginning with those of `last`.
pub(crate) fn search(known: &Known, last: Option<&Recipe>, seed: u64) -> Result<LogBelief> {
    let places = |r: &PeakRecipe| (r.posterior.clone(), r.clone());
    let mut before: Vec<(Region, PeakRecipe)> = last.map_or(Vec::new(), |l| l.peaks().map(places).collect());
    // Peaks as they were; where they cannot be told apart any more, the smallest goes, until one is left.
    let mut found = None;
    while before.len() > 1 && found.is_none() {
        let places: Vec<_> = before.iter().map(|b| (b.0.clone(), Some(&b.1))).collect();
        found = Peaks::search(known, &places, false, seed)?;
        if found.is_none() {
            before.pop();
        }
    }
    let mut peaks = match found {
        Some(peaks) => peaks,
        None => {
            let peak = peak::search(known, before.first().map_or(Begin::Nowhere, |b| Begin::Last(&b.1)), None, seed)?;
            let region = peak.recipe.posterior.clone();
            let all = vec![(0..known.len()).collect()];
            Peaks { regions: vec![region], cells: Cells::default(), members: all, peaks: vec![peak] }
        }
    };
    while let Some(split) = peaks.split(known, seed)? {
        peaks = split;
    }
    let mut climb = None;
    let mut trail = last.map_or_else(Trail::default, |l| l.trail.clone());
    trail.questions.answer(known);
    if peaks.peaks[0].recipe.found {
        let before = last.and_then(|l| l.climb.as_ref());
        let newest = last.map_or(0.0, |l| (known.len().saturating_sub(l.nodes) as u64 * l.eighths) as f64 / 8.0);
        let around = Around { peaks: &peaks.peaks, own: &peaks.members };
        if let Some(step) = climb::next(known, around, before, newest, &mut trail)? {
            let warm = before.map_or(Begin::Nowhere, |c| Begin::Last(&c.peak));
            let peak = peak::search(&known.subset(&step.members)?, warm, None, seed)?;
            let mut places = peaks.places();
            places.push((peak.recipe.posterior.clone(), Some(&peak.recipe)));
            let more = if peak.recipe.found && places.len() <= MOST_PEAKS {
                Peaks::search(known, &places, true, seed)?
            } else {
                None
            };
            match more {
                Some(more) => {
                    peaks = more;
                    trail.rewarded();
                }
                None => climb = Some((ClimbRecipe::new(step, peak.recipe.clone()), peak)),
            }
        }
    }
    let peaks = peaks.sorted()?;
    let thorough = peaks.peaks[0].recipe.is_new();
    let scout = scout::search(known, &peaks.peaks, last.map(|r| &r.scout), thorough)?;
    let several = peaks.peaks.len() > 1;
    let since = match last {
        _ if !peaks.peaks[0].recipe.found => 0,
        Some(last) if last.since > 0 => last.since,
        _ => known.len(),
    };
    let recipe = Recipe {
        main: peaks.peaks[0].recipe.clone(),
        scout,
        others: peaks.peaks[1..].iter().map(|p| p.recipe.clone()).collect(),
        cells: if several { peaks.regions } else { Vec::new() },
        climb: climb.as_ref().map(|c| c.0.clone()),
        trail,
        nodes: known.len(),
        pressing: false,
        asking: false,
        newest: last.filter(|l| l.peaks().count() >= peaks.peaks.len()).map_or(known.len(), |l| l.newest),
        exploring: false,
        eighths: 0,
        since,
    };
    let mut belief = finish(known, recipe, (peaks.cells, peaks.peaks), climb.map(|c| c.1), seed)?;
    // Where little is left to be learnt about the peaks, or nothing is known about others.
    let reassured = belief.recipe.trail.missing(known, several) == 0;
    if belief.recipe.main.found && (belief.process_sd() < climb::KNOWN[0] || !reassured) {
        let own = divide(known, &belief.cells, belief.peaks.len());
        climb::ask(known, Around { peaks: &belief.peaks, own: &own }, &mut belief.recipe.trail)?;
    }
    // From far below, most climbs end on something that does not matter.
    let half_way = |c: &ClimbRecipe| c.half_way(known);
    belief.recipe.pressing = !reassured || belief.recipe.climb.as_ref().is_some_and(half_way);
    // Values without a run, as those of a table, are not asked about: nothing would answer.
    let goes_on = last.is_some_and(|l| l.nodes < known.len());
    let explored = belief.peaks.iter().zip(divide(known, &belief.cells, belief.peaks.len())).map(|(peak, own)| {
        peak.known.left_out(peak.active()).iter().filter(|&&i| own[i] >= belief.recipe.newest).count()
    });
    let explored: usize = explored.sum();
    let recipe = &mut belief.recipe;
    let since_newest = known.len().saturating_sub(recipe.newest);
    recipe.exploring = goes_on && several && !climb::explored(explored, since_newest, known.dim());
    recipe.asking = goes_on && !reassured && recipe.questions().next().is_some();
    let grown = known.len() as f64 / since.max(1) as f64;
    let known_to_exist = belief.recipe.climbing() || belief.recipe.exploring;
    belief.recipe.eighths = climb::eighths(
        belief.process_sd(),
        grown,
        belief.recipe.climb.as_ref(),
        (known_to_exist, several),
        known.dim(),
    );
    Ok(belief)
}

/// The belief that the values and an earlier recipe for them make, to the bit; a `rough` one is for choosing points.
pub(crate) fn recall(known: &Known, recipe: &Recipe, rough: bool, seed: u64) -> Result<LogBelief> {
    let cells = Cells::new(&recipe.cells)?;
    let members = divide(known, &cells, recipe.others.len() + 1);
    let mut peaks = Vec::new();
    for (k, (own_members, recipe)) in members.iter().zip(recipe.peaks()).enumerate() {
        peaks.push(peak::recall(&own(known, own_members)?, recipe, cells.cell(k), (rough, seed))?);
    }
    let climb = match &recipe.climb {
        Some(climb) => Some(peak::recall(&known.subset(&climb.members)?, &climb.peak, None, (rough, seed))?),
        None => None,
    };
    finish(known, recipe.clone(), (cells, peaks), climb, seed)
}

/// Processes without their integrals, by cell: enough to predict.
pub(crate) struct Predictor {
    cells: Cells,
    pub(crate) peaks: Vec<(Known, View, Process)>,
}

impl Predictor {
    pub(crate) fn new(known: &Known, recipe: &Recipe) -> Result<Self> {
        let cells = Cells::new(&recipe.cells)?;
        let members = divide(known, &cells, recipe.others.len() + 1);
        let mut peaks = Vec::new();
        for (own_members, recipe) in members.iter().zip(recipe.peaks()) {
            let own = own(known, own_members)?;
            let (view, process) = peak::predictor(&own, recipe)?;
            peaks.push((own, view, process));
        }
        Ok(Self { cells, peaks })
    }

    /// What knows about a latent point.
    pub(crate) fn at(&self, u: &[f64]) -> &(Known, View, Process) {
        &self.peaks[self.cells.at(u)]
    }
}

fn finish(
    known: &Known,
    recipe: Recipe,
    (cells, peaks): (Cells, Vec<Peak>),
    climb: Option<Peak>,
    seed: u64,
) -> Result<LogBelief> {
    let log_z = log_sum_exp(&peaks.iter().map(|p| p.log_z).collect::<Vec<_>>());
    let scout = Scout::new(&recipe.scout, &Seen { known, cells: &cells, peaks: &peaks, log_z }, seed)?;
    let twin = known.twin_wanted(peaks[0].process.hyper.noise);
    let mut nodes = peaks[0].process.data.nodes.clone();
    for peak in &peaks[1..] {
        let moved: Vec<f64> =
            peak.process.data.nodes.rows().flat_map(|x| peaks[0].view.enter(&peak.view.leave(x))).collect();
        nodes = nodes.concat(&Points::new(known.dim(), moved)?)?;
    }
    Ok(LogBelief { log_z, peaks, cells, nodes, climb, twin, scout, known: known.clone(), recipe })
}
