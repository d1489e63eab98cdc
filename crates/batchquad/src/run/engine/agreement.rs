//! Whether independent runs agree: `MATH.md` §14.

use serde::Serialize;

use super::Current;
use crate::numeric::normal::chi_square_tail;

/// Differences between runs of this size, in nats, are of no interest, however small the error bars: their variance is added to each.
const SLIGHT: f64 = 0.01;

/// Runs as far apart as they are would be seen with a smaller probability if their error bars were right: then they disagree.
const DISAGREE: f64 = 1e-3;

/// Independent runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// How many have begun.
    pub begun: usize,
    /// How many have a log Z and have arrived: those that can be compared.
    pub compared: usize,
    /// The mean of their log Z, each weighted by its precision.
    pub mean: f64,
    /// The standard deviation of that mean by the error bars.
    pub mean_sd: f64,
    /// The standard deviation of one run as the runs themselves show it, around their plain mean; zero for fewer than two.
    pub scatter: f64,
    /// `Σ (log Zₖ − mean)²/sdₖ²`, which is about `compared − 1` if the error bars are right.
    pub chi_square: f64,
    /// How many standard deviations the log Z of all values is from the mean.
    pub pooled_distance: f64,
    /// How probable so large a χ² or distance is if the error bars are right: the smaller of the two.
    pub p_value: f64,
}

impl Agreement {
    /// Of runs as each of them sees itself, beside `pooled`, log Z and its standard deviation from all values.
    pub(super) fn new(runs: &[Option<&Current>], pooled: (f64, f64)) -> Self {
        let arrived = runs.iter().flatten().filter(|run| has_arrived(run));
        let found = arrived.map(|run| (run.estimate.log_z, run.estimate.log_z_sd));
        let found: Vec<(f64, f64)> = found.filter(|(log_z, sd)| log_z.is_finite() && sd.is_finite()).collect();
        Self::of(runs.len(), &found, pooled)
    }

    fn of(begun: usize, found: &[(f64, f64)], pooled: (f64, f64)) -> Self {
        let n = found.len() as f64;
        let variance = |sd: f64| sd * sd + SLIGHT * SLIGHT;
        let precision: f64 = found.iter().map(|(_, sd)| variance(*sd).recip()).sum();
        let mean = found.iter().map(|(log_z, sd)| log_z / variance(*sd)).sum::<f64>() / precision;
        let chi_square = found.iter().map(|(log_z, sd)| (log_z - mean).powi(2) / variance(*sd)).sum();
        let plain = found.iter().map(|(log_z, _)| log_z).sum::<f64>() / n;
        let squares: f64 = found.iter().map(|(log_z, _)| (log_z - plain).powi(2)).sum();
        let (scatter, pooled_distance, p_value) = if found.len() < 2 {
            (0.0, 0.0, 1.0)
        } else {
            let distance = (pooled.0 - mean).abs() / (precision.recip() + pooled.1.powi(2)).sqrt();
            let p = chi_square_tail(chi_square, found.len() - 1).min(chi_square_tail(distance * distance, 1));
            ((squares / (n - 1.0)).sqrt(), distance, p)
        };
        let mean_sd = precision.recip().sqrt();
        Self { begun, compared: found.len(), mean, mean_sd, scatter, chi_square, pooled_distance, p_value }
    }

    /// Whether the runs contradict each other, or all values together contradict them.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        self.p_value < DISAGREE
    }

    /// The standard deviation of log Z from all values, of which `sd` is the stated one: with the scatter of a run where runs disagree, since error
    /// bars that are too small for the runs are too small for all values as well.
    pub(super) fn widened(&self, sd: f64) -> f64 {
        if self.disagrees() { sd.hypot(self.scatter) } else { sd }
    }
}

/// Whether a belief is that of a run which has found the posterior; those about the square root always say so.
pub(super) fn has_arrived(current: &Current) -> bool {
    current.surrogate.log().is_none_or(|belief| belief.arrived())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_within_their_bars_agree_and_others_widen_the_bar() {
        let close = Agreement::of(3, &[(-1.0, 0.1), (-1.05, 0.1), (-0.9, 0.1)], (-0.98, 0.06));
        assert!(!close.disagrees() && close.p_value > 0.3, "{close:?}");
        assert_eq!(close.widened(0.06), 0.06);
        // Three nats apart with bars of a tenth.
        let far = Agreement::of(3, &[(-1.0, 0.1), (-4.0, 0.1), (-0.9, 0.1)], (-0.9, 0.05));
        assert!(far.disagrees());
        // The sample standard deviation of −1, −4 and −0.9 by hand: √(6.2067/2).
        assert!((far.scatter - 1.761_628).abs() < 1e-5, "{}", far.scatter);
        assert!((far.widened(0.05) - 1.761_628_f64.hypot(0.05)).abs() < 1e-5);
    }

    #[test]
    fn slight_differences_and_single_runs_are_no_disagreement() {
        // A hundred bars apart, and of no interest.
        assert!(!Agreement::of(2, &[(-1.0, 1e-4), (-1.01, 1e-4)], (-1.005, 1e-4)).disagrees());
        let one = Agreement::of(3, &[(-1.0, 0.1)], (-5.0, 0.1));
        assert!(!one.disagrees() && one.compared == 1 && one.scatter == 0.0);
        let none = Agreement::of(3, &[], (-5.0, 20.0));
        assert!(!none.disagrees() && none.widened(20.0) == 20.0);
    }

    #[test]
    fn all_values_far_from_every_run_are_a_disagreement() {
        // Two runs that missed the same mode agree; all values together, in which it was found, do not.
        let missed = Agreement::of(2, &[(-3.0, 0.1), (-3.1, 0.1)], (-1.0, 0.1));
        assert!(missed.disagrees() && missed.pooled_distance > 10.0);
    }
}
