//! Bounded quasi-Newton ascent of many starts at once.
//!
//! All starts advance together: one call of the objective serves every start that is still climbing, so that work over
//! the data is matrix–matrix work ([`MATH.md` §5](crate::math).4). Each start has a dense BFGS approximation of its own
//! (dimensions here are small) and knows nothing of the others, so its path does not depend on how many there are.

use crate::{
    error::{Error, Result},
    interrupt::check,
};

/// A box `low ≤ x ≤ high`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Bounds {
    /// The box between two corners; a side may be infinite.
    ///
    /// # Errors
    /// [`Error::Length`] for corners of different dimension, [`Error::Invalid`] unless `low < high` everywhere.
    pub fn new(low: Vec<f64>, high: Vec<f64>) -> Result<Self> {
        if low.len() != high.len() {
            return Err(Error::length("upper corner of the bounds", low.len(), high.len()));
        }
        if let Some((l, h)) =
            low.iter().zip(&high).find(|(l, h)| !matches!(l.partial_cmp(h), Some(std::cmp::Ordering::Less)))
        {
            return Err(Error::invalid("bounds", (*l, *h), "low < high"));
        }
        Ok(Self { low, high })
    }

    /// The cube `[low, high]ᵈ`.
    ///
    /// # Errors
    /// As [`Bounds::new`].
    pub fn cube(dim: usize, low: f64, high: f64) -> Result<Self> {
        Self::new(vec![low; dim], vec![high; dim])
    }

    fn project(&self, x: &mut [f64]) {
        for ((x, low), high) in x.iter_mut().zip(&self.low).zip(&self.high) {
            *x = x.max(*low).min(*high);
        }
    }
}

/// When to stop, and how far one step may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ascent {
    /// Most evaluations of the objective for one start.
    pub max_evaluations: usize,
    /// A start has converged when no free component of the gradient exceeds this.
    pub gradient_tolerance: f64,
    /// Stop when a step raises the objective by less than this.
    pub value_tolerance: f64,
    /// Longest step in the Euclidean norm.
    pub max_step: f64,
}

/// Where one start ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Summit {
    /// The point.
    pub x: Vec<f64>,
    /// The objective there; −∞ when the start itself had no finite value.
    pub value: f64,
    /// The gradient there.
    pub gradient: Vec<f64>,
    /// How many evaluations it took.
    pub evaluations: usize,
    /// Whether a tolerance was met (rather than the evaluations used up).
    pub converged: bool,
}

/// Climbs from every start to a local maximum within the bounds.
///
/// `objective` receives all trial points of one step and gives value and gradient for each, in order. A value that is
/// not finite counts as "too far": the step is shortened. Results are in the order of the starts.
///
/// # Errors
/// Whatever the objective reports; [`Error::Interrupted`].
pub fn maximise(
    starts: &[Vec<f64>],
    bounds: &Bounds,
    ascent: Ascent,
    objective: impl FnMut(&[Vec<f64>]) -> Result<Vec<(f64, Vec<f64>)>>,
) -> Result<Vec<Summit>> {
    race(starts, bounds, ascent, Heat { evaluations: usize::MAX, winners: usize::MAX }, objective)
}

/// Who goes on in a [`race`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat {
    /// So many evaluations every start has.
    pub evaluations: usize,
    /// So many of the highest go on after them.
    pub winners: usize,
}

/// As [`maximise`], but only the starts that are highest after a few evaluations are climbed to the top. The others end where they are.
///
/// # Errors
/// As [`maximise`].
pub fn race(
    starts: &[Vec<f64>],
    bounds: &Bounds,
    ascent: Ascent,
    heat: Heat,
    mut objective: impl FnMut(&[Vec<f64>]) -> Result<Vec<(f64, Vec<f64>)>>,
) -> Result<Vec<Summit>> {
    let mut climbers: Vec<Climber> = starts.iter().map(|x| Climber::new(x, bounds)).collect();
    for round in 0.. {
        if round == heat.evaluations {
            let mut order: Vec<usize> = (0..climbers.len()).collect();
            order.sort_by(|&a, &b| climbers[b].value.total_cmp(&climbers[a].value));
            order.into_iter().skip(heat.winners).for_each(|i| climbers[i].done = true);
        }
        let active: Vec<usize> = (0..climbers.len()).filter(|&i| !climbers[i].done).collect();
        if active.is_empty() {
            break;
        }
        check()?;
        let trials: Vec<Vec<f64>> = active.iter().map(|&i| climbers[i].trial.clone()).collect();
        let answers = objective(&trials)?;
        for (&i, (value, gradient)) in active.iter().zip(answers) {
            climbers[i].digest(value, gradient, bounds, ascent);
        }
    }
    Ok(climbers.into_iter().map(Climber::summit).collect())
}

struct Climber {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    /// Approximate inverse of minus the Hessian, row by row.
    inverse: Vec<f64>,
    /// Whether `inverse` carries curvature yet.
    curved: bool,
    direction: Vec<f64>,
    step: f64,
    trial: Vec<f64>,
    evaluations: usize,
    done: bool,
    converged: bool,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

impl Climber {
    fn new(start: &[f64], bounds: &Bounds) -> Self {
        let d = start.len();
        let mut x = start.to_vec();
        bounds.project(&mut x);
        Self {
            trial: x.clone(),
            x,
            value: f64::NEG_INFINITY,
            gradient: vec![0.0; d],
            inverse: identity(d),
            curved: false,
            direction: vec![0.0; d],
            step: 0.0,
            evaluations: 0,
            done: false,
            converged: false,
        }
    }

    fn summit(self) -> Summit {
        let Self { x, value, gradient, evaluations, converged, .. } = self;
        Summit { x, value, gradient, evaluations, converged }
    }

    fn digest(&mut self, value: f64, gradient: Vec<f64>, bounds: &Bounds, ascent: Ascent) {
        let first = self.evaluations == 0;
        self.evaluations += 1;
        let finite = value.is_finite() && gradient.iter().all(|g| g.is_finite());
        if first && !finite {
            self.done = true;
            return;
        }
        let moved: Vec<f64> = self.trial.iter().zip(&self.x).map(|(t, x)| t - x).collect();
        let promised = dot(&self.gradient, &moved);
        // Armijo's condition along the projected path.
        let climbs = finite && value >= self.value + 1e-4 * promised;
        if !first && !climbs {
            self.shorten(value, promised, bounds, ascent);
            return;
        }
        let gain = value - self.value;
        if !first {
            self.learn(&moved, &gradient);
        }
        self.x.clone_from(&self.trial);
        self.value = value;
        self.gradient = gradient;
        let slope = self.free_gradient(bounds).iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        if slope <= ascent.gradient_tolerance || (!first && gain <= ascent.value_tolerance) {
            self.converged = true;
            self.done = true;
        } else {
            self.aim(bounds, ascent);
        }
    }

    /// The gradient without the components that push against a bound.
    fn free_gradient(&self, bounds: &Bounds) -> Vec<f64> {
        (0..self.x.len())
            .map(|k| {
                let (x, g) = (self.x[k], self.gradient[k]);
                if (x <= bounds.low[k] && g < 0.0) || (x >= bounds.high[k] && g > 0.0) { 0.0 } else { g }
            })
            .collect()
    }

    /// A new direction: quasi-Newton in the free variables, steepest ascent where that does not climb.
    fn aim(&mut self, bounds: &Bounds, ascent: Ascent) {
        let d = self.x.len();
        let free = self.free_gradient(bounds);
        self.direction =
            (0..d).map(|i| if free[i] == 0.0 { 0.0 } else { dot(&self.inverse[i * d..(i + 1) * d], &free) }).collect();
        let norm = dot(&free, &free).sqrt();
        if dot(&self.direction, &free) <= 1e-10 * norm * dot(&self.direction, &self.direction).sqrt() {
            self.inverse = identity(d);
            self.curved = false;
            self.direction = free;
        }
        let length = dot(&self.direction, &self.direction).sqrt();
        // Before any curvature is known, a unit of gradient says nothing about distance: try a tenth of the longest
        // step.
        let longest = if self.curved { ascent.max_step } else { 0.1 * ascent.max_step };
        self.step = 1.0_f64.min(longest / length);
        self.try_step(bounds, ascent);
    }

    fn try_step(&mut self, bounds: &Bounds, ascent: Ascent) {
        self.trial = self.x.iter().zip(&self.direction).map(|(x, p)| x + self.step * p).collect();
        bounds.project(&mut self.trial);
        if self.evaluations >= ascent.max_evaluations {
            self.done = true;
        } else if self.trial == self.x {
            self.done = true;
            self.converged = true;
        }
    }

    /// A shorter step, from the parabola through what is known of this direction.
    fn shorten(&mut self, value: f64, promised: f64, bounds: &Bounds, ascent: Ascent) {
        let parabola = 0.5 * promised / (promised - (value - self.value));
        let factor = if parabola.is_finite() { parabola.clamp(0.1, 0.5) } else { 0.1 };
        self.step *= factor;
        self.try_step(bounds, ascent);
        // The promised gain of the shorter step is below what would count as progress.
        if factor * promised <= ascent.value_tolerance {
            self.converged = true;
            self.done = true;
        }
    }

    /// BFGS: `H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ`, `y = g_old − g_new`, `ρ = 1/(yᵀs)`, skipped where `yᵀs` is not
    /// positive.
    fn learn(&mut self, s: &[f64], gradient: &[f64]) {
        let d = s.len();
        let y: Vec<f64> = self.gradient.iter().zip(gradient).map(|(old, new)| old - new).collect();
        let ys = dot(&y, s);
        if ys <= 1e-10 * (dot(&y, &y) * dot(s, s)).sqrt() {
            return;
        }
        if !self.curved {
            let scale = ys / dot(&y, &y);
            self.inverse = identity(d).iter().map(|v| v * scale).collect();
            self.curved = true;
        }
        let hy: Vec<f64> = (0..d).map(|i| dot(&self.inverse[i * d..(i + 1) * d], &y)).collect();
        let c = (1.0 + dot(&y, &hy) / ys) / ys;
        for i in 0..d {
            for j in 0..d {
                self.inverse[i * d + j] += c * s[i] * s[j] - (hy[i] * s[j] + s[i] * hy[j]) / ys;
            }
        }
    }
}

fn identity(d: usize) -> Vec<f64> {
    (0..d * d).map(|i| if i / d == i % d { 1.0 } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIGHT: Ascent =
        Ascent { max_evaluations: 500, gradient_tolerance: 1e-9, value_tolerance: 1e-18, max_step: 2.0 };

    fn rosenbrock(x: &[f64]) -> (f64, Vec<f64>) {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        (-(a * a + 100.0 * b * b), vec![2.0 * a + 400.0 * b * x[0], -200.0 * b])
    }

    #[test]
    fn finds_the_top_of_a_curved_ridge_from_everywhere() {
        let starts = vec![vec![-1.2, 1.0], vec![3.0, 3.0], vec![0.0, -2.0], vec![1.0, 1.0]];
        let bounds = Bounds::cube(2, -5.0, 5.0).unwrap();
        let summits = maximise(&starts, &bounds, TIGHT, |xs| Ok(xs.iter().map(|x| rosenbrock(x)).collect())).unwrap();
        for s in summits {
            assert!((s.x[0] - 1.0).abs() < 1e-6 && (s.x[1] - 1.0).abs() < 1e-6, "{s:?}");
            assert!(s.evaluations < 100);
        }
    }

    #[test]
    fn stops_at_a_bound_that_is_in_the_way() {
        let bounds = Bounds::new(vec![-5.0, -5.0], vec![0.5, 5.0]).unwrap();
        let summits =
            maximise(&[vec![-1.0, 2.0]], &bounds, TIGHT, |xs| Ok(xs.iter().map(|x| rosenbrock(x)).collect())).unwrap();
        // On x₀ = ½ the best x₁ is ¼.
        assert!((summits[0].x[0] - 0.5).abs() < 1e-12 && (summits[0].x[1] - 0.25).abs() < 1e-7, "{summits:?}");
        assert!(summits[0].converged);
    }

    #[test]
    fn a_start_does_not_feel_the_others() {
        let starts: Vec<Vec<f64>> = (0..7).map(|i| vec![f64::from(i) - 3.0, 2.0]).collect();
        let bounds = Bounds::cube(2, -5.0, 5.0).unwrap();
        let f = |xs: &[Vec<f64>]| Ok(xs.iter().map(|x| rosenbrock(x)).collect());
        let together = maximise(&starts, &bounds, TIGHT, f).unwrap();
        for (start, summit) in starts.iter().zip(&together) {
            assert_eq!(&maximise(std::slice::from_ref(start), &bounds, TIGHT, f).unwrap()[0], summit);
        }
    }

    #[test]
    fn the_highest_go_on() {
        let starts = vec![vec![-2.0, -2.0], vec![0.9, 0.8], vec![0.5, 0.3]];
        let bounds = Bounds::cube(2, -5.0, 5.0).unwrap();
        let heat = Heat { evaluations: 2, winners: 2 };
        let f = |xs: &[Vec<f64>]| Ok(xs.iter().map(|x| rosenbrock(x)).collect());
        let raced = race(&starts, &bounds, TIGHT, heat, f).unwrap();
        let climbed = maximise(&starts, &bounds, TIGHT, f).unwrap();
        assert_eq!(raced[1..], climbed[1..]);
        assert!(raced[0].evaluations == 2 && !raced[0].converged && climbed[0].converged, "{raced:?}");
        assert!(rosenbrock(&raced[0].x).0 == raced[0].value && raced[0].value > rosenbrock(&starts[0]).0);
    }

    #[test]
    fn values_that_are_not_finite_shorten_the_step() {
        let f =
            |x: &f64| if *x > 1.0 { (f64::NAN, vec![f64::NAN]) } else { (-(x - 0.9).powi(2), vec![-2.0 * (x - 0.9)]) };
        let bounds = Bounds::cube(1, f64::NEG_INFINITY, f64::INFINITY).unwrap();
        let starts = [vec![-3.0], vec![2.0]];
        let s = maximise(&starts, &bounds, TIGHT, |xs| Ok(xs.iter().map(|x| f(&x[0])).collect())).unwrap();
        assert!((s[0].x[0] - 0.9).abs() < 1e-8);
        assert_eq!(s[1].value, f64::NEG_INFINITY);
        assert!(Bounds::cube(1, 1.0, 1.0).is_err() && Bounds::cube(1, f64::NAN, 1.0).is_err());
    }
}
