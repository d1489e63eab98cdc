//! Where an axis has ticks.

use crate::number::{compact, labels, power_of_ten};

/// A tick with its label; a minor one has none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: Option<String>,
}

/// Round numbers in `[low, high]`, at most about `wanted` of them, strictly increasing.
pub(crate) fn linear(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    round(low, high, wanted, &[1.0, 2.0, 2.5, 5.0, 10.0], 0.0)
}

/// The same in whole numbers; none where the range holds none.
pub(crate) fn whole(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    round(low, high, wanted, &[1.0, 2.0, 5.0, 10.0], 1.0)
}

/// Multiples of the smallest round step that makes at most about `wanted` of a range, or of a smaller one where less than two of them lie in the range:
/// one alone does not tell how long it is. No step is smaller than `least`.
fn round(low: f64, high: f64, wanted: usize, rounds: &[f64], least: f64) -> Vec<Tick> {
    let rough = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let large = rounds.iter().map(|m| m * power).find(|s| *s >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * power);
    let smaller = [power, 0.1 * power].into_iter().flat_map(|p| rounds.iter().rev().map(move |m| m * p));
    let ticks = |step: f64| spaced(low, high, step.max(least));
    std::iter::once(large)
        .chain(smaller.filter(|s| *s < large))
        .map(ticks)
        .find(|ticks| (wanted.min(2)..=wanted + 1).contains(&ticks.len()))
        .unwrap_or_else(|| ticks(large))
}

/// More ticks than any axis has.
const MOST: f64 = 1000.0;

fn spaced(low: f64, high: f64, step: f64) -> Vec<Tick> {
    // Rounding may put an end that is a round number a hair outside.
    let slack = 1e-9 * (high - low);
    let (first, last) = (((low - slack) / step).ceil(), ((high + slack) / step).floor());
    // At the ends of what a number can be there is no round step: a range of 10³⁰⁸, or of the smallest numbers.
    let mut at: Vec<f64> = match last - first {
        steps if steps <= MOST => (0..=steps.max(0.0) as usize).map(|i| (first + i as f64) * step).collect(),
        _ => vec![low, high],
    };
    at.retain(|t| *t >= low - slack && *t <= high + slack);
    at.dedup_by(|b, a| *b <= *a);
    let texts = labels(&at, step);
    at.into_iter().zip(texts).map(|(at, label)| Tick { at, label: Some(label) }).collect()
}

/// Powers of ten in `[low, high]` with minor ticks between them; within less than two decades, multiples of them are labelled.
pub(crate) fn logarithmic(low: f64, high: f64, wanted: usize) -> Vec<Tick> {
    // No number has another power of ten.
    let power = |v: f64| v.clamp(-330.0, 310.0) as i32;
    let (first, last) = (power(low.log10().floor()), power(high.log10().ceil()));
    let inside = |v: f64| v >= low * (1.0 - 1e-9) && v <= high * (1.0 + 1e-9);
    let decades: Vec<i32> = (first..=last).filter(|k| inside(10f64.powi(*k))).collect();
    if decades.len() < 2 {
        return within_a_decade(low, high, first, last, wanted);
    }
    let every = decades.len().div_ceil(wanted.max(2)) as i32;
    let plainly = decades.iter().all(|k| (-3..=4).contains(k));
    let mut ticks = Vec::new();
    for k in first..=last {
        let decade = 10f64.powi(k);
        let label = (k.rem_euclid(every) == 0).then(|| if plainly { compact(decade, 1) } else { power_of_ten(k) });
        ticks.push(Tick { at: decade, label });
        if every == 1 {
            ticks.extend((2..10).map(|m| Tick { at: f64::from(m) * decade, label: None }));
        }
    }
    ticks.retain(|t| inside(t.at));
    ticks
}

fn within_a_decade(low: f64, high: f64, first: i32, last: i32, wanted: usize) -> Vec<Tick> {
    let inside = |v: f64| v >= low * (1.0 - 1e-9) && v <= high * (1.0 + 1e-9);
    let multiples = |of: &[u32]| -> Vec<f64> {
        (first..=last)
            .flat_map(|k| of.iter().map(move |m| f64::from(*m) * 10f64.powi(k)))
            .filter(|v| inside(*v))
            .collect()
    };
    let all: Vec<u32> = (1..10).collect();
    let labelled = [&[1, 2, 5][..], &[1, 2, 3, 5, 7], &all].into_iter().map(multiples).find(|t| t.len() >= 3);
    let Some(labelled) = labelled else { return linear(low, high, wanted) };
    let label = |at: f64| labelled.contains(&at).then(|| compact(at, 3));
    multiples(&all).into_iter().map(|at| Tick { at, label: label(at) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn increasing(ticks: &[Tick]) -> bool {
        ticks.windows(2).all(|w| w[0].at < w[1].at)
    }

    #[test]
    fn linear_ticks_are_round_inside_and_increase() {
        let at = |low, high, n| linear(low, high, n).iter().map(|t| t.at).collect::<Vec<_>>();
        assert_eq!(at(-4.0, 4.0, 5), [-4.0, -2.0, 0.0, 2.0, 4.0]);
        assert_eq!(at(0.0, 1.0, 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        // Not one tick alone at 1.5.
        assert_eq!(at(1.15, 1.85, 2), [1.25, 1.5, 1.75]);
        assert_eq!(whole(6.0, 66.0, 2).iter().map(|t| t.at).collect::<Vec<_>>(), [20.0, 40.0, 60.0]);
        for (low, high) in [(1e-300, 3e-300), (-1e6, -1e6 + 0.03), (1e149, 2e149), (0.1, 0.100_000_1), (-7.0, 1e9)] {
            for n in 1..12 {
                let ticks = linear(low, high, n);
                let slack = 1e-6 * (high - low);
                assert!(increasing(&ticks), "{low} {high} {n}: {ticks:?}");
                assert!(ticks.iter().all(|t| t.at >= low - slack && t.at <= high + slack));
                assert!(ticks.len() <= n + 1, "{low} {high} {n}: {ticks:?}");
            }
            let texts: Vec<_> = linear(low, high, 5).into_iter().map(|t| t.label).collect();
            assert!(texts.len() >= 2 && texts.windows(2).all(|w| w[0] != w[1]), "{texts:?}");
        }
    }

    #[test]
    fn ranges_at_the_ends_of_what_a_number_can_be_have_few_ticks() {
        let ends = [-f64::MAX, -1e308, -1.0, 0.0, 5e-324, 1e-320, 1.0, 1e300, 1e308, f64::MAX];
        for (i, low) in ends.into_iter().enumerate() {
            for high in &ends[i + 1..] {
                for n in [1, 5, 12] {
                    assert!(linear(low, *high, n).len() <= 20 && whole(low, *high, n).len() <= 20, "{low} {high}");
                }
                if low > 0.0 {
                    assert!(logarithmic(low, *high, 6).len() <= 10_000);
                }
            }
        }
        assert!(logarithmic(0.0, 1.0, 6).len() <= 10_000 && logarithmic(0.0, f64::INFINITY, 6).len() <= 10_000);
    }

    #[test]
    fn what_is_counted_has_whole_ticks() {
        let at = |low, high, n| whole(low, high, n).iter().map(|t| t.at).collect::<Vec<_>>();
        assert_eq!(at(0.8, 5.2, 3), [2.0, 4.0]);
        assert_eq!(at(0.8, 3.2, 8), [1.0, 2.0, 3.0]);
        assert_eq!(at(90.0, 2100.0, 3), [1000.0, 2000.0]);
        assert!(at(0.2, 0.8, 4).is_empty());
    }

    #[test]
    fn logarithmic_ticks_have_labelled_decades_and_minor_ones_between() {
        let ticks = logarithmic(0.5, 2000.0, 6);
        let labels: Vec<_> = ticks.iter().filter_map(|t| t.label.as_deref()).collect();
        assert_eq!(labels, ["1", "10", "100", "1000"]);
        // 0.5 to 0.9, nine in each of three decades, 1000 and 2000.
        assert!(increasing(&ticks) && ticks.len() == 5 + 27 + 2, "{}", ticks.len());
        for (low, high) in [(1e-140, 1e140), (1e-9, 1.0), (3.0, 4.0), (0.9, 40.0), (1.0, 1.0001), (99.0, 101.0)] {
            let ticks = logarithmic(low, high, 6);
            assert!(increasing(&ticks), "{ticks:?}");
            assert!(ticks.iter().filter(|t| t.label.is_some()).count() >= 2, "{low} {high} {ticks:?}");
            assert!(ticks.iter().all(|t| t.at >= low * 0.999 && t.at <= high * 1.001));
        }
    }
}
