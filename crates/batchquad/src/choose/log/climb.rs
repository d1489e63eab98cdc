//! The way up to a peak that is not found. `MATH.md` §15.

use crate::{
    belief::log::{Peak, Search, resample},
    error::Result,
    numeric::{
        optim::{Ascent, Bounds, maximise},
        rng::{Purpose, Stream},
    },
    points::{Points, square_distance},
};

/// Half the widths of the boxes in which the surrogates' maxima are tried, in standard deviations of the best nodes.
const BOXES: [f64; 3] = [2.0, 0.5, 0.12];

/// How far from its best value a climb that knows nothing looks, relative to the nearest value of another peak, and how much nearer when all directions are
/// taken.
const HALF_WAY: f64 = 0.5;
const SHORTER: f64 = 0.5;

/// The way up to a peak that is not found: the maxima of its surrogates in boxes around the best node, then draws of the searching surrogate's posterior.
/// A climb with so few values that they do not even show where it is steep looks around the best of them.
pub(super) struct Climb<'a> {
    search: &'a Search,
    tops: std::vec::IntoIter<Vec<f64>>,
    stream: Stream,
    around: Option<Around>,
}

/// Points around a value, half as far from it as the nearest of other peaks, in directions that are orthogonal to each other.
struct Around {
    centre: Vec<f64>,
    radius: f64,
    /// Directions that were taken, since the first of which the others are orthogonal.
    taken: Vec<Vec<f64>>,
}

impl Around {
    fn next(&mut self, stream: &mut Stream) -> Vec<f64> {
        let d = self.centre.len();
        if self.taken.len() == d {
            self.taken.clear();
            self.radius *= SHORTER;
        }
        let mut direction = stream.normals(d);
        for other in &self.taken {
            let along: f64 = other.iter().zip(&direction).map(|(a, b)| a * b).sum();
            direction.iter_mut().zip(other).for_each(|(v, o)| *v -= along * o);
        }
        let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        direction.iter_mut().for_each(|v| *v /= length);
        let point = self.centre.iter().zip(&direction).map(|(c, v)| c + self.radius * v).collect();
        self.taken.push(direction);
        point
    }
}

impl<'a> Climb<'a> {
    /// None if the peak is found.
    pub(super) fn new(peak: &'a Peak, pending: &Points, seed: u64, asked: u64) -> Result<Option<Self>> {
        let Some(search) = &peak.search else { return Ok(None) };
        let mut tops = tops(peak, search, pending)?;
        if !tops.is_empty() {
            let first = asked as usize % tops.len();
            tops.rotate_left(first);
        }
        let stream = Stream::new(seed, Purpose::Select, asked << 8 | 1);
        Ok(Some(Self { search, tops: tops.into_iter(), stream, around: None }))
    }

    /// The way up to a further peak, while others have most of the nodes.
    pub(super) fn further(
        peak: &'a Peak,
        nodes: &Points,
        pending: &Points,
        seed: u64,
        asked: u64,
    ) -> Result<Option<Self>> {
        let climb = Self::new(peak, pending, seed, asked)?;
        let own = &peak.known;
        if own.len() >= own.dim() + 2 {
            return Ok(climb);
        }
        let centre = own.best_node().to_vec();
        let distance = |u: &[f64]| square_distance(u, &centre);
        let foreign = |u: &&[f64]| own.nodes.rows().all(|o| square_distance(o, u) > 0.0);
        let nearest = nodes.rows().filter(foreign).map(distance).fold(f64::INFINITY, f64::min).sqrt();
        let around = nearest.is_finite().then(|| Around { centre, radius: HALF_WAY * nearest, taken: Vec::new() });
        Ok(climb.map(|climb| Self { around, ..climb }))
    }

    pub(super) fn next(&mut self) -> Vec<f64> {
        if let Some(around) = &mut self.around {
            return around.next(&mut self.stream);
        }
        match self.tops.next() {
            Some(top) => top,
            None => self.draw(),
        }
    }

    pub(super) fn draw(&mut self) -> Vec<f64> {
        let Search { view, integral, .. } = self.search;
        let drawn = resample(&integral.weights, 1, self.stream.uniform());
        view.leave(integral.points.row(drawn[0]))
    }
}

/// Where the surrogates expect the most within smaller and smaller boxes around the best node: the smaller, the more they can be believed.
fn tops(peak: &Peak, search: &Search, pending: &Points) -> Result<Vec<Vec<f64>>> {
    let Search { view, process, .. } = search;
    let waiting: Vec<Vec<f64>> = pending.rows().map(|u| view.enter(u)).collect();
    let known: Vec<Vec<f64>> = peak.known.nodes.rows().map(|u| view.enter(u)).collect();
    let mut tops: Vec<Vec<f64>> = Vec::new();
    for r in BOXES {
        let own = |x: &[f64]| {
            let (value, gradient, _) = peak.process.jet(&peak.view.enter(&view.leave(x)), false);
            (value, peak.view.pull(&gradient, view), Vec::new())
        };
        let found = [summit(|x| process.jet(x, false), process.dim(), r)?, summit(own, process.dim(), r)?];
        for x in found.into_iter().flatten() {
            let near = |t: &Vec<f64>| square_distance(t, &x) < (0.2 * r).powi(2);
            if !tops.iter().chain(&waiting).any(near) && !known.iter().any(|t| square_distance(t, &x) < 1e-6) {
                tops.push(x);
            }
        }
    }
    Ok(tops.iter().map(|x| view.leave(x)).collect())
}

/// Where a function with its gradient is largest in the box `[−r, r]ᵈ`, climbing from its middle.
fn summit(jet: impl Fn(&[f64]) -> (f64, Vec<f64>, Vec<f64>), d: usize, r: f64) -> Result<Option<Vec<f64>>> {
    let ascent = Ascent { max_evaluations: 60, gradient_tolerance: 1e-4, value_tolerance: 1e-6, max_step: r };
    let found = maximise(&[vec![0.0; d]], &Bounds::cube(d, -r, r)?, ascent, |trials| {
        Ok(trials.iter().map(|x| jet(x)).map(|(value, gradient, _)| (value, gradient)).collect())
    })?;
    Ok(found.into_iter().next().filter(|s| s.value.is_finite()).map(|s| s.x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_that_knows_nothing_looks_around_its_value_in_all_directions() {
        let centre = vec![1.0, -2.0, 0.5];
        let mut around = Around { centre: centre.clone(), radius: 0.4, taken: Vec::new() };
        let mut stream = Stream::new(7, Purpose::Select, 1);
        let steps: Vec<Vec<f64>> =
            (0..6).map(|_| around.next(&mut stream).iter().zip(&centre).map(|(p, c)| p - c).collect()).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for (round, radius) in [(0, 0.4), (1, 0.2)] {
            let round = &steps[3 * round..3 * round + 3];
            for (i, a) in round.iter().enumerate() {
                assert!((dot(a, a).sqrt() - radius).abs() < 1e-12);
                assert!(round[..i].iter().all(|b| dot(a, b).abs() < 1e-12));
            }
        }
    }
}
