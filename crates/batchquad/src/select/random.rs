//! Draws from the measure: what a batch costs when nothing is chosen.

use crate::{
    error::Result,
    points::Points,
    select::{
        Search, Selection,
        climb::{Climb, draw},
    },
    surrogate::Surrogate,
};

/// Draws that may coincide with something taken before a space-filling point is used instead.
const ATTEMPTS: usize = 100;

pub(crate) fn select(belief: &Surrogate, pending: &Points, n: usize, search: Search) -> Result<Selection> {
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
