//! The way to other peaks: values that the peaks found so far do not explain, and where the next climb begins. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{
    chart::Chart,
    known::{Known, high, typical_depth},
    link::{Link, Questions},
    peak::{Peak, PeakRecipe},
};
use crate::{
    error::Result,
    points::{Points, square_distance},
};

/// A value is explained when it is at least so deep, relative to the depth at which the process of its peak expects it, or at which a normal distribution in
/// probabilities does. A quadratic falls off faster than most slopes do, hence the first share; where it explains most values well, the shares go up to the
/// second.
const EXPLAINED: (f64, f64) = (0.7, 0.98);

/// A value is not explained when it is less deep than expected by so many times the share by which the median value differs, among so many at the least.
/// With so many times that, it is certain to belong elsewhere.
const UNLIKELY: f64 = 8.0;
const MANY: usize = 6;
const CERTAIN: f64 = 16.0;

/// … and by so many nats at the least, and standard deviations of the noise: between two peaks, both of them add to a value.
const EXCESS: f64 = 3.0;
const SURE: f64 = 4.0;

/// Values that are explained by less than this share, or half of what is left up to one, may be on a slope of what a climb goes up to. So many of those
/// below it, per parameter and one, tell it where the slope goes: the nearest.
const SLOPE: f64 = 0.9;
const NEAREST: usize = 2;

/// A value is between two others if it sees them in opposite directions: under an angle with a smaller cosine.
const OPPOSITE: f64 = -0.7;

/// A climb is given up when so many points, per parameter and one, have not found a better value.
const PATIENCE: f64 = 2.0;

/// How far around its best value a climb reaches, relative to the distance of the nearest peak.
const REACH: f64 = 0.5;

/// The standard deviations of `log Z`, by the processes of the peaks that are found, below which one, two and five of eight points go up to a further peak.
pub(crate) const KNOWN: [f64; 3] = [0.1, 0.02, 0.001];

/// Half of the points go on with a climb that rises, when the values have grown by this factor since a first peak was found: a peak that was overlooked is
/// a worse error than any that is left there.
pub(super) const SEASONED: f64 = 1.5;
const HALF: u64 = 4;

/// After so many climbs that found nothing new, further ones do not keep a run from arriving.
const FRUITLESS: usize = 2;

/// After as many answers without a valley as there are parameters, and no fewer or more than these, values that no peak explains are taken to belong to
/// those that were found.
const REASSURED: (usize, usize) = (2, 4);

/// So many values that no peak explains are asked about at a time; once the peaks have arrived, as many as answers are missing.
const QUESTIONS: usize = 2;

/// Where no value suggests another peak, points that would go up to one look elsewhere only once the others are known to less than this. Chosen by
/// measurement: until then more is learnt from values of the peaks that were found.
const NOTHING_LEFT: f64 = 1e-4;

/// Where there are several peaks, so many values per parameter and one have to lie where none of them matters, since the newest was found, before the
/// run has arrived.
const EXPLORED: usize = 1;

/// … or so many times as many values in all: where peaks fill the prior no value lies away from them, and one in eight points looks elsewhere all the same.
const ANYWHERE: usize = 16;

/// Whether values since the newest of several peaks was found are enough to suppose that there are no more: so many `away` from the peaks, so many in `all`.
pub(crate) fn explored(away: usize, all: usize, dim: usize) -> bool {
    let enough = EXPLORED * (dim + 1);
    away >= enough || all >= ANYWHERE * enough
}

/// How many of eight points go up to a further peak: the better the others are known, the more, and half of them where one is known to exist
/// (`pressing`). `grown` is by what factor the values have grown since the first was found. Where there are `several` peaks there may well be more.
pub(crate) fn eighths(
    sd: f64,
    grown: f64,
    climb: Option<&ClimbRecipe>,
    (pressing, several): (bool, bool),
    dim: usize,
) -> u64 {
    let known = match sd {
        sd if climb.is_none() && !several && sd > NOTHING_LEFT => 0,
        sd if sd > KNOWN[0] => 0,
        sd if sd > KNOWN[1] => 1,
        sd if sd > KNOWN[2] => 2,
        _ => 5,
    };
    let rises = climb.is_some_and(|c| c.risen > typical_depth(dim));
    if pressing || rises && grown >= SEASONED { known.max(HALF) } else { known }
}

/// A climb under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClimbRecipe {
    /// The numbers of its values, the best first.
    pub(crate) members: Vec<usize>,
    /// About how many points it has had since its best value.
    spent: f64,
    /// By how many nats its best value has risen since it began.
    #[serde(default)]
    risen: f64,
    /// Whether it began with a value that is known to belong to none of the peaks.
    #[serde(default)]
    pub(crate) apart: bool,
    pub(crate) peak: PeakRecipe,
}

impl ClimbRecipe {
    pub(crate) fn new(step: Step, peak: PeakRecipe) -> Self {
        let Step { members, spent, risen, apart } = step;
        Self { members, spent, risen, apart, peak }
    }

    /// Whether it has risen by as much as is left up to the best of all values, or is as high as a posterior is.
    pub(crate) fn half_way(&self, known: &Known) -> bool {
        let left = self.members.first().map_or(f64::INFINITY, |&best| known.depth[best]);
        left <= self.risen.max(typical_depth(known.dim()))
    }
}

/// Where a climb is.
pub(crate) struct Step {
    /// The numbers of its values, the best first.
    pub(crate) members: Vec<usize>,
    spent: f64,
    risen: f64,
    apart: bool,
}

/// What climbs have left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trail {
    /// Values at which climbs were given up, and how far around them none begins any more.
    given_up: Vec<(usize, f64)>,
    /// How many climbs have ended without a peak since the last that found one.
    #[serde(default)]
    fruitless: usize,
    /// Whether values belong to the peaks that were found.
    #[serde(default, skip_serializing_if = "Questions::is_empty")]
    pub(crate) questions: Questions,
}

impl Trail {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether climbs may well find something, as far as earlier ones tell.
    pub(crate) fn promising(&self) -> bool {
        self.fruitless < FRUITLESS
    }

    /// How many answers without a valley are missing until values that no peak explains are supposed to belong to those that were found.
    pub(crate) fn missing(&self, known: &Known, several: bool) -> usize {
        let enough = known.dim().clamp(REASSURED.0, REASSURED.1);
        enough.saturating_sub(self.fruitless + self.questions.reassuring(known, several))
    }

    /// A climb has found a peak.
    pub(crate) fn rewarded(&mut self) {
        self.fruitless = 0;
        self.questions = Questions::default();
    }

    fn passes(&self, known: &Known, i: usize) -> bool {
        let at = known.nodes.row(i);
        self.given_up.iter().any(|&(g, r)| g == i || g < known.len() && square_distance(known.nodes.row(g), at) < r * r)
    }
}

/// What has been found so far: the peaks, and the numbers of the values that belong to each.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) peaks: &'a [Peak],
    pub(crate) own: &'a [Vec<usize>],
}

/// Values that no peak explains, the highest first.
#[derive(Default)]
struct Open {
    values: Vec<usize>,
    /// Those of them that cannot belong to the peak, so well are others explained.
    sure: Vec<usize>,
    /// Values that are explained by little.
    slopes: Vec<usize>,
}

impl Open {
    fn new(known: &Known, around: Around<'_>) -> Result<Self> {
        let mut open = Self::default();
        let charts: Vec<Option<Chart>> = around.peaks.iter().map(Chart::new).collect();
        let mut left = Vec::new();
        for (k, (peak, own)) in around.peaks.iter().zip(around.own).enumerate() {
            let values: Vec<usize> = peak.known.left_out(peak.active()).iter().map(|&i| own[i]).collect();
            let mut shares = shares(known, &values, peak, charts[k].as_ref())?;
            for (j, other) in around.peaks.iter().enumerate().filter(|(j, _)| *j != k) {
                let theirs = self::shares(known, &values, other, charts[j].as_ref())?;
                shares.iter_mut().zip(theirs).for_each(|(own, other)| own.extend(other));
            }
            left.push((values, shares));
        }
        let all = median_deviation(left.iter().flat_map(|l| &l.1));
        let mut inner = Vec::new();
        for (k, (peak, (values, shares))) in around.peaks.iter().zip(left).enumerate() {
            let off = if shares.len() < MANY { all } else { median_deviation(&shares) };
            if off.is_finite() {
                inner.push((k, off));
            }
            let explained = (1.0 - UNLIKELY * off).clamp(EXPLAINED.0, EXPLAINED.1);
            let slope = SLOPE.max(0.5 * (1.0 + explained));
            for (i, shares) in values.into_iter().zip(shares) {
                // What is deeper than another peak expects is not explained by it.
                let others = shares[2..].iter().filter(|s| **s < 2.0 - explained);
                let share = shares[..2].iter().chain(others).copied().fold(0.0, f64::max);
                let excess = (peak.known.best - known.best + known.depth[i]) * (1.0 / share - 1.0);
                if share < explained && (share < EXPLAINED.0 || excess > least_excess(known, i, peak)) {
                    open.values.push(i);
                    if share < 1.0 - CERTAIN * off {
                        open.sure.push(i);
                    }
                } else if share < slope {
                    open.slopes.push(i);
                }
            }
        }
        // The process goes through the values that it knows, whatever they are: these are compared with what the others expect. Where it is not known how well
        // values are explained, that says nothing.
        for (k, off) in inner {
            let (peak, own) = (&around.peaks[k], &around.own[k]);
            for (i, share, chart) in left_out_one_by_one(peak, charts[k].as_ref()) {
                let share = chart.max(share);
                let excess = peak.known.depth[i] * (1.0 / share - 1.0);
                if share < 1.0 - CERTAIN * off && excess > least_excess(known, own[i], peak) {
                    open.values.push(own[i]);
                    open.sure.push(own[i]);
                }
            }
        }
        open.values.sort_by(|&a, &b| known.depth[a].total_cmp(&known.depth[b]).then(a.cmp(&b)));
        Ok(open)
    }

    /// Whether a value belongs to one of so many peaks.
    fn link(&self, known: &Known, i: usize, questions: &Questions, peaks: usize) -> Link {
        if self.sure.contains(&i) { Link::Apart } else { questions.link(known, i, peaks) }
    }
}

/// By how many nats a value has to be higher than a peak expects, to count.
fn least_excess(known: &Known, i: usize, peak: &Peak) -> f64 {
    EXCESS + SURE * known.noise(i).hypot(peak.process.hyper.noise)
}

/// How deep values are, relative to how deep the process of a peak expects them, and a normal distribution in probabilities.
fn shares(known: &Known, values: &[usize], peak: &Peak, chart: Option<&Chart>) -> Result<Vec<Vec<f64>>> {
    let flat: Vec<f64> = values.iter().flat_map(|&i| peak.view.enter(known.nodes.row(i))).collect();
    let expected = peak.process.mean(&Points::new(known.dim(), flat)?);
    let lower = peak.known.best - known.best;
    let share = |(&i, m): (&usize, f64)| {
        let one = if m < 0.0 { (known.depth[i] + lower) / -m } else { f64::INFINITY };
        vec![one, chart.map_or(0.0, |c| c.share(known, i))]
    };
    Ok(values.iter().zip(expected).map(share).collect())
}

/// The values that the process of a peak knows below where most of the posterior is: their numbers, how deep they are relative to how deep all others expect
/// them, and to how deep a normal distribution in probabilities does.
fn left_out_one_by_one(peak: &Peak, chart: Option<&Chart>) -> Vec<(usize, f64, f64)> {
    let Peak { process, known, .. } = peak;
    let precision = process.factor.inverse_diagonal();
    let expected = process.data.targets.iter().zip(&process.weights).zip(precision).map(|((t, w), p)| t - w / p);
    let near = known.near();
    let below = near.numbers().zip(expected).filter(|v| known.depth[v.0] > high(known.dim()));
    let share = |(i, m): (usize, f64)| {
        let share = if m < 0.0 { known.depth[i] / -m } else { f64::INFINITY };
        (i, share, chart.map_or(0.0, |c| c.share(known, i)))
    };
    below.map(share).collect()
}

/// By what share the median value is less or more deep than expected; infinite if there are few.
fn median_deviation<'a>(shares: impl IntoIterator<Item = &'a Vec<f64>>) -> f64 {
    let least = |shares: &Vec<f64>| shares.iter().map(|s| (s - 1.0).abs()).fold(f64::INFINITY, f64::min);
    let mut off: Vec<f64> = shares.into_iter().map(least).collect();
    if off.len() < MANY {
        return f64::INFINITY;
    }
    off.sort_by(f64::total_cmp);
    off[off.len() / 2]
}

/// Asks about values that no peak explains: whether they belong to one all the same. The highest that nothing was asked about and the highest that has had an
/// answer take turns: otherwise higher values that turn up would leave all others unknown.
pub(crate) fn ask(known: &Known, around: Around<'_>, trail: &mut Trail) -> Result<()> {
    let arrived = around.peaks.iter().all(|peak| peak.recipe.arrived);
    let missing = if arrived { trail.missing(known, around.peaks.len() > 1) } else { 0 };
    let at_once = missing.max(QUESTIONS);
    let open = Open::new(known, around)?;
    let unknown = |i: &&usize| {
        !trail.passes(known, **i) && open.link(known, **i, &trail.questions, around.peaks.len()) == Link::Unknown
    };
    let values = open.values.iter().filter(unknown).copied();
    let (begun, new): (Vec<usize>, Vec<usize>) = values.partition(|&i| trail.questions.begun(i));
    for i in by_turns(&new, &begun) {
        if trail.questions.open(known.len()).count() >= at_once {
            break;
        }
        trail.questions.ask(i, known, around.peaks);
    }
    Ok(())
}

/// One of these and one of those, until neither has any left.
fn by_turns(these: &[usize], those: &[usize]) -> Vec<usize> {
    (0..these.len().max(those.len())).flat_map(|k| [these.get(k), those.get(k)]).flatten().copied().collect()
}

/// Where a climb goes on, or a new one begins. It is among the values that no peak explains. It begins with the highest that no climb has passed: of those
/// that are known to belong to another peak if there are any, and of those that are known to belong to one that was found only if there are no others.
///
/// `newest` is how many values of the climb have come since it was last looked at.
pub(crate) fn next(
    known: &Known,
    around: Around<'_>,
    last: Option<&ClimbRecipe>,
    newest: f64,
    trail: &mut Trail,
) -> Result<Option<Step>> {
    let open = Open::new(known, around)?;
    let mut slopes = open.slopes.clone();
    let before = last.and_then(|last| last.members.first().map(|&best| (last, best)));
    loop {
        let link = |i: usize| open.link(known, i, &trail.questions, around.peaks.len());
        let mut free: Vec<(usize, Link)> = open.values.iter().map(|&i| (i, link(i))).collect();
        free.retain(|v| !trail.passes(known, v.0));
        let highest = |wanted: &dyn Fn(Link) -> bool| free.iter().find(|v| wanted(v.1)).map(|v| v.0);
        let goes_on =
            highest(&|l| l != Link::Joined).filter(|&i| before.is_some_and(|b| known.depth[i] <= known.depth[b.1]));
        let root =
            goes_on.or(highest(&|l| l == Link::Apart)).or(highest(&|l| l == Link::Unknown)).or(highest(&|_| true));
        if let Some((last, _)) = before
            && goes_on.is_none()
            && last.apart
        {
            trail.fruitless += 1;
        }
        let Some(root) = root else { return Ok(None) };
        let (spent, risen) = match before {
            Some((last, best)) if best == root => (last.spent + newest, last.risen),
            Some((last, best)) if goes_on.is_some() => (0.0, last.risen + known.depth[best] - known.depth[root]),
            _ => (0.0, 0.0),
        };
        // What is as high as a posterior is cannot be left alone, and a top that is far below may be.
        let depth = known.depth[root];
        let low = goes_on.is_some() && last.is_some_and(|l| l.peak.blurred) && depth > typical_depth(known.dim());
        if depth <= high(known.dim()) || spent < PATIENCE * (known.dim() + 1) as f64 && !low {
            let link = link(root);
            let apart = link == Link::Apart || goes_on.is_some() && last.is_some_and(|l| l.apart);
            let with = |v: &&(usize, Link)| link == Link::Joined || v.1 != Link::Joined;
            let lower = |v: &&(usize, Link)| known.depth[v.0] >= known.depth[root];
            let mut members: Vec<usize> = free.iter().filter(with).filter(lower).map(|v| v.0).collect();
            slopes.extend(free.iter().filter(|v| !with(v)).map(|v| v.0));
            members.extend(nearest(known, slopes, root));
            members.retain(|&i| !valley_between(known, i, root));
            members.sort_by(|&a, &b| known.depth[a].total_cmp(&known.depth[b]).then(a.cmp(&b)));
            return Ok(Some(Step { members, spent, risen, apart }));
        }
        let at = known.nodes.row(root);
        let distance = |p: &Peak| square_distance(&p.recipe.posterior.centre, at);
        let reach = REACH * around.peaks.iter().map(distance).fold(f64::INFINITY, f64::min).sqrt();
        trail.given_up.push((root, reach));
    }
}

/// Whether a value that is lower than both lies between two of them.
fn valley_between(known: &Known, low: usize, root: usize) -> bool {
    let (a, b) = (known.nodes.row(low), known.nodes.row(root));
    let length2 = square_distance(a, b);
    (0..known.len()).any(|k| {
        let at = known.nodes.row(k);
        let (to_a, to_b) = (square_distance(a, at), square_distance(b, at));
        // The cosine of the angle at which the two are seen.
        let cosine = 0.5 * (to_a + to_b - length2) / (to_a * to_b).sqrt();
        known.depth[k] > known.depth[low] && cosine < OPPOSITE
    })
}

/// Those of some values that are lower than the `root` and nearest to it.
fn nearest(known: &Known, mut some: Vec<usize>, root: usize) -> Vec<usize> {
    let at = known.nodes.row(root);
    let distance = |i: usize| square_distance(known.nodes.row(i), at);
    some.retain(|&i| known.depth[i] > known.depth[root]);
    some.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    some.truncate(NEAREST * (known.dim() + 1));
    some
}
