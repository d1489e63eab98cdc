//! Naive top-n, the strawman: the highest point, and then the highest points next to it.

use crate::{
    belief::surrogate::Surrogate,
    choose::{
        acquire::Acquisition,
        select::{MIN_SEPARATION, Rule, Search, Selection, climb::Climb},
    },
    error::Result,
    numeric::jets::Order,
    points::Points,
};

/// Candidates around the maximum for each further point.
const CANDIDATES: usize = 64;

/// The rule.
#[derive(Debug)]
pub(super) struct NaiveTop;

impl Rule for NaiveTop {
    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        let acquisition = search.criterion.of(belief)?;
        let mut climb = Climb::new(belief, pending, search)?;
        let summit = climb.choose(belief, &*acquisition)?;
        let mut reach = 2.0 * MIN_SEPARATION;
        for _ in 1..n {
            // The neighbourhood grows until it has room for another point.
            let point = loop {
                let mut stream = climb.stream(4);
                let lengthscales = climb.lengthscales();
                let around: Vec<Vec<f64>> = (0..CANDIDATES)
                    .map(|_| summit.iter().zip(lengthscales).map(|(x, l)| x + reach * l * stream.normal()).collect())
                    .filter(|x: &Vec<f64>| climb.is_free(x))
                    .collect();
                if let Some(best) = highest(&*acquisition, around)? {
                    break best;
                }
                reach *= 2.0;
            };
            climb.take(&point)?;
        }
        climb.finish()
    }
}

fn highest(acquisition: &dyn Acquisition, candidates: Vec<Vec<f64>>) -> Result<Option<Vec<f64>>> {
    if candidates.is_empty() {
        return Ok(None);
    }
    let heights = acquisition.log_jets(&Points::from_rows(&candidates)?, Order::Value)?.value;
    let ranked = candidates.into_iter().zip(heights).reduce(|a, b| if b.1 > a.1 { b } else { a });
    Ok(ranked.map(|(x, _)| x))
}
