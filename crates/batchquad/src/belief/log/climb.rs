//! The way to other peaks: values that the peaks found so far do not explain, and where the next climb begins. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{
    known::{Known, typical_depth},
    peak::{Peak, PeakRecipe},
};
use crate::{
    error::Result,
    points::{Points, square_distance},
};

/// A value is explained when it is at least so deep, relative to the depth at which the process of its peak expects it. A quadratic falls off faster than
/// most slopes do, hence the share.
const EXPLAINED: f64 = 0.7;

/// Values that are explained by less than this share may be on a slope of what a climb goes up to. So many of those below it, per parameter and one, tell
/// it where the slope goes: the nearest.
const SLOPE: f64 = 0.9;
const NEAREST: usize = 2;

/// A climb is given up when so many points, per parameter and one, have not found a better value.
const PATIENCE: f64 = 2.0;

/// How far around its best value a climb reaches, relative to the distance of the nearest peak.
const REACH: f64 = 0.5;

/// The standard deviations of `log Z`, by the processes of the peaks that are found, below which one, two and five of eight points go up to a further peak.
const KNOWN: [f64; 3] = [0.1, 0.02, 0.001];

/// Half of the points go on with a climb that rises, when the values have grown by this factor since a first peak was found: a peak that was overlooked is
/// a worse error than any that is left there.
const SEASONED: f64 = 1.5;
const HALF: u64 = 4;

/// How many of eight points go up to a further peak: the better the others are known, the more. `grown` is by what factor the values have grown since
/// the first was found.
pub(crate) fn eighths(sd: f64, grown: f64, climb: Option<&ClimbRecipe>, dim: usize) -> u64 {
    let known = match sd {
        sd if sd > KNOWN[0] => 0,
        sd if sd > KNOWN[1] => 1,
        sd if sd > KNOWN[2] => 2,
        _ => 5,
    };
    let rises = climb.is_some_and(|c| c.risen > typical_depth(dim));
    if rises && grown >= SEASONED { known.max(HALF) } else { known }
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
    pub(crate) peak: PeakRecipe,
}

impl ClimbRecipe {
    pub(crate) fn new(step: Step, peak: PeakRecipe) -> Self {
        let Step { members, spent, risen } = step;
        Self { members, spent, risen, peak }
    }
}

/// Where a climb is.
pub(crate) struct Step {
    /// The numbers of its values, the best first.
    pub(crate) members: Vec<usize>,
    spent: f64,
    risen: f64,
}

/// What climbs have left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trail {
    /// Values at which climbs were given up, and how far around them none begins any more.
    given_up: Vec<(usize, f64)>,
}

impl Trail {
    pub(crate) fn is_empty(&self) -> bool {
        self.given_up.is_empty()
    }

    fn passes(&self, known: &Known, i: usize) -> bool {
        let at = known.nodes.row(i);
        self.given_up.iter().any(|&(g, r)| g == i || g < known.len() && square_distance(known.nodes.row(g), at) < r * r)
    }
}

/// Where a climb goes on, or a new one begins. It is among the values that no peak explains
/// and begins with the highest that no climb has passed.
///
/// `own` are the numbers of the values that belong to each peak; `newest` is how many values of the climb have come since it was last looked at.
pub(crate) fn next(
    known: &Known,
    (peaks, own): (&[Peak], &[Vec<usize>]),
    last: Option<&ClimbRecipe>,
    newest: f64,
    trail: &mut Trail,
) -> Result<Option<Step>> {
    let mut open = Vec::new();
    let mut slopes = Vec::new();
    for (peak, own) in peaks.iter().zip(own) {
        let left = peak.known.left_out(peak.active());
        let flat: Vec<f64> = left.iter().flat_map(|&i| peak.view.enter(peak.known.nodes.row(i))).collect();
        let expected = peak.process.mean(&Points::new(known.dim(), flat)?);
        for (&i, m) in left.iter().zip(expected) {
            let above = |share: f64| peak.known.depth[i] < share * -m;
            if above(EXPLAINED) {
                open.push(own[i]);
            } else if above(SLOPE) {
                slopes.push(own[i]);
            }
        }
    }
    open.sort_by(|&a, &b| known.depth[a].total_cmp(&known.depth[b]).then(a.cmp(&b)));
    loop {
        open.retain(|&i| !trail.passes(known, i));
        let Some(&root) = open.first() else { return Ok(None) };
        let (spent, risen) = match last.and_then(|last| last.members.first().map(|&best| (last, best))) {
            Some((last, best)) if best == root => (last.spent + newest, last.risen),
            Some((last, best)) if known.depth[root] < known.depth[best] => {
                (0.0, last.risen + known.depth[best] - known.depth[root])
            }
            _ => (0.0, 0.0),
        };
        if spent < PATIENCE * (known.dim() + 1) as f64 {
            open.extend(around(known, slopes, root));
            open.sort_by(|&a, &b| known.depth[a].total_cmp(&known.depth[b]).then(a.cmp(&b)));
            return Ok(Some(Step { members: open, spent, risen }));
        }
        let at = known.nodes.row(root);
        let nearest =
            peaks.iter().map(|p| square_distance(&p.recipe.posterior.centre, at)).fold(f64::INFINITY, f64::min);
        trail.given_up.push((root, REACH * nearest.sqrt()));
    }
}

/// Those of some values that are lower than the `root` and nearest to it.
fn around(known: &Known, mut some: Vec<usize>, root: usize) -> Vec<usize> {
    let at = known.nodes.row(root);
    let distance = |i: usize| square_distance(known.nodes.row(i), at);
    some.retain(|&i| known.depth[i] > known.depth[root]);
    some.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    some.truncate(NEAREST * (known.dim() + 1));
    some
}
