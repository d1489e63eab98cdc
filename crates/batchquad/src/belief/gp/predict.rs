//! Posterior mean and variance with gradients and Hessians, for many points at once: [`MATH.md` §4](crate::math).

use std::f64::consts::SQRT_2;

use rayon::prelude::*;

use crate::{
    belief::{
        gp::Gp,
        kernel::{Kernel, require_dims},
    },
    error::Result,
    numeric::{
        jets::Order,
        linalg::{Matrix, transpose_mul},
        simd::{dot, moments},
    },
    points::Points,
};

/// Posterior mean and variance at `q` points; what was not asked for is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prediction {
    /// `m(x)`.
    pub mean: Vec<f64>,
    /// `C(x, x)`, at least `ε σ²`.
    pub variance: Vec<f64>,
    /// `∂m/∂xₐ`, `d` numbers per point.
    pub mean_gradient: Vec<f64>,
    /// `∂C/∂xₐ`, `d` numbers per point.
    pub variance_gradient: Vec<f64>,
    /// `∂²m/∂xₐ∂x_b`, `d²` numbers per point, row by row.
    pub mean_hessian: Vec<f64>,
    /// `∂²C/∂xₐ∂x_b`, `d²` numbers per point, row by row.
    pub variance_hessian: Vec<f64>,
    /// How many variances were raised to `ε σ²` because rounding had taken them below.
    pub clamped: usize,
}

/// The most points handled by one task: enough that reading the factor is cheap beside the arithmetic.
const CHUNK: usize = 64;

/// Points of one task come in multiples of this, the right-hand sides that a triangular solve takes together.
const GROUP: usize = 8;

impl Gp {
    /// Posterior mean and variance at each point, with derivatives up to `order`.
    ///
    /// With `kᵢ = k(xᵢ, x)`, `sᵢₐ = (xₐ − xᵢₐ)/λₐ` and `A = K⁻¹ k`:
    /// `∂ₐm = −λₐ⁻¹ Σ wᵢkᵢsᵢₐ`, `∂ₐC = 2λₐ⁻¹ Σ Aᵢkᵢsᵢₐ`, `∂ₐ∂_b m = (λₐλ_b)⁻¹ Σ wᵢkᵢ(sᵢₐsᵢ_b − δₐ_b)`,
    /// `∂ₐ∂_b C = −2 (λₐλ_b)⁻¹ Σ Aᵢkᵢ(sᵢₐsᵢ_b − δₐ_b) − 2 (∂ₐk)ᵀK⁻¹(∂_b k)`.
    /// Cost per point: `n²` for values, `2n²` with gradients, `(2 + d) n²` with Hessians.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for points of another dimension.
    pub fn predict(&self, x: &Points, order: Order) -> Result<Prediction> {
        require_dims(self.kernel.dim(), &[("points", x.dim())])?;
        let d = x.dim();
        // A point's arithmetic is the same in any company, so the tasks may depend on the number of threads.
        let threads = rayon::current_num_threads();
        let size = x.len().div_ceil(threads).next_multiple_of(GROUP).clamp(GROUP, CHUNK);
        let chunks: Vec<&[f64]> = x.as_slice().chunks(size * d).collect();
        let part = |flat: &&[f64]| Points::new(d, flat.to_vec()).map(|points| self.predict_chunk(&points, order));
        // Handing a task to another thread costs as much as predicting from a hundred nodes.
        let parts: Vec<Prediction> = if chunks.len() == 1 || threads == 1 {
            chunks.iter().map(part).collect::<Result<_>>()?
        } else {
            chunks.par_iter().map(part).collect::<Result<_>>()?
        };
        Ok(parts.into_iter().fold(Prediction::default(), |mut all, part| {
            all.mean.extend(part.mean);
            all.variance.extend(part.variance);
            all.mean_gradient.extend(part.mean_gradient);
            all.variance_gradient.extend(part.variance_gradient);
            all.mean_hessian.extend(part.mean_hessian);
            all.variance_hessian.extend(part.variance_hessian);
            all.clamped += part.clamped;
            all
        }))
    }

    /// Posterior mean at each point, to the same bits as [`Gp::predict`]. Cost: `n` per point.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for points of another dimension.
    pub fn mean(&self, x: &Points) -> Result<Vec<f64>> {
        require_dims(self.kernel.dim(), &[("points", x.dim())])?;
        let part = |flat: &[f64]| -> Result<Vec<f64>> {
            let cross = self.cross(&self.kernel.whiten(&Points::new(x.dim(), flat.to_vec())?));
            Ok((0..cross.cols()).map(|j| dot(&self.weights, cross.col(j))).collect())
        };
        let parts: Vec<Vec<f64>> = x.as_slice().par_chunks(CHUNK * x.dim()).map(part).collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    fn predict_chunk(&self, x: &Points, order: Order) -> Prediction {
        let white = self.kernel.whiten(x);
        let cross = self.cross(&white);
        let mut solved = cross.clone();
        self.factor.half_solve(&mut solved);
        let floor = f64::EPSILON * self.kernel.sigma2();
        let mut out = Prediction::default();
        for j in 0..x.len() {
            out.mean.push(dot(&self.weights, cross.col(j)));
            let variance = self.kernel.sigma2() - dot(solved.col(j), solved.col(j));
            out.clamped += usize::from(variance < floor);
            out.variance.push(variance.max(floor));
        }
        if order == Order::Value {
            return out;
        }
        let explained: Vec<f64> = (0..x.len()).map(|j| dot(solved.col(j), solved.col(j))).collect();
        self.factor.half_solve_transposed(&mut solved);
        let scale: Vec<f64> = self.kernel.lengthscales().iter().map(|l| SQRT_2 / l).collect();
        for j in 0..x.len() {
            let (k, a) = (cross.col(j), solved.col(j));
            for (c, scale) in scale.iter().enumerate() {
                let [m, v] = moments(k, [&self.weights, a], self.white.coordinate(c), white.get(j, c));
                out.mean_gradient.push(scale * m);
                out.variance_gradient.push(-2.0 * scale * v);
            }
        }
        if order == Order::Hessian {
            for j in 0..x.len() {
                let at: Vec<f64> = (0..x.dim()).map(|c| white.get(j, c)).collect();
                let values = (out.mean[j], explained[j]);
                self.hessians(&at, cross.col(j), solved.col(j), values, &scale, &mut out);
            }
        }
        out
    }

    /// Pushes both Hessians at the whitened point `at`, given `k = k(X, x)`, `a = K⁻¹k`, the mean and `kᵀK⁻¹k`.
    fn hessians(
        &self,
        at: &[f64],
        k: &[f64],
        a: &[f64],
        (mean, explained): (f64, f64),
        scale: &[f64],
        out: &mut Prediction,
    ) {
        let (n, d) = (a.len(), scale.len());
        // Column c of `offsets` is (xᵢ_c − x_c)/(√2 λ_c), and of `slopes` ∂_c k(X, x).
        let offsets = Matrix::from_fn(n, d, |i, c| self.white.get(i, c) - at[c]);
        let mut slopes = Matrix::from_fn(n, d, |i, c| scale[c] * offsets.get(i, c) * k[i]);
        // Σ uᵢ kᵢ sᵢₐ sᵢ_b for u = w and u = A.
        let weighted = |u: &[f64]| Matrix::from_fn(n, d, |i, c| u[i] * slopes.get(i, c));
        let (by_weight, by_solution) =
            (transpose_mul(&weighted(&self.weights), &offsets), transpose_mul(&weighted(a), &offsets));
        self.factor.half_solve(&mut slopes);
        let products = transpose_mul(&slopes, &slopes);
        for r in 0..d {
            for c in 0..d {
                // scale² = 2/λ², and the kernel's curvature is −1/λ².
                let diagonal = if r == c { 0.5 * scale[r] * scale[r] } else { 0.0 };
                out.mean_hessian.push(scale[c] * by_weight.get(r, c) - diagonal * mean);
                let curvature = scale[c] * by_solution.get(r, c) - diagonal * explained;
                out.variance_hessian.push(-2.0 * (curvature + products.get(r, c)));
            }
        }
    }
}
