//! Derivatives in `x` of sums of squared-exponential integrals, for acquisitions that look at the integral itself:
//! [`MATH.md` §2](crate::math).1.
//!
//! Every term is a Gaussian bump in `x`, `c·exp(e(x))` with a quadratic exponent, so its gradient is `c eᵉ ∇e` and its
//! Hessian `c eᵉ (∇e∇eᵀ + ∇²e)` with a constant `∇²e`.

use crate::{
    belief::{
        embed::{Embed, EmbedProducts},
        kernel::{Kernel, SquaredExponential, require_dims},
        measure::{Gaussian, Mixture},
    },
    error::Result,
    numeric::{
        jets::{Jets, Order},
        linalg::{Factor, Matrix},
    },
    points::Points,
};

/// `(τΛ + S)⁻¹`.
fn widened_precision(kernel: &SquaredExponential, tau: f64, measure: &Gaussian) -> Result<Matrix> {
    let (d, l) = (kernel.dim(), kernel.lengthscales());
    let sum =
        Matrix::from_fn(d, d, |i, j| measure.covariance().get(i, j) + if i == j { tau * l[i] * l[i] } else { 0.0 });
    let lower = Factor::exact("kernel plus measure covariance", &sum)?.inverse_lower();
    Ok(Matrix::from_fn(d, d, |i, j| lower.get(i.max(j), i.min(j))))
}

fn minus(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// `Σᵢ uᵢ k(x, xᵢ)`: `∇e = −Λ⁻¹(x − xᵢ)`, `∇²e = −Λ⁻¹`. Cost: `n d²` per point.
pub(crate) fn kernel_sums(
    kernel: &SquaredExponential,
    x: &Points,
    nodes: &Points,
    u: &[f64],
    order: Order,
) -> Result<Jets> {
    let gram = kernel.gram(nodes, x)?;
    let precision: Vec<f64> = kernel.lengthscales().iter().map(|l| l.powi(-2)).collect();
    let mut jets = Jets::zeros(x.len(), x.dim(), order);
    for at in 0..x.len() {
        for (i, node) in nodes.rows().enumerate() {
            let slope: Vec<f64> = minus(node, x.row(at)).iter().zip(&precision).map(|(v, p)| v * p).collect();
            let curvature = |a: usize, b: usize| if a == b { precision[a] } else { 0.0 };
            jets.add_bump(at, u[i] * gram.get(i, at), &slope, curvature);
        }
    }
    Ok(jets)
}

/// The kernel mean `z(x)`: `∇e = −(Λ+S)⁻¹(x − b)`, `∇²e = −(Λ+S)⁻¹` for each component. Cost: `d²` per point.
pub(crate) fn mean_jets(kernel: &SquaredExponential, measure: &Mixture, x: &Points, order: Order) -> Result<Jets> {
    let mut jets = Jets::zeros(x.len(), x.dim(), order);
    for (weight, component) in measure.components() {
        let values = kernel.mean(component, x)?;
        let precision = widened_precision(kernel, 1.0, component)?;
        for at in 0..x.len() {
            let slope = precision.mul_vec(&minus(component.mean(), x.row(at)));
            jets.add_bump(at, weight * values[at], &slope, |a, b| precision.get(a, b));
        }
    }
    Ok(jets)
}

/// `Σᵢ uᵢ P(x, xᵢ)`: `∇e = −½Λ⁻¹(x − xᵢ) − ½A(ν − b)`, `∇²e = −½Λ⁻¹ − ¼A` with `A = (Λ/2 + S)⁻¹`, `ν = ½(x + xᵢ)`.
/// Cost: `n d²` per point and component.
pub(crate) fn product_sums(
    kernel: &SquaredExponential,
    measure: &Mixture,
    x: &Points,
    (nodes, u): (&Points, &[f64]),
    order: Order,
) -> Result<Jets> {
    require_dims(kernel.dim(), &[("points", x.dim()), ("nodes", nodes.dim())])?;
    let half: Vec<f64> = kernel.lengthscales().iter().map(|l| 0.5 / (l * l)).collect();
    let mut jets = Jets::zeros(x.len(), x.dim(), order);
    for (weight, component) in measure.components() {
        let product = kernel.product(&Mixture::from(component.clone()), nodes, x)?;
        let a = widened_precision(kernel, 0.5, component)?;
        for at in 0..x.len() {
            for (i, node) in nodes.rows().enumerate() {
                let middle: Vec<f64> = node.iter().zip(x.row(at)).map(|(n, x)| 0.5 * (n + x)).collect();
                let pull = a.mul_vec(&minus(component.mean(), &middle));
                let slope: Vec<f64> =
                    (0..x.dim()).map(|c| half[c] * (node[c] - x.row(at)[c]) + 0.5 * pull[c]).collect();
                let curvature = |r: usize, c: usize| 0.25 * a.get(r, c) + if r == c { half[r] } else { 0.0 };
                jets.add_bump(at, weight * u[i] * product.get(i, at), &slope, curvature);
            }
        }
    }
    Ok(jets)
}
