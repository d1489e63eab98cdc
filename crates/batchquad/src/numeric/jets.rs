//! Values with their derivatives, at many points.

/// How many derivatives are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Values.
    Value,
    /// Values and gradients.
    Gradient,
    /// Values, gradients and Hessians.
    Hessian,
}

/// A function at `q` points with gradient and Hessian; what was not asked for is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Jets {
    /// `f(x)`.
    pub value: Vec<f64>,
    /// `∂f/∂xₐ`, `d` numbers per point.
    pub gradient: Vec<f64>,
    /// `∂²f/∂xₐ∂x_b`, `d²` numbers per point, row by row.
    pub hessian: Vec<f64>,
}

impl Jets {
    /// Zero at `q` points of dimension `d`, with room for derivatives up to `order`.
    #[must_use]
    pub fn zeros(q: usize, d: usize, order: Order) -> Self {
        let sized = |wanted: bool, n: usize| if wanted { vec![0.0; n] } else { Vec::new() };
        Self {
            value: vec![0.0; q],
            gradient: sized(order >= Order::Gradient, q * d),
            hessian: sized(order >= Order::Hessian, q * d * d),
        }
    }

    /// Adds `power · log h` at point `at`, for a positive `h` with the given value, gradient and Hessian.
    pub(crate) fn add_log(&mut self, at: usize, power: f64, value: f64, gradient: &[f64], hessian: &[f64]) {
        let d = gradient.len();
        self.value[at] += power * value.ln();
        for a in 0..d {
            self.gradient[at * d + a] += power * gradient[a] / value;
        }
        for i in 0..hessian.len() {
            let curvature = hessian[i] / value - gradient[i / d] / value * (gradient[i % d] / value);
            self.hessian[at * d * d + i] += power * curvature;
        }
    }

    /// Adds `log h²` at point `at` through `|h|`, whose derivatives have the sign of `h`: a square would underflow.
    pub(crate) fn add_log_square(&mut self, at: usize, value: f64, gradient: &[f64], hessian: &[f64]) {
        let negated = |v: &[f64]| v.iter().map(|x| -x).collect::<Vec<f64>>();
        if value < 0.0 {
            self.add_log(at, 2.0, -value, &negated(gradient), &negated(hessian));
        } else {
            self.add_log(at, 2.0, value, gradient, hessian);
        }
    }

    /// Adds `v = c·exp(e)` at point `at`, where `e` has gradient `slope` and constant Hessian `−curvature`.
    pub(crate) fn add_bump(&mut self, at: usize, value: f64, slope: &[f64], curvature: impl Fn(usize, usize) -> f64) {
        let d = slope.len();
        self.value[at] += value;
        if !self.gradient.is_empty() {
            for a in 0..d {
                self.gradient[at * d + a] += value * slope[a];
            }
        }
        if !self.hessian.is_empty() {
            for a in 0..d {
                for b in 0..d {
                    self.hessian[(at * d + a) * d + b] += value * (slope[a] * slope[b] - curvature(a, b));
                }
            }
        }
    }
}

/// The `at`-th run of `n` numbers; empty when the derivatives were not asked for.
pub(crate) fn run(v: &[f64], at: usize, n: usize) -> &[f64] {
    if v.is_empty() { v } else { &v[at * n..(at + 1) * n] }
}
