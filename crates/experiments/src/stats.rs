//! Order statistics.

use serde::{Deserialize, Serialize};

/// The quantile `q` of a sample, interpolated linearly between order statistics; NaN for an empty one. Infinite values are legal.
#[must_use]
pub fn quantile(sample: &[f64], q: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if low == high { low } else { low + (place - place.floor()) * (high - low) }
}

/// Quartiles; a missing one is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// A quarter of the sample is below.
    pub lower: Option<f64>,
    /// Half of it is.
    pub median: Option<f64>,
    /// Three quarters are.
    pub upper: Option<f64>,
}

impl Quartiles {
    /// The quartiles of a sample.
    #[must_use]
    pub fn of(sample: &[f64]) -> Self {
        let at = |q| Some(quantile(sample, q)).filter(|v: &f64| v.is_finite());
        Self { lower: at(0.25), median: at(0.5), upper: at(0.75) }
    }
}

/// The arithmetic mean; NaN for an empty sample.
#[must_use]
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let sample = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&sample, 0.5), 2.5);
        assert_eq!(quantile(&sample, 0.0), 1.0);
        assert_eq!(quantile(&sample, 1.0), 4.0);
        assert_eq!(quantile(&[1.0, f64::INFINITY, f64::INFINITY], 0.5), f64::INFINITY);
        assert_eq!(Quartiles::of(&[1.0, f64::INFINITY, f64::INFINITY]).median, None);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
