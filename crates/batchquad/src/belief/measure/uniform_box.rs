//! The uniform probability measure on a box.

use crate::error::{Error, Result, require_finite};

/// The uniform probability measure on `[low₁, high₁] × … × [low_d, high_d]`, density `Πⱼ 1/(highⱼ − lowⱼ)` inside.
///
/// An integral against it is an *average* over the box; multiply by the volume for the integral itself.
///
/// ```
/// use batchquad::belief::UniformBox;
/// let square = UniformBox::new(vec![0.0, -1.0], vec![1.0, 1.0])?;
/// assert_eq!(square.dim(), 2);
/// assert!(UniformBox::new(vec![1.0], vec![1.0]).is_err());
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct UniformBox {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl UniformBox {
    /// The measure on the box between two opposite corners.
    ///
    /// # Errors
    /// [`Error::Length`] when a corner is empty or the two differ in length; [`Error::Invalid`] when an edge is not
    /// finite, `low ≥ high`, or the width `high − low` overflows.
    pub fn new(low: Vec<f64>, high: Vec<f64>) -> Result<Self> {
        if low.is_empty() {
            return Err(Error::length("low corner of the box", 1, 0));
        }
        if low.len() != high.len() {
            return Err(Error::length("high corner of the box", low.len(), high.len()));
        }
        for (j, (&a, &b)) in low.iter().zip(&high).enumerate() {
            require_finite(&format!("low edge {j} of the box"), a)?;
            require_finite(&format!("high edge {j} of the box"), b)?;
            if a >= b {
                return Err(Error::invalid(
                    format!("high edge {j} of the box"),
                    b,
                    format!("more than the low edge {a:?}"),
                ));
            }
            require_finite(&format!("width {j} of the box [{a:?}, {b:?}]"), b - a)?;
        }
        Ok(Self { low, high })
    }

    /// The dimension, at least 1.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.low.len()
    }

    /// The corner of the smallest coordinates.
    #[must_use]
    pub fn low(&self) -> &[f64] {
        &self.low
    }

    /// The corner of the largest coordinates.
    #[must_use]
    pub fn high(&self) -> &[f64] {
        &self.high
    }
}
