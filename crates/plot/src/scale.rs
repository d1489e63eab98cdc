//! From values to pixels.

use crate::{
    axis::{Axis, Kind},
    ticks::{Tick, linear, logarithmic, whole},
};

/// Beyond this, differences could overflow; nothing sensible is drawn there.
const LARGEST: f64 = 1e150;

/// A pixel this far outside is as good as any further one.
const FAR: f64 = 20_000.0;

/// The map from values on an axis to pixels.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    logarithmic: bool,
    /// The ends, in logarithms on a logarithmic axis.
    low: f64,
    high: f64,
    /// The pixels of the ends.
    from: f64,
    to: f64,
}

/// Whether a value can be shown on the axis.
pub(crate) fn visible(axis: &Axis, value: f64) -> bool {
    value.is_finite() && value.abs() < LARGEST && (axis.kind != Kind::Logarithmic || value > 1.0 / LARGEST)
}

/// The smallest range that holds the visible ones of `values`, with some room; never empty, whatever the values.
pub(crate) fn range_of(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    if let Kind::Categories(names) = &axis.kind {
        return (-0.5, names.len().max(1) as f64 - 0.5);
    }
    if let (Some(low), Some(high)) = (axis.low, axis.high) {
        return (low, high);
    }
    let fold = |(low, high): (f64, f64), v: f64| (low.min(v), high.max(v));
    let (low, high) = values.filter(|v| visible(axis, *v)).fold((f64::INFINITY, f64::NEG_INFINITY), fold);
    if low > high {
        return if axis.kind == Kind::Logarithmic { (0.1, 10.0) } else { (0.0, 1.0) };
    }
    if axis.kind == Kind::Logarithmic {
        let room = (0.04 * (high / low).ln()).max(if high / low < 1.001 { 0.7 } else { 0.0 }).exp();
        return (low / room, high * room);
    }
    // Nothing narrower than rounding can tell apart.
    let size = low.abs().max(high.abs());
    if high - low <= (1e-9 * size).max(1.0 / LARGEST) {
        let room = if size > 1.0 / LARGEST { 0.1 * size } else { 0.5 };
        return (low - room, high + room);
    }
    let room = 0.04 * (high - low);
    (low - room, high + room)
}

impl Scale {
    pub(crate) fn new(axis: &Axis, (low, high): (f64, f64), from: f64, to: f64) -> Self {
        let logarithmic = axis.kind == Kind::Logarithmic;
        let (low, high) = if logarithmic { (low.ln(), high.ln()) } else { (low, high) };
        Self { logarithmic, low, high, from, to }
    }

    /// The pixel of a value; `None` for what cannot be shown on this axis.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !(value.is_finite() && value.abs() < LARGEST && (!self.logarithmic || value > 1.0 / LARGEST)) {
            return None;
        }
        let v = if self.logarithmic { value.ln() } else { value };
        let pixel = self.from + (self.to - self.from) * ((v - self.low) / (self.high - self.low));
        Some(pixel.clamp(-FAR, FAR))
    }

    /// The pixel of an end that may be at infinity, or at zero on a logarithmic axis: then that of the axis' own end.
    pub(crate) fn at_or_end(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let below = value == f64::NEG_INFINITY || (self.logarithmic && value <= 1.0 / LARGEST);
        Some(self.at(value).unwrap_or(if below { self.from } else { self.to }))
    }

    /// The pixels of the two ends.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

/// The ticks of an axis with about one label in `spacing` pixels.
pub(crate) fn ticks(axis: &Axis, (low, high): (f64, f64), pixels: f64, spacing: f64) -> Vec<Tick> {
    let wanted = ((pixels / spacing) as usize).max(2);
    match &axis.kind {
        Kind::Linear if axis.whole => whole(low, high, wanted),
        Kind::Linear => linear(low, high, wanted),
        Kind::Logarithmic => logarithmic(low, high, wanted),
        Kind::Categories(names) => {
            // So many names that they would touch: only some are written.
            let every = names.len().div_ceil(((pixels / spacing.min(14.0)) as usize).max(1)).max(1);
            let tick =
                |(i, name): (usize, &String)| Tick { at: i as f64, label: (i % every == 0).then(|| name.clone()) };
            names.iter().enumerate().map(tick).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_values_give_a_range_and_what_cannot_be_shown_is_left_out() {
        let linear = Axis::linear("");
        let logarithmic = Axis::logarithmic("");
        let hostile =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e308, -1e308, 5e-324, 3.0, 3.0 + 1e-15, -7.0];
        for n in 0..=hostile.len() {
            for axis in [&linear, &logarithmic] {
                let (low, high) = range_of(axis, hostile[..n].iter().copied());
                assert!(low.is_finite() && high.is_finite() && low < high, "{n} {low} {high}");
                let scale = Scale::new(axis, (low, high), 0.0, 100.0);
                assert!(hostile.iter().filter_map(|v| scale.at(*v)).all(f64::is_finite));
                assert!(!ticks(axis, (low, high), 300.0, 60.0).is_empty(), "{n} {low} {high}");
            }
        }
        let scale = Scale::new(&logarithmic, (1.0, 100.0), 10.0, 30.0);
        assert_eq!(scale.at(10.0), Some(20.0));
        assert_eq!(scale.at(0.0), None);
        assert_eq!(scale.at_or_end(0.0), Some(10.0));
        assert_eq!(Scale::new(&linear, (-1.0, 3.0), 100.0, 0.0).at(0.0), Some(75.0));
    }
}
