//! The error bar: what is stated about how far `log Z` may be off, and to which side. `MATH.md` §15.

use super::{LogBelief, known::coefficients};
use crate::belief::estimate::{Estimate, Side};

/// The standard deviation of `log Z` that is stated at the least before a run has arrived: where the posterior is has not been seen, so
/// nothing smaller would be honest. It is more where the best values still differ by more.
pub(crate) const NOT_ARRIVED: f64 = 40.0;

/// Chosen by measurement: the variance of the process, times its surprise, counts `a + b(q/n)²` times with `n` values for the `q` coefficients of a
/// quadratic. Hyperparameters are not known either, and the less the fewer values there are to find them from.
const CALIBRATION: (f64, f64) = (0.5, 32.0);

/// Chosen by measurement: no less than this share of the jackknife's standard deviation is stated.
const LEAST_OF_JACKKNIFE: f64 = 0.32;

/// Chosen by measurement: draws of the edge differ a little less than the edge does from the truth.
const EDGE_CALIBRATION: f64 = 1.2;

/// Chosen by measurement: what was not seen can only add. Where more than so many nats are open, the truth is farther above an estimate than below it: by
/// these shares the 68 % interval is shorter below and longer above than the bar.
const ONE_SIDED: (f64, f64) = (0.25, 0.45);
const SLIGHT: f64 = 0.003;

/// Chosen by measurement, for runs that have not arrived: how far below the truth may be, in bars.
const BELOW: f64 = 0.4;

/// … and how far above. Where the posterior is not found, it is so many times a power of what the best values are apart and a few nats.
const NOT_FOUND: f64 = 5.0;
const NATS: f64 = 5.0;
const SLOWER: f64 = 2.0 / 3.0;

/// Where its top is found but not what surrounds it: so many times what these values are apart, or the bar.
const BLURRED: f64 = 4.5;

/// Where it is found and still moves, and where it has stopped but another peak may exist: the ends of the 68 % and the 95 % interval in nats. Most of these
/// runs are about right, and some have far to go.
const MOVES: (f64, f64) = (4.5, 50.0);
const SUSPECTS: (f64, f64) = (1.1, 12.0);

impl LogBelief {
    /// The standard deviations of `log Z` of which the stated one is made: of the process; of the jackknife, which tells how far the process can be
    /// believed; `process`, made of both; of the sampling; of the likelihood's edge; of what may be unseen.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        let process = self.together(|peak| {
            let share = coefficients(peak.process.dim()) as f64 / peak.process.len() as f64;
            // What noise leaves open, the process knows.
            let noisy = peak.process.data.doubt(peak.process.hyper.noise);
            let wider = CALIBRATION.0 + (1.0 - CALIBRATION.0) * noisy + CALIBRATION.1 * share.powi(2);
            ((wider * peak.surprise).sqrt() * peak.model_sd).max(LEAST_OF_JACKKNIFE * peak.jackknife_sd)
        });
        [
            ("model", self.model_sd()),
            ("jackknife", self.jackknife_sd()),
            ("process", process),
            ("sampling", self.together(|peak| peak.monte_carlo_sd)),
            ("edge", EDGE_CALIBRATION * self.together(|peak| peak.edge_sd)),
            ("unseen", self.unseen().ln_1p()),
        ]
    }

    /// The standard deviation of `log Z` by what the processes do not know.
    pub(crate) fn process_sd(&self) -> f64 {
        self.parts()[2].1
    }

    /// The belief about the evidence. The bar is the last four [parts](Self::parts) together. Once the run has arrived the standard
    /// deviation is half the length of the 68 % interval. Before, it is no less than forty nats, since large errors are rare and very large; the intervals
    /// say where the truth mostly is.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let bar = self.parts()[2..].iter().map(|(_, sd)| sd * sd).sum::<f64>().sqrt();
        let unrest = self.known.unrest();
        let (below, above) = self.sides(bar, unrest);
        let sd = if self.arrived() { 0.5 * (below.one + above.one) } else { bar.max(NOT_ARRIVED).max(unrest) };
        Estimate::from_log(self.log_z, sd, self.known.largest_likelihood).with_sides(below, above)
    }

    /// How far the truth may be from the estimate on either side, with that bar, where the best values are `unrest` apart.
    fn sides(&self, bar: f64, unrest: f64) -> (Side, Side) {
        let main = &self.recipe.main;
        let process = &self.main().process;
        // Noise makes estimates too high as often as too low.
        let open = (1.0 - process.data.doubt(process.hyper.noise)) * bar / (bar + SLIGHT);
        let (less, more) = (Side::even((1.0 - ONE_SIDED.0 * open) * bar), Side::even((1.0 + ONE_SIDED.1 * open) * bar));
        let below = Side::even(BELOW * bar);
        if self.arrived() {
            (less, more)
        } else if self.peaks_arrived() {
            (less, more.or(Side::through(SUSPECTS.0, SUSPECTS.1)))
        } else if main.found {
            (below, more.or(Side::through(MOVES.0, MOVES.1)))
        } else if main.blurred {
            (below, Side::even(BLURRED * unrest.max(bar)))
        } else {
            (below, Side::even(NOT_FOUND * (NATS + unrest).powf(SLOWER)))
        }
    }
}
