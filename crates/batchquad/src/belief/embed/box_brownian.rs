//! Brownian × uniform box.

use super::{Embed, box_product};
use crate::{
    belief::{
        kernel::{Brownian, Kernel},
        measure::UniformBox,
    },
    error::Result,
    points::Points,
};

/// One factor for each axis, polynomials without subtraction of nearly equal terms.
///
/// With `s` the start, `w = high − low`, `A = max(low, s)` and `B = max(high, s)` (the process is zero before s) and
/// the node clipped to `m = min(max(x, A), B)`:
///
/// **Mean.** `((m − A)((A − s) + (m − s))/2 + (B − m)(m − s))/w` for `x ≥ A`; `(B − A)(x − s)/w` for `s < x < A`; 0 for
/// `x ≤ s`.
///
/// **Variance.** `((B − A)/w)² ((A − s) + (B − A)/3)`.
///
/// Cost: O(nd) for the mean, O(d) for the variance. A result that overflows is an [`crate::Error::Numerical`].
impl Embed<UniformBox> for Brownian {
    fn mean(&self, measure: &UniformBox, nodes: &Points) -> Result<Vec<f64>> {
        box_product::mean((self.dim(), self.sigma2()), measure, nodes, |j, low, high, x| {
            let start = self.start()[j];
            let (width, a, b) = (high - low, low.max(start), high.max(start));
            if x <= start {
                0.0
            } else if x < a {
                (b - a) / width * (x - start)
            } else {
                let m = x.min(b);
                (m - a) / width * (0.5 * (a - start) + 0.5 * (m - start)) + (b - m) / width * (m - start)
            }
        })
    }

    fn variance(&self, measure: &UniformBox) -> Result<f64> {
        box_product::variance((self.dim(), self.sigma2()), measure, |j, low, high| {
            let start = self.start()[j];
            let (a, b) = (low.max(start), high.max(start));
            ((b - a) / (high - low)).powi(2) * ((a - start) + (b - a) / 3.0)
        })
    }
}
