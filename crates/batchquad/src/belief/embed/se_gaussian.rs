//! Squared exponential × Gaussian with full covariance, and × mixtures of them: [`MATH.md` §2](crate::math).
//!
//! Each integral is the density of a Gaussian vector, because `k(x, y) = σ² (2π)^{d/2} |Λ|^{½} N(x − y; 0, Λ)`. The
//! formulas below separate the difference `xᵢ − xⱼ` (whose covariance is a multiple of `Λ`) from the rest, so that no
//! digits are lost when the lengthscale is small against the measure, and no covariance is ever inverted on its own.

use std::f64::consts::{LN_2, SQRT_2};

use crate::{
    belief::{
        embed::{Embed, EmbedProducts},
        kernel::{Kernel, SquaredExponential, require_dims},
        measure::{Gaussian, Mixture},
    },
    error::Result,
    numeric::{
        linalg::{Factor, Matrix},
        pairs::{Columns, Fall, PairForm},
    },
    points::Points,
};

/// `log |Λ|`.
fn log_det_lambda(kernel: &SquaredExponential) -> f64 {
    2.0 * kernel.lengthscales().iter().map(|l| l.ln()).sum::<f64>()
}

/// The factor of `τΛ + S`.
fn widened(kernel: &SquaredExponential, tau: f64, s: impl Fn(usize, usize) -> f64) -> Result<Factor> {
    let d = kernel.dim();
    let l = kernel.lengthscales();
    let sum = Matrix::from_fn(d, d, |i, j| s(i, j) + if i == j { tau * l[i] * l[i] } else { 0.0 });
    Factor::exact("kernel plus measure covariance", &sum)
}

/// `F⁻¹t/c` for every point, where `t(x, k)` is coordinate `k` of `t`.
fn whitened(points: &Points, factor: &Factor, c: f64, t: impl Fn(&[f64], usize) -> f64) -> Columns {
    let mut white = Matrix::from_fn(factor.len(), points.len(), |k, i| t(points.row(i), k));
    factor.half_solve(&mut white);
    Columns::from_fn(points.len(), factor.len(), |i, k| white.get(k, i) / c)
}

/// `zᵢ = σ² |I + SΛ⁻¹|^{−½} exp(−½ (xᵢ−b)ᵀ(Λ+S)⁻¹(xᵢ−b))`. Cost: `d²` per node.
fn mean(kernel: &SquaredExponential, measure: &Gaussian, nodes: &Points) -> Result<Vec<f64>> {
    require_dims(kernel.dim(), &[("measure", measure.dim()), ("nodes", nodes.dim())])?;
    let factor = widened(kernel, 1.0, |i, j| measure.covariance().get(i, j))?;
    let log_scale = kernel.sigma2().ln() + 0.5 * (log_det_lambda(kernel) - factor.log_det());
    let nodes = whitened(nodes, &factor, SQRT_2, |x, k| x[k] - measure.mean()[k]);
    let square = |i| (0..nodes.dim()).map(|k| nodes.get(i, k).powi(2)).sum::<f64>();
    Ok((0..nodes.len()).map(|i| (log_scale - square(i)).exp()).collect())
}

/// `∬ kᵖ dμₐ dμ_b = σ²ᵖ |I + p(Sₐ+S_b)Λ⁻¹|^{−½} exp(−½ δᵀ(Λ/p + Sₐ + S_b)⁻¹δ)`, `δ = bₐ − b_b`; `p` is 1 or 2.
fn power_variance(kernel: &SquaredExponential, power: f64, a: &Gaussian, b: &Gaussian) -> Result<f64> {
    require_dims(kernel.dim(), &[("measure", a.dim()), ("measure", b.dim())])?;
    let d = kernel.dim() as f64;
    let factor = widened(kernel, 1.0 / power, |i, j| a.covariance().get(i, j) + b.covariance().get(i, j))?;
    let delta: Vec<f64> = a.mean().iter().zip(b.mean()).map(|(a, b)| a - b).collect();
    let square: f64 = factor.half_solve_vec(&delta).iter().map(|v| v * v).sum();
    let log_det = factor.log_det() - log_det_lambda(kernel) + d * power.ln();
    Ok((power * kernel.sigma2().ln() - 0.5 * (log_det + square)).exp())
}

/// `Pᵢⱼ = σ⁴ |I + 2SΛ⁻¹|^{−½} exp(−¼ (xᵢ−xⱼ)ᵀΛ⁻¹(xᵢ−xⱼ) − ½ (ν−b)ᵀ(Λ/2+S)⁻¹(ν−b))`, `ν = ½(xᵢ+xⱼ)`.
#[derive(Debug)]
pub(crate) struct Product {
    log_scale: f64,
    half: Vec<f64>,
    factor: Factor,
    centre: Vec<f64>,
}

impl Product {
    pub(crate) fn new(kernel: &SquaredExponential, measure: &Gaussian) -> Result<Self> {
        require_dims(kernel.dim(), &[("measure", measure.dim())])?;
        let factor = widened(kernel, 0.5, |i, j| measure.covariance().get(i, j))?;
        let log_det = factor.log_det() - log_det_lambda(kernel) + kernel.dim() as f64 * LN_2;
        let log_scale = 2.0 * kernel.sigma2().ln() - 0.5 * log_det;
        let half = kernel.lengthscales().iter().map(|l| 2.0 * l).collect();
        Ok(Self { log_scale, half, factor, centre: measure.mean().to_vec() })
    }

    /// The coordinates in which pairs of `points` take the form of [`PairForm`].
    pub(crate) fn coordinates(&self, points: &Points) -> (Columns, Columns) {
        let centred = |x: &[f64], k: usize| x[k] - self.centre[k];
        (Columns::scaled(points, &self.half), whitened(points, &self.factor, 8.0_f64.sqrt(), centred))
    }

    /// `(Λ/2 + S)⁻¹ v`.
    pub(crate) fn solve(&self, v: &[f64]) -> Vec<f64> {
        self.factor.solve_vec(v)
    }

    pub(crate) fn form<'a>(&self, x: &'a (Columns, Columns), y: &'a (Columns, Columns)) -> PairForm<'a> {
        PairForm {
            fall: Fall::Exponential { log_scale: self.log_scale },
            differences: (&x.0, &y.0),
            sums: Some((&x.1, &y.1)),
        }
    }
}

/// `∬ k(xᵢ,t) k(t,t') k(t',xⱼ) dμₐ(t) dμ_b(t')`.
///
/// With `t₁ = xᵢ − xⱼ`, `t₂ = (b_b−bₐ) − (xⱼ−b_b)`, `t₃ = 2(xᵢ−bₐ) + (b_b−bₐ) + (xⱼ−b_b)`:
/// `D = σ⁶ |Λ|^{3/2} 6ᵈ |3Λ|^{−½} |Σ|^{−½} exp(−⅙ t₁ᵀΛ⁻¹t₁ − ½ (t₂,t₃)ᵀΣ⁻¹(t₂,t₃))`,
/// `Σ = [[Sₐ+4S_b+2Λ, 3Sₐ], [3Sₐ, 9Sₐ+6Λ]]`.
struct Chain {
    log_scale: f64,
    differences: Columns,
    left: Columns,
    right: Columns,
}

impl Chain {
    fn new(kernel: &SquaredExponential, a: &Gaussian, b: &Gaussian, nodes: &Points) -> Result<Self> {
        let d = kernel.dim();
        require_dims(d, &[("measure", a.dim()), ("measure", b.dim()), ("nodes", nodes.dim())])?;
        let lambda = |i: usize, j: usize| if i == j { kernel.lengthscales()[i].powi(2) } else { 0.0 };
        let sigma = Matrix::from_fn(2 * d, 2 * d, |row, col| {
            let (i, j) = (row % d, col % d);
            let (sa, sb) = (a.covariance().get(i, j), b.covariance().get(i, j));
            match (row / d, col / d) {
                (0, 0) => sa + 4.0 * sb + 2.0 * lambda(i, j),
                (1, 1) => 9.0 * sa + 6.0 * lambda(i, j),
                _ => 3.0 * sa,
            }
        });
        let factor = Factor::exact("covariance of the chain integral", &sigma)?;
        let log_scale = 3.0 * kernel.sigma2().ln() + log_det_lambda(kernel)
            - 0.5 * (factor.log_det() + d as f64 * 3.0_f64.ln())
            + d as f64 * 6.0_f64.ln();
        let left =
            whitened(nodes, &factor, SQRT_2, |x, r| if r < d { 0.0 } else { 2.0 * (x[r - d] - a.mean()[r - d]) });
        let right = whitened(nodes, &factor, SQRT_2, |x, r| {
            let k = r % d;
            let (shift, centred) = (b.mean()[k] - a.mean()[k], x[k] - b.mean()[k]);
            if r < d { shift - centred } else { shift + centred }
        });
        let scale: Vec<f64> = kernel.lengthscales().iter().map(|l| 6.0_f64.sqrt() * l).collect();
        Ok(Self { log_scale, differences: Columns::scaled(nodes, &scale), left, right })
    }

    /// The integrals between all nodes, times `weight`.
    fn form(&self, weight: f64) -> PairForm<'_> {
        PairForm {
            fall: Fall::Exponential { log_scale: self.log_scale + weight.ln() },
            differences: (&self.differences, &self.differences),
            sums: Some((&self.left, &self.right)),
        }
    }
}

/// `P w` and `|w|ᵀ P |w|`, `P` among the nodes. Cost: `n²/2` exponentials per component; no matrix is kept.
pub(crate) fn product_mul(
    kernel: &SquaredExponential,
    measure: &Mixture,
    nodes: &Points,
    w: &[f64],
) -> Result<(Vec<f64>, f64)> {
    require_dims(kernel.dim(), &[("nodes", nodes.dim())])?;
    let (mut total, mut sizes) = (vec![0.0; nodes.len()], 0.0);
    for (weight, component) in measure.components() {
        let product = Product::new(kernel, component)?;
        let at = product.coordinates(nodes);
        let mut form = product.form(&at, &at);
        form.fall.multiply(weight.ln());
        sizes += form.symmetric_mul(w, &mut total);
    }
    Ok((total, sizes))
}

/// `wᵀ D w`, `D` among the nodes. Cost: `n²/2` exponentials per pair of components; no matrix is kept.
pub(crate) fn chain_quadratic(
    kernel: &SquaredExponential,
    measure: &Mixture,
    nodes: &Points,
    w: &[f64],
) -> Result<f64> {
    let mut total = 0.0;
    for (weight_a, a) in measure.components() {
        for (weight_b, b) in measure.components() {
            total += Chain::new(kernel, a, b, nodes)?.form(weight_a * weight_b).lower_quadratic(w);
        }
    }
    Ok(total)
}

impl Embed<Gaussian> for SquaredExponential {
    fn mean(&self, measure: &Gaussian, nodes: &Points) -> Result<Vec<f64>> {
        mean(self, measure, nodes)
    }

    fn variance(&self, measure: &Gaussian) -> Result<f64> {
        power_variance(self, 1.0, measure, measure)
    }
}

impl Embed<Mixture> for SquaredExponential {
    fn mean(&self, measure: &Mixture, nodes: &Points) -> Result<Vec<f64>> {
        let mut total = vec![0.0; nodes.len()];
        for (weight, component) in measure.components() {
            for (t, v) in total.iter_mut().zip(mean(self, component, nodes)?) {
                *t += weight * v;
            }
        }
        Ok(total)
    }

    fn variance(&self, measure: &Mixture) -> Result<f64> {
        over_pairs(measure, |a, b| power_variance(self, 1.0, a, b))
    }
}

impl EmbedProducts<Mixture> for SquaredExponential {
    fn product(&self, measure: &Mixture, x: &Points, y: &Points) -> Result<Matrix> {
        require_dims(self.dim(), &[("first points", x.dim()), ("second points", y.dim())])?;
        let mut total = Matrix::zeros(x.len(), y.len());
        let mut column = vec![0.0; x.len()];
        for (weight, component) in measure.components() {
            let product = Product::new(self, component)?;
            let (left, right) = (product.coordinates(x), product.coordinates(y));
            let mut form = product.form(&left, &right);
            form.fall.multiply(weight.ln());
            for j in 0..y.len() {
                form.fill(j, 0, &mut column);
                for (t, v) in total.col_mut(j).iter_mut().zip(&column) {
                    *t += v;
                }
            }
        }
        Ok(total)
    }

    fn chain_lower(&self, measure: &Mixture, nodes: &Points) -> Result<Matrix> {
        let mut total = Matrix::zeros(nodes.len(), nodes.len());
        let mut column = vec![0.0; nodes.len()];
        for (weight_a, a) in measure.components() {
            for (weight_b, b) in measure.components() {
                let chain = Chain::new(self, a, b, nodes)?;
                let form = chain.form(weight_a * weight_b);
                for j in 0..nodes.len() {
                    form.fill(j, j, &mut column[j..]);
                    for (t, v) in total.col_mut(j)[j..].iter_mut().zip(&column[j..]) {
                        *t += v;
                    }
                }
            }
        }
        Ok(total)
    }

    fn squared(&self, measure: &Mixture) -> Result<f64> {
        over_pairs(measure, |a, b| power_variance(self, 2.0, a, b))
    }
}

/// `Σₐ Σ_b ρₐ ρ_b f(a, b)`.
fn over_pairs(measure: &Mixture, f: impl Fn(&Gaussian, &Gaussian) -> Result<f64>) -> Result<f64> {
    let mut total = 0.0;
    for (weight_a, a) in measure.components() {
        for (weight_b, b) in measure.components() {
            total += weight_a * weight_b * f(a, b)?;
        }
    }
    Ok(total)
}
