//! What further evaluations would bring, by how the error bar has shrunk so far: `MATH.md` §14.

use serde::Serialize;

use crate::{
    belief::log::NOT_ARRIVED,
    run::{
        engine::{Engine, Round},
        settings::Settings,
    },
};

/// Rounds that a forecast rests on at the least, and at the most: the newest, since the error bar may shrink ever faster or slower.
const LEAST: usize = 4;
const MOST: usize = 12;

/// The values must have grown by this factor over these rounds, or the slope is mostly noise.
const GROWTH: f64 = 1.2;

/// An error bar that falls with a smaller power of the evaluations is taken not to shrink.
const FLAT: f64 = 0.05;

/// A forecast of more than so many times the evaluations that there are says no more than "very many".
const FAR: f64 = 30.0;

/// `sd ∝ n^−slope` through the newest rounds since the run has arrived: the median of the slopes between all pairs of rounds, at the median level
/// (Theil and Sen), so that single wild rounds count for nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    slope: f64,
    /// The logarithm of the standard deviation at one value.
    level: f64,
    values: f64,
}

impl Trend {
    fn of(rounds: &[Round]) -> Result<Self, Outlook> {
        let arrived = |round: &Round| {
            // The bar of a run that has not arrived says so, whatever the reason is.
            let stated = round.belief.log_z_sd.is_some_and(|sd| sd < NOT_ARRIVED);
            round.belief.log.as_ref().is_none_or(|recipe| recipe.main.arrived && stated)
        };
        if !rounds.last().is_some_and(arrived) {
            return Err(Outlook::NotArrived);
        }
        let newest = rounds.iter().rev().take_while(|round| arrived(round)).take(MOST);
        let points: Vec<(f64, f64)> = newest
            .filter_map(|round| Some((round.belief.values as f64, round.belief.log_z_sd?)))
            .filter(|(n, sd)| *n > 0.0 && *sd > 0.0)
            .map(|(n, sd)| (n.ln(), sd.ln()))
            .collect();
        let (Some(last), Some(first)) = (points.first(), points.last()) else { return Err(Outlook::TooEarly) };
        if points.len() < LEAST || last.0 - first.0 < GROWTH.ln() {
            return Err(Outlook::TooEarly);
        }
        let pairs = points.iter().enumerate().flat_map(|(i, a)| points[..i].iter().map(move |b| (a, b)));
        let apart = pairs.filter(|(a, b)| a.0 != b.0);
        let slope = -median(apart.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect());
        let level = median(points.iter().map(|(n, sd)| sd + slope * n).collect());
        Ok(Self { slope, level, values: last.0.exp() })
    }

    /// The share of the standard deviation that `more` values would take away.
    fn gain(&self, more: usize) -> f64 {
        1.0 - (self.values / (self.values + more as f64)).powf(self.slope)
    }

    /// How many values there are when the standard deviation is `target`.
    fn values_for(&self, target: f64) -> f64 {
        ((self.level - target.ln()) / self.slope).exp()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { f64::NAN } else { 0.5 * (values[(n - 1) / 2] + values[n / 2]) }
}

/// The share of the standard deviation of `log Z` that another batch of so many points would take away, where that can be said.
pub(crate) fn gain(rounds: &[Round], batch: usize) -> Option<f64> {
    Trend::of(rounds).ok().map(|trend| trend.gain(batch))
}

/// How far the target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outlook {
    /// About so many evaluations in all, failures not counted.
    About(usize),
    /// The error bar does not shrink, or so slowly that no number would be meaningful.
    OutOfSight,
    /// The run has not arrived: its error bar says nothing about later ones.
    NotArrived,
    /// It has arrived, and there are too few batches since to see how the error bar shrinks.
    TooEarly,
}

impl Outlook {
    /// The outlook of one run, given what it believed after its batches; `None` without a target, or where the last error bar meets it.
    #[must_use]
    pub fn new(rounds: &[Round], settings: &Settings) -> Option<Self> {
        let target = settings.target_sd?;
        if rounds.last().and_then(|round| round.belief.log_z_sd).is_some_and(|sd| sd <= target) {
            return None;
        }
        let trend = match Trend::of(rounds) {
            Ok(trend) => trend,
            Err(unknown) => return Some(unknown),
        };
        // The newest round is above the target, whatever the trend says.
        let needed = trend.values_for(target).max(trend.values + 1.0);
        let near = trend.slope > FLAT && needed <= FAR * trend.values;
        Some(if near { Self::About(two_digits(needed)) } else { Self::OutOfSight })
    }

    /// The outlook of a run in a sentence as well; of several independent runs, that of the newest. What is not known is worked out, or else as it was when
    /// the last batch was chosen.
    #[must_use]
    pub fn of(engine: &Engine, work_out: bool) -> Option<(Self, String)> {
        let (newest, settings) = (engine.newest_repeat(), engine.settings());
        let run = engine.repeat(newest);
        let outlook = if work_out { Self::new(&run.rounds(), settings) } else { Self::new(run.history(), settings) }?;
        let of = if engine.repeats().is_empty() { String::new() } else { format!("repeat {}: ", newest + 1) };
        Some((outlook, format!("{of}{}", outlook.sentence(settings))))
    }

    /// About how many evaluations the target takes, where that can be said.
    #[must_use]
    pub fn needed(&self) -> Option<usize> {
        match self {
            Self::About(needed) => Some(*needed),
            Self::OutOfSight | Self::NotArrived | Self::TooEarly => None,
        }
    }

    /// Whether the evaluations that the settings allow will not do.
    #[must_use]
    pub fn is_short(&self, settings: &Settings) -> bool {
        match self {
            Self::About(needed) => *needed > settings.max_evaluations,
            Self::OutOfSight => true,
            Self::NotArrived | Self::TooEarly => false,
        }
    }

    /// The outlook in a sentence.
    fn sentence(&self, settings: &Settings) -> String {
        let target = settings.target_sd.unwrap_or_default();
        match self {
            Self::About(needed) if self.is_short(settings) => {
                let most = settings.max_evaluations;
                format!(
                    "about {needed} evaluations would be needed for target_sd = {target}; max_evaluations = {most} will not do"
                )
            }
            Self::About(needed) => format!("about {needed} evaluations are needed for target_sd = {target}"),
            Self::OutOfSight => {
                format!("target_sd = {target} is out of sight: the error bar hardly shrinks with more evaluations")
            }
            Self::NotArrived => {
                format!("how many evaluations target_sd = {target} takes cannot be said: the run has not arrived")
            }
            Self::TooEarly => {
                format!(
                    "how many evaluations target_sd = {target} takes cannot be said yet: too few batches since it arrived"
                )
            }
        }
    }
}

/// A count as well as it is known: to two digits.
fn two_digits(n: f64) -> usize {
    let unit = 10f64.powf((n.log10().floor() - 1.0).max(0.0));
    ((n / unit).round() * unit) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(points: &[(usize, f64)]) -> Vec<Round> {
        let round = |(batches, (values, sd)): (usize, &(usize, f64))| {
            let text = format!(
                r#"{{"batches": {batches}, "belief": {{"values": {values}, "fingerprint": 0, "sigma2": 1.0, "lengthscales": [1.0],
                    "searched": 0, "log_z": -1.0, "log_z_sd": {sd}}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        points.iter().enumerate().map(round).collect()
    }

    fn aimed(target_sd: f64) -> Settings {
        Settings { target_sd: Some(target_sd), max_evaluations: 128, ..Settings::default() }
    }

    /// `sd = 8/n` at every eighth evaluation.
    fn reciprocal(last: usize) -> Vec<Round> {
        let points: Vec<(usize, f64)> = (2..=last / 8).map(|k| (8 * k, 1.0 / k as f64)).collect();
        rounds(&points)
    }

    #[test]
    fn a_power_law_is_continued() {
        // 8/n = 0.05 at n = 160, and 0.08 at n = 100.
        assert_eq!(Outlook::new(&reciprocal(64), &aimed(0.05)), Some(Outlook::About(160)));
        assert_eq!(Outlook::new(&reciprocal(64), &aimed(0.08)), Some(Outlook::About(100)));
        assert!(Outlook::About(160).is_short(&aimed(0.05)) && !Outlook::About(100).is_short(&aimed(0.08)));
        assert!(Outlook::About(160).sentence(&aimed(0.05)).contains("about 160 evaluations would be needed"));
        // From 64 to 72 values the bar shrinks by a ninth.
        let gain = gain(&reciprocal(64), 8).unwrap();
        assert!((gain - 1.0 / 9.0).abs() < 1e-9, "{gain}");
    }

    #[test]
    fn one_wild_round_changes_little() {
        let mut wild = reciprocal(96);
        wild[5].belief.log_z_sd = Some(40.0);
        let Some(Outlook::About(needed)) = Outlook::new(&wild, &aimed(0.05)) else { panic!() };
        assert!((140..190).contains(&needed), "{needed}");
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        assert_eq!(Outlook::new(&reciprocal(64), &Settings::default()), None, "no target");
        assert_eq!(Outlook::new(&reciprocal(64), &aimed(0.2)), None, "it is met");
        assert_eq!(Outlook::new(&[], &aimed(0.05)), Some(Outlook::NotArrived));
        assert_eq!(Outlook::new(&reciprocal(32), &aimed(0.05)), Some(Outlook::TooEarly));
        let flat: Vec<(usize, f64)> = (2..10).map(|k| (8 * k, 0.3)).collect();
        assert_eq!(Outlook::new(&rounds(&flat), &aimed(0.05)), Some(Outlook::OutOfSight));
        assert_eq!(Outlook::new(&reciprocal(64), &aimed(1e-4)), Some(Outlook::OutOfSight));
        assert!(gain(&reciprocal(32), 8).is_none());
    }

    /// A bar of forty nats is that of a run that has not arrived, even where the largest peak has.
    #[test]
    fn bars_of_runs_that_have_not_arrived_are_no_trend() {
        use crate::{
            Config, integrate,
            prior::{Distribution, Prior},
        };
        let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
        let settings = Settings { max_evaluations: 64, ..Settings::default() };
        let config = Config { settings, ..Config::default() };
        let run = integrate(|t: &[f64]| -20.0 * (t[0] - 0.4).powi(2), prior, config).unwrap();
        let mut rounds = run.engine.rounds();
        assert!(Trend::of(&rounds).is_ok());
        rounds.iter_mut().for_each(|round| round.belief.log_z_sd = Some(NOT_ARRIVED));
        assert_eq!(Trend::of(&rounds), Err(Outlook::NotArrived));
    }
}
