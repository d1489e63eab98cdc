//! The posterior of WSABI-L as a signed mixture of Gaussians, one for each pair of nodes: [`MATH.md` §7](crate::math).

use super::{
    bilinear,
    comb::{Line, Plane, REACH},
    coordinates::{Functional, product},
    density::{Density1, Density2, Lower, Mixture1, Mixture2, ends},
    square::{Extent, Square, Table},
};
use crate::{
    belief::{embed::Product, gp::Gp, measure::Gaussian, warp::Process},
    error::{Error, Result},
    numeric::{
        linalg::Matrix,
        pairs::{Columns, PairForm},
    },
    points::Points,
};

/// Nodes and pairs whose weights are together below this share of all are left out: less than the rounding of the
/// others.
const NEGLIGIBLE: f64 = 1e-17;

/// `(α + ½ m²) μ` in the coordinates of the surrogate, not normalised.
#[derive(Debug)]
pub(super) struct Closed {
    /// The terms of `½ m² μ`, one for each Gaussian of the measure.
    parts: Vec<Part>,
    /// `α μ`.
    base: Vec<(f64, Gaussian)>,
    /// `α + ½ ∫ m² dμ`.
    total: f64,
    /// The same as a function.
    square: Square,
    /// `½ |w|ᵀP|w|`: how large the terms are that this is the sum of.
    sizes: f64,
}

/// `½ ρ m(x)² N(x; b, S) = ½ ρ Σᵢⱼ wᵢ wⱼ Pᵢⱼ N(x; eᵢ + eⱼ, T)`.
#[derive(Debug)]
struct Part {
    product: Product,
    log_weight: f64,
    at: (Columns, Columns),
    /// `w` of the nodes that matter.
    weights: Vec<f64>,
    /// `eᵢ = ½(b + S(Λ/2 + S)⁻¹(xᵢ − b))`, row by row.
    halves: Vec<Vec<f64>>,
    /// `T = (2Λ⁻¹ + S⁻¹)⁻¹ = ½Λ(½Λ + S)⁻¹S`.
    covariance: Matrix,
    floor: f64,
}

impl Closed {
    /// Cost: `n²` exponentials per Gaussian of the measure.
    pub(super) fn new(of: Process<'_>) -> Result<Self> {
        let alpha = of.alpha;
        let (mut parts, mut total, mut sizes) = (Vec::new(), alpha, 0.0);
        for (weight, gaussian) in of.measure.components() {
            let part = Part::new(of.gp, *weight, gaussian)?;
            let mut pw = vec![0.0; part.weights.len()];
            sizes += 0.5 * part.form().symmetric_mul(&part.weights, &mut pw);
            total += 0.5 * product(&part.weights, &pw);
            parts.push(part);
        }
        if !(total > 0.0 && total.is_finite()) {
            let (what, reason) = ("posterior in closed form".into(), format!("its mass is {total}"));
            return Err(Error::Numerical { what, reason });
        }
        let base = of.measure.components().iter().filter(|_| alpha > 0.0);
        let base = base.map(|(weight, gaussian)| (alpha * weight, gaussian.clone())).collect();
        Ok(Self { parts, base, total, square: Square::new(of), sizes })
    }

    /// Mean and covariance. Cost: `(d + 2)n²/2` exponentials per Gaussian of the measure.
    pub(super) fn moments(&self) -> (Vec<f64>, Matrix) {
        let d = self.parts[0].covariance.rows();
        let sums: Vec<Vec<f64>> = self.parts.iter().map(|part| part.rows(&part.weights)).collect();
        let mut mean = vec![0.0; d];
        for (k, mean) in mean.iter_mut().enumerate() {
            *mean = self.base.iter().map(|(w, g)| w * g.mean()[k]).sum::<f64>();
            for (part, rows) in self.parts.iter().zip(&sums) {
                *mean += part.halves.iter().zip(rows).map(|(e, r)| 2.0 * e[k] * r).sum::<f64>();
            }
            *mean /= self.total;
        }
        let mut second = Matrix::zeros(d, d);
        let mut add = |i: usize, j: usize, v: f64| second.col_mut(j)[i] += v / self.total;
        for i in 0..d {
            for j in 0..d {
                for (w, g) in &self.base {
                    add(i, j, w * (g.covariance().get(i, j) + (g.mean()[i] - mean[i]) * (g.mean()[j] - mean[j])));
                }
            }
        }
        for (part, rows) in self.parts.iter().zip(&sums) {
            let mass: f64 = rows.iter().sum();
            // Around the mean, so that a narrow posterior far out keeps its digits.
            let centred = |k: usize| -> Vec<f64> { part.halves.iter().map(|e| e[k] - 0.5 * mean[k]).collect() };
            for j in 0..d {
                let right = centred(j);
                let weighted: Vec<f64> = right.iter().zip(&part.weights).map(|(e, w)| e * w).collect();
                let pairs = part.rows(&weighted);
                for i in 0..d {
                    let left = centred(i);
                    let same: f64 = left.iter().zip(&right).zip(rows).map(|((a, b), r)| a * b * r).sum();
                    add(i, j, part.covariance.get(i, j) * mass + 2.0 * (same + product(&left, &pairs)));
                }
            }
        }
        (mean, Matrix::from_fn(d, d, |i, j| 0.5 * (second.get(i, j) + second.get(j, i))))
    }

    /// The density of one quantity. Cost: `n²/2` exponentials and some 100 multiplications per pair that matters; in
    /// one and two dimensions `n` exponentials for each of some hundred or ten thousand points instead.
    pub(super) fn line(&self, quantity: &Functional) -> Result<Density1> {
        if let Some(table) = self.table(quantity)? {
            return Ok(Density1::Table(table));
        }
        let mut combs = Vec::new();
        for part in &self.parts {
            let sd = part.sd(quantity);
            let halves: Vec<f64> = part.values(quantity).iter().map(|v| v / sd).collect();
            let (low, high) = ends(&halves);
            let mut line = Line::over(2.0 * low, 2.0 * high)?;
            let marks = line.marks(&halves, 2.0)?;
            part.columns(|j, weights| line.add(marks[j], &marks[j..], weights, part.floor));
            combs.push((sd, line.finish()));
        }
        let bell = |(w, g): &(f64, Gaussian)| (*w, quantity.at(g.mean()), deviation(g.covariance(), quantity));
        let bells = self.base.iter().map(bell).collect();
        Ok(Density1::Mixture(Mixture1 { combs, bells, total: self.total, sizes: self.sizes }))
    }

    /// The density of one quantity by its values, in one and two dimensions.
    fn table(&self, quantity: &Functional) -> Result<Option<Table>> {
        let extent =
            |q: &Functional, given: Option<&Functional>| Extent { range: self.range(q), grain: self.grain(q, given) };
        let own = extent(quantity, None);
        match quantity.row[..] {
            [_] => Table::new(&self.square, quantity, &own, None),
            [a, b] => {
                let size = a.hypot(b);
                let direction = Functional { row: vec![-b / size, a / size], shift: 0.0 };
                let across = extent(&direction, Some(quantity));
                Table::new(&self.square, quantity, &own, Some((&direction.row, across)))
            }
            _ => Ok(None),
        }
    }

    /// Beyond these there is nothing of a quantity.
    fn range(&self, quantity: &Functional) -> (f64, f64) {
        let around = |low: f64, high: f64, sd: f64| (low - REACH * sd, high + REACH * sd);
        let parts = self.parts.iter().map(|part| {
            let (low, high) = ends(&part.values(quantity));
            around(2.0 * low, 2.0 * high, part.sd(quantity))
        });
        let base = self.base.iter().map(|(_, g)| {
            let at = quantity.at(g.mean());
            around(at, at, deviation(g.covariance(), quantity))
        });
        parts.chain(base).fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)))
    }

    /// The narrowest standard deviation of a quantity, another one being given.
    fn grain(&self, quantity: &Functional, given: Option<&Functional>) -> f64 {
        let parts = self.parts.iter().map(|part| &part.covariance);
        let all = parts.chain(self.base.iter().map(|(_, g)| g.covariance()));
        let variance = |s: &Matrix| {
            let explained =
                given.map_or(0.0, |o| bilinear(s, &quantity.row, &o.row).powi(2) / bilinear(s, &o.row, &o.row));
            bilinear(s, &quantity.row, &quantity.row) - explained
        };
        all.map(variance).fold(f64::INFINITY, f64::min).sqrt()
    }

    /// The density of two quantities. Cost: `n²/2` exponentials and some 400 multiplications per pair that matters;
    /// nothing in two dimensions, where it is the density itself.
    pub(super) fn plane(&self, first: &Functional, second: &Functional) -> Result<Density2> {
        if let ([a, b], [c, d]) = (&first.row[..], &second.row[..]) {
            let determinant = a * d - b * c;
            let rows = [[d / determinant, -b / determinant], [-c / determinant, a / determinant]];
            let inverse = (rows, [first.shift, second.shift]);
            let total = self.total * determinant.abs();
            return Ok(Density2::Square { square: self.square.clone(), inverse, total });
        }
        let factor = |s: &Matrix| {
            let entry = |a: &Functional, b: &Functional| bilinear(s, &a.row, &b.row);
            Lower::of(entry(first, first), entry(first, second), entry(second, second))
        };
        let mut combs = Vec::new();
        for part in &self.parts {
            let lower = factor(&part.covariance)?;
            let (x, y): (Vec<f64>, Vec<f64>) =
                part.values(first).iter().zip(part.values(second)).map(|(x, y)| lower.whiten(*x, y)).unzip();
            let twice = |v: &[f64]| (2.0 * ends(v).0, 2.0 * ends(v).1);
            let mut plane = Plane::over(twice(&x), twice(&y))?;
            let [x, y] = plane.marks([&x, &y], 2.0)?;
            part.columns(|j, weights| plane.add([x[j], y[j]], [&x[j..], &y[j..]], weights, part.floor));
            combs.push((lower, plane));
        }
        let mut bells = Vec::new();
        for (w, g) in &self.base {
            bells.push((*w, [first.at(g.mean()), second.at(g.mean())], factor(g.covariance())?));
        }
        Ok(Density2::Mixture(Mixture2 { combs, bells, total: self.total, sizes: self.sizes }))
    }
}

impl Part {
    fn new(gp: &Gp, weight: f64, gaussian: &Gaussian) -> Result<Self> {
        let d = gaussian.dim();
        let (kernel, nodes) = (gp.kernel(), gp.nodes());
        let product = Product::new(kernel, gaussian)?;
        let log_weight = weight.ln();
        // |w|ᵀP|w| node by node says which of them matter.
        let sizes: Vec<f64> = gp.weights().iter().map(|w| w.abs()).collect();
        let at = product.coordinates(nodes);
        let mut shares = vec![0.0; nodes.len()];
        let mut form = product.form(&at, &at);
        form.fall.multiply(log_weight);
        form.symmetric_mul(&sizes, &mut shares);
        shares.iter_mut().zip(&sizes).for_each(|(s, w)| *s *= w);
        let all: f64 = shares.iter().sum();
        let n = nodes.len() as f64;
        let kept: Vec<usize> = (0..nodes.len()).filter(|&i| shares[i] > NEGLIGIBLE / n * all).collect();
        // A measure that is zero at all nodes leaves none; one of them stands for all.
        let kept = if kept.is_empty() { vec![0] } else { kept };
        let rows: Vec<&[f64]> = kept.iter().map(|&i| nodes.row(i)).collect();
        let own = Points::from_rows(&rows)?;
        let column = |k: usize| -> Vec<f64> { gaussian.covariance().col(k).to_vec() };
        let solved: Vec<Vec<f64>> = (0..d).map(|k| product.solve(&column(k))).collect();
        let half = |k: usize| 0.5 * kernel.lengthscales()[k].powi(2);
        let raw = Matrix::from_fn(d, d, |i, j| half(i) * solved[j][i]);
        let covariance = Matrix::from_fn(d, d, |i, j| 0.5 * (raw.get(i, j) + raw.get(j, i)));
        let b = gaussian.mean();
        let halves = own.rows().map(|x| {
            let centred: Vec<f64> = x.iter().zip(b).map(|(x, b)| x - b).collect();
            (0..d).map(|k| 0.5 * (b[k] + super::coordinates::product(&solved[k], &centred))).collect()
        });
        Ok(Self {
            log_weight,
            at: product.coordinates(&own),
            weights: kept.iter().map(|&i| gp.weights()[i]).collect(),
            halves: halves.collect(),
            covariance,
            floor: 0.5 * NEGLIGIBLE / (n * n) * all,
            product,
        })
    }

    /// `ρ P` among the nodes.
    fn form(&self) -> PairForm<'_> {
        let mut form = self.product.form(&self.at, &self.at);
        form.fall.multiply(self.log_weight);
        form
    }

    /// `½ ρ wᵢ (P v)ᵢ`.
    fn rows(&self, v: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; v.len()];
        self.form().symmetric_mul(v, &mut sums);
        sums.iter_mut().zip(&self.weights).for_each(|(s, w)| *s *= 0.5 * w);
        sums
    }

    /// The standard deviation of a quantity around each centre.
    fn sd(&self, quantity: &Functional) -> f64 {
        deviation(&self.covariance, quantity)
    }

    /// The quantity at each `eᵢ`, so that at `eᵢ + eⱼ` it is the sum of two of these.
    fn values(&self, quantity: &Functional) -> Vec<f64> {
        self.halves.iter().map(|e| product(&quantity.row, e) + 0.5 * quantity.shift).collect()
    }

    /// The weights of all pairs of `j` with itself and later nodes, both orders counted.
    fn columns(&self, mut visit: impl FnMut(usize, &[f64])) {
        let (form, w) = (self.form(), &self.weights);
        let mut column = vec![0.0; w.len()];
        for j in 0..w.len() {
            let below = &mut column[j..];
            form.fill(j, j, below);
            for (p, w_i) in below.iter_mut().zip(&w[j..]) {
                *p *= w_i * w[j];
            }
            below[0] *= 0.5;
            visit(j, below);
        }
    }
}

/// The standard deviation of a quantity of which the coordinates have covariance `s`.
fn deviation(s: &Matrix, quantity: &Functional) -> f64 {
    bilinear(s, &quantity.row, &quantity.row).sqrt()
}
