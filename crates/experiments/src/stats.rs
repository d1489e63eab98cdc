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

/// The arithmetic mean; NaN for an empty sample.
#[must_use]
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Mean, median and quantiles of a sample; what is infinite is absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The tenth percentile.
    pub p10: Option<f64>,
    /// The lower quartile.
    pub p25: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The upper quartile.
    pub p75: Option<f64>,
    /// The ninetieth percentile.
    pub p90: Option<f64>,
}

impl Spread {
    /// Of a sample.
    #[must_use]
    pub fn of(sample: &[f64]) -> Self {
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        let at = |q| finite(quantile(sample, q));
        Self { mean: finite(mean(sample)), p10: at(0.1), p25: at(0.25), median: at(0.5), p75: at(0.75), p90: at(0.9) }
    }
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
        let spread = Spread::of(&[1.0, 2.0, f64::INFINITY]);
        assert_eq!((spread.median, spread.mean, spread.p75), (Some(2.0), None, None));
        assert!(quantile(&[], 0.5).is_nan());
    }
}
