//! Draws from the measure: what a batch costs when nothing is chosen.

use crate::{
    belief::surrogate::Surrogate,
    choose::select::{
        Rule, Search, Selection,
        climb::{Climb, draw},
    },
    error::Result,
    points::Points,
};

/// Draws that may coincide with something taken before a space-filling point is used instead.
const ATTEMPTS: usize = 100;

/// The rule.
#[derive(Debug)]
pub(super) struct Random;

impl Rule for Random {
    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        let mut climb = Climb::new(belief, pending, search)?;
        for _ in 0..n {
            let mut stream = climb.stream(5);
            let free = (0..ATTEMPTS).map(|_| draw(belief, &mut stream)).find(|x| climb.is_free(x));
            let point = match free {
                Some(x) => x,
                None => climb.fall_back()?,
            };
            climb.take(&point)?;
        }
        climb.finish()
    }
}
