//! The way to a peak that is not found: what all values say around the best of them. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{
    cells::Cell,
    fit::{Limits, fit},
    integral::{Integral, Target, adapt, integrate},
    known::{Known, typical_depth},
    own::{Own, Straight},
    process::{Data, Hyper, Process},
    view::{Region, View},
};
use crate::error::{Error, Result};

/// Draws that show where to search, and whether a peak is found.
pub(super) const FEW_DRAWS: usize = 2_048;

/// What is looked at while a peak is not found: all values, around the best nodes, compressed where they are far below.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub(crate) view: View,
    pub(crate) process: Process,
    pub(crate) integral: Integral,
}

/// What is searched with while nothing is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SearchRecipe {
    region: Region,
    /// The depth beyond which values are compressed; none are where there is none.
    limit: Option<f64>,
    pub(super) hyper: Hyper,
    /// Whether in the parameters' own coordinates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) own: bool,
}

/// A fit of all values around the best nodes, compressed as much as the marginal likelihood asks for.
pub(super) fn search_recipe(known: &Known, warm: Option<&Hyper>, thorough: bool) -> Result<SearchRecipe> {
    let region = known.elite();
    let view = View::made(region.clone())?;
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
    let own = Own::new(&known.scales, &view).map(Straight::Own);
    let bends = if own.is_some() { vec![None, own] } else { vec![None] };
    for (limit, bend) in limits.iter().flat_map(|limit| bends.iter().map(move |bend| (*limit, bend))) {
        let (data, jacobian) = known.compressed(&view, limit, true)?;
        let data = Data { bend: bend.clone(), ..data };
        let fitted = match fit(&data, warm, thorough, Limits::of_noise(known.noise_cap())) {
            Err(Error::Numerical { .. } | Error::NotPositiveDefinite { .. }) => continue,
            fitted => fitted?,
        };
        let objective = fitted.objective + fitted.share * jacobian;
        if best.as_ref().is_none_or(|b| objective > b.0) {
            let limit = Some(limit).filter(|l| l.is_finite());
            best = Some((
                objective,
                SearchRecipe { region: region.clone(), limit, hyper: fitted.process.hyper, own: bend.is_some() },
            ));
        }
    }
    best.map(|b| b.1).ok_or_else(|| Error::Numerical {
        what: "search for hyperparameters".into(),
        reason: "the values could not be fitted under any compression".into(),
    })
}

pub(super) fn make_search(known: &Known, recipe: &SearchRecipe, cell: Option<Cell<'_>>, seed: u64) -> Result<Search> {
    let view = View::made(recipe.region.clone())?;
    let limit = recipe.limit.unwrap_or(f64::INFINITY);
    let bend = if recipe.own { Own::new(&known.scales, &view).map(Straight::Own) } else { None };
    let data = Data { bend, ..known.compressed(&view, limit, true)?.0 };
    let process = Process::new(recipe.hyper.clone(), data)?;
    let aim = Target { process: &process, view: &view, ceiling: known.ceiling(&view), support: None, cell };
    let integral = integrate(&aim, &adapt(&aim, &known.starts(&view), None, seed)?, FEW_DRAWS, seed)?;
    Ok(Search { view, process, integral })
}
