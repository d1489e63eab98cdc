//! What the product kernels on a box share: one factor for each axis. [`MATH.md` §2](crate::math).2.

use crate::{
    belief::{kernel::require_dims, measure::UniformBox},
    error::{Error, Result},
    points::Points,
};

/// `zᵢ = σ² Πⱼ factor(j, lowⱼ, highⱼ, xᵢⱼ)`, after checking the dimensions against the kernel's.
pub(super) fn mean(
    (dim, sigma2): (usize, f64),
    measure: &UniformBox,
    nodes: &Points,
    factor: impl Fn(usize, f64, f64, f64) -> f64,
) -> Result<Vec<f64>> {
    require_dims(dim, &[("measure", measure.dim()), ("nodes", nodes.dim())])?;
    let (low, high) = (measure.low(), measure.high());
    nodes
        .rows()
        .map(|x| finite(sigma2 * x.iter().enumerate().map(|(j, &x)| factor(j, low[j], high[j], x)).product::<f64>()))
        .collect()
}

/// `σ² Πⱼ factor(j, lowⱼ, highⱼ)`, after checking the dimension against the kernel's.
pub(super) fn variance(
    (dim, sigma2): (usize, f64),
    measure: &UniformBox,
    factor: impl Fn(usize, f64, f64) -> f64,
) -> Result<f64> {
    require_dims(dim, &[("measure", measure.dim())])?;
    let edges = measure.low().iter().zip(measure.high()).enumerate();
    finite(sigma2 * edges.map(|(j, (&a, &b))| factor(j, a, b)).product::<f64>())
}

/// The average over `[low, high]` of an even function centred at `x`, from its averages over `[near, near + length]`.
///
/// The interval is cut at `x`, so that every piece lies on one side of the centre and nothing is ever subtracted.
pub(super) fn average_around(x: f64, low: f64, high: f64, average: impl Fn(f64, f64) -> f64) -> f64 {
    let width = high - low;
    if x < low {
        average(low - x, width)
    } else if x > high {
        average(x - high, width)
    } else {
        let piece = |length: f64| length / width * average(0.0, length);
        piece(x - low) + piece(high - x)
    }
}

/// `φ(h) = (1 − e⁻ʰ)/h` for `h ≥ 0`, with its limits `φ(0) = 1` and `φ(∞) = 0`.
pub(super) fn mean_decay(h: f64) -> f64 {
    if h == 0.0 { 1.0 } else { -(-h).exp_m1() / h }
}

fn finite(value: f64) -> Result<f64> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Numerical {
            what: "embedding of the kernel in the uniform box".into(),
            reason: format!("the value {value:?} is not finite: the kernel's scale and the box are too large together"),
        })
    }
}
