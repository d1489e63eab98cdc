//! The parameters' own coordinates, for the kernel and the mean. `MATH.md` §15.

use super::{
    bend::{Bend, inverse},
    scale::{Scale, Slopes},
    view::View,
};
use crate::{numeric::simd::dot, points::Points};

/// `z = M(w(u) − w(b))` with `u = b + Lx`, where `w_k(u_k)` is a parameter on its own [`Scale`]: what is quadratic in the parameters is quadratic in `z`. `M`
/// makes `z` about as wide as `x`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Own {
    scales: Vec<Scale>,
    centre: Vec<f64>,
    /// The rows of `L`.
    rows: Vec<Vec<f64>>,
    origin: Vec<f64>,
    /// `M`, row by row.
    matrix: Vec<f64>,
}

/// `w` at latent coordinates, with its derivatives.
fn place(scales: &[Scale], u: &[f64]) -> Vec<Slopes> {
    scales.iter().zip(u).map(|(scale, &u)| scale.at(u)).collect()
}

impl Own {
    /// The coordinates for those of a view; none if the latent coordinates are the parameters' own, or where they would be singular.
    ///
    /// `M⁻¹` has the columns `½(w(b + Leₐ) − w(b − Leₐ))`.
    pub(crate) fn new(scales: &[Scale], view: &View) -> Option<Self> {
        if scales.iter().all(|scale| *scale == Scale::Latent) {
            return None;
        }
        let d = scales.len();
        let (centre, rows) = view.affine();
        let values = |u: &[f64]| -> Vec<f64> { place(scales, u).iter().map(|w| w.value).collect() };
        let mut slopes = vec![0.0; d * d];
        for a in 0..d {
            let at = |sign: f64| values(&(0..d).map(|k| centre[k] + sign * rows[k][a]).collect::<Vec<_>>());
            for (k, (up, down)) in at(1.0).iter().zip(at(-1.0)).enumerate() {
                slopes[k * d + a] = 0.5 * (up - down);
            }
        }
        let origin = values(&centre);
        Some(Self { scales: scales.to_vec(), centre, rows, origin, matrix: inverse(&slopes, d)?.0 })
    }

    fn place(&self, x: &[f64]) -> Vec<Slopes> {
        let u: Vec<f64> = self.centre.iter().zip(&self.rows).map(|(b, row)| b + dot(row, x)).collect();
        place(&self.scales, &u)
    }

    /// `z`, and `log |∂w/∂u|`.
    fn straighten_into(&self, x: &[f64], z: &mut [f64]) -> f64 {
        let w = self.place(x);
        let from: Vec<f64> = w.iter().zip(&self.origin).map(|(w, o)| w.value - o).collect();
        z.iter_mut().zip(self.matrix.chunks_exact(x.len())).for_each(|(z, row)| *z = dot(row, &from));
        w.iter().map(|w| w.log_slope).sum()
    }

    fn at(&self, x: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; x.len()];
        self.straighten_into(x, &mut z);
        z
    }

    fn straighten(&self, points: &Points) -> (Points, Vec<f64>) {
        let d = points.dim();
        let mut straight = points.clone();
        let places = straight.as_mut_slice().chunks_exact_mut(d);
        let logs = points.rows().zip(places).map(|(x, z)| self.straighten_into(x, z)).collect();
        (straight, logs)
    }

    fn pull(&self, x: &[f64], (value, gradient, hessian): (f64, &[f64], &[f64])) -> (f64, Vec<f64>, Vec<f64>) {
        let d = x.len();
        let w = self.place(x);
        let slopes: Vec<f64> = w.iter().map(|w| w.log_slope.exp()).collect();
        // Through M to w, with w(u) to u, through L to x.
        let in_w: Vec<f64> = (0..d).map(|k| (0..d).map(|i| self.matrix[i * d + k] * gradient[i]).sum()).collect();
        let in_u: Vec<f64> = (0..d).map(|k| slopes[k] * in_w[k] + w[k].first).collect();
        let down = (0..d).map(|a| (0..d).map(|k| self.rows[k][a] * in_u[k]).sum()).collect();
        let value = value + w.iter().map(|w| w.log_slope).sum::<f64>();
        if hessian.is_empty() {
            return (value, down, Vec::new());
        }
        let congruent = |inner: &[f64], entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            let half: Vec<f64> =
                (0..d * d).map(|i| (0..d).map(|k| inner[i / d * d + k] * entry(k, i % d)).sum()).collect();
            (0..d * d).map(|i| (0..d).map(|k| entry(k, i / d) * half[k * d + i % d]).sum()).collect()
        };
        let mut second = congruent(hessian, &|i, k| self.matrix[i * d + k] * slopes[k]);
        for k in 0..d {
            second[k * d + k] += slopes[k] * w[k].first * in_w[k] + w[k].second;
        }
        (value, down, congruent(&second, &|k, a| self.rows[k][a]))
    }
}

/// Coordinates in which the kernel and the mean see the nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Straight {
    /// In which a bent posterior is straight.
    Bent(Bend),
    /// The parameters' own.
    Own(Own),
}

impl Straight {
    /// The bend, if it is one.
    pub(crate) fn bend(&self) -> Option<&Bend> {
        match self {
            Self::Bent(bend) => Some(bend),
            Self::Own(_) => None,
        }
    }

    /// The points in straight coordinates, and `log |∂z/∂x|` at each, but for a constant.
    pub(crate) fn straighten(&self, points: &Points) -> (Points, Vec<f64>) {
        match self {
            Self::Bent(bend) => bend.straighten(points),
            Self::Own(own) => own.straighten(points),
        }
    }

    /// One point in straight coordinates.
    pub(crate) fn at(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Bent(bend) => bend.at(x),
            Self::Own(own) => own.at(x),
        }
    }

    /// A value with its gradient and, if there is one, its Hessian in straight coordinates as those in `x`, plus `log |∂z/∂x|`.
    pub(crate) fn pull(&self, x: &[f64], jet: (f64, &[f64], &[f64])) -> (f64, Vec<f64>, Vec<f64>) {
        match self {
            Self::Bent(bend) => bend.pull(x, jet),
            Self::Own(own) => own.pull(x, jet),
        }
    }

    /// The same in the coordinates of another view: the same bend, or their own there.
    pub(crate) fn moved(&self, from: &View, to: &View) -> Option<Self> {
        match self {
            Self::Bent(bend) => Some(Self::Bent(bend.moved(from, to))),
            Self::Own(own) => Own::new(&own.scales, to).map(Self::Own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{bend::tests::wavy, view::Region},
        *,
    };

    fn coordinates(shift: f64) -> Straight {
        let scales = [Scale::Flat, Scale::Latent, Scale::Exponential];
        let region =
            Region { centre: vec![shift, 0.3, -0.2], covariance: vec![0.5, 0.3, 0.1, 0.3, 0.8, 0.2, 0.1, 0.2, 0.4] };
        Straight::Own(Own::new(&scales, &View::new(region).unwrap()).unwrap())
    }

    #[test]
    fn normal_priors_have_no_other_coordinates() {
        let view = View::new(Region::round(&[0.0, 1.0], 0.5)).unwrap();
        assert_eq!(Own::new(&[Scale::Latent; 2], &view), None);
    }

    #[test]
    fn derivatives_are_pulled_back_and_the_stretch_is_their_determinant() {
        let straight = coordinates(0.2);
        let jet = |x: &[f64]| {
            let (value, gradient, hessian) = wavy(&straight.at(x));
            straight.pull(x, (value, &gradient, &hessian))
        };
        let moved = |x: &[f64], a: usize, h: f64| {
            let mut y = x.to_vec();
            y[a] += h;
            y
        };
        let stretch = |x: &[f64]| straight.straighten(&Points::from_rows(&[x]).unwrap()).1[0];
        let determinant = |x: &[f64]| {
            let column = |a: usize| -> Vec<f64> {
                let (up, down) = (straight.at(&moved(x, a, 1e-5)), straight.at(&moved(x, a, -1e-5)));
                up.iter().zip(&down).map(|(u, d)| (u - d) / 2e-5).collect()
            };
            let (a, b, c) = (column(0), column(1), column(2));
            a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) + c[0] * (a[1] * b[2] - a[2] * b[1])
        };
        let middle = [0.0; 3];
        assert!(straight.at(&middle).iter().all(|z| z.abs() < 1e-12));
        for x in [[0.4, 1.0, 0.7], [-1.3, 0.2, -2.0], [2.0, -1.0, 0.1]] {
            let (value, gradient, hessian) = jet(&x);
            assert!((value - wavy(&straight.at(&x)).0 - stretch(&x)).abs() < 1e-12 * (1.0 + value.abs()));
            // Both but for the same constant.
            let ratio = (determinant(&x) / determinant(&middle)).ln();
            assert!((ratio - stretch(&x) + stretch(&middle)).abs() < 1e-7, "{ratio}");
            let close = |exact: f64, slope: f64| (exact - slope).abs() < 1e-5 * (1.0 + exact.abs());
            for a in 0..3 {
                let (up, down) = (jet(&moved(&x, a, 1e-5)), jet(&moved(&x, a, -1e-5)));
                assert!(close(gradient[a], (up.0 - down.0) / 2e-5), "{a}");
                for b in 0..3 {
                    assert!(close(hessian[a * 3 + b], (up.1[b] - down.1[b]) / 2e-5), "{a} {b}");
                }
            }
        }
    }
}
