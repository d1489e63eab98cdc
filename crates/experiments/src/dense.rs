//! Small dense algebra for the problems themselves, independent of the library that is being judged on them.

/// The lower Cholesky factor `L` of a symmetric positive-definite matrix, `A = LLᵀ`, row by row.
#[derive(Debug, Clone)]
pub struct Cholesky {
    n: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// The factor of the `n × n` matrix with the given entries (`i ≥ j` are asked for); none if it is not positive definite.
    /// Cost: `n³/3`.
    pub fn new(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let inner: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = entry(i, j) - inner;
                lower[i * n + j] = if i == j { rest.sqrt() } else { rest / lower[j * n + j] };
            }
            if lower[i * n + i].is_nan() || lower[i * n + i] <= 0.0 {
                return None;
            }
        }
        Some(Self { n, lower })
    }

    /// `L⁻¹ b`.
    #[must_use]
    pub fn half_solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut x = b.to_vec();
        for i in 0..n {
            let inner: f64 = (0..i).map(|k| self.lower[i * n + k] * x[k]).sum();
            x[i] = (x[i] - inner) / self.lower[i * n + i];
        }
        x
    }

    /// `L x`.
    #[must_use]
    pub fn multiply(&self, x: &[f64]) -> Vec<f64> {
        (0..self.n).map(|i| (0..=i).map(|k| self.lower[i * self.n + k] * x[k]).sum()).collect()
    }

    /// `A⁻¹ = L⁻ᵀ L⁻¹`, row by row. Cost: `n³`.
    #[must_use]
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let columns: Vec<Vec<f64>> =
            (0..n).map(|j| self.half_solve(&(0..n).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>())).collect();
        let mut inverse = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                // Column i of L⁻¹ is zero above row i.
                let inner = (i..n).map(|k| columns[i][k] * columns[j][k]).sum();
                inverse[i * n + j] = inner;
                inverse[j * n + i] = inner;
            }
        }
        inverse
    }

    /// `log |A|`.
    #[must_use]
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.n).map(|i| self.lower[i * self.n + i].ln()).sum::<f64>()
    }
}

/// `log N(y; 0, A)` for the matrix with this factor.
#[must_use]
pub fn log_normal_density(factor: &Cholesky, y: &[f64]) -> f64 {
    let white = factor.half_solve(y);
    let square: f64 = white.iter().map(|v| v * v).sum();
    -0.5 * (square + factor.log_det() + y.len() as f64 * std::f64::consts::TAU.ln())
}

/// `Σ (xₐ − yₐ)²`.
#[must_use]
pub fn square_distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum()
}
