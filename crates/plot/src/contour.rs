//! Contours of a function on a grid, by marching squares.

/// The closed outlines of `{f ≥ level}`, for the even-odd rule. `f(i, j)` is the function at `(x[i], y[j])`; what is not finite is outside. Between grid points the
/// function is taken as linear. Cost `O(x.len() · y.len())`.
pub(crate) fn outlines(x: &[f64], y: &[f64], f: impl Fn(usize, usize) -> f64, level: f64) -> Vec<Vec<(f64, f64)>> {
    let (nx, ny) = (x.len(), y.len());
    if nx < 2 || ny < 2 {
        return Vec::new();
    }
    // A ring of outside points of zero width around the grid closes every outline.
    let value = |i: usize, j: usize| {
        if i == 0 || j == 0 || i > nx || j > ny {
            return f64::NEG_INFINITY;
        }
        let v = f(i - 1, j - 1);
        if v.is_finite() { v } else { f64::NEG_INFINITY }
    };
    let place = |i: usize, j: usize| (x[i.clamp(1, nx) - 1], y[j.clamp(1, ny) - 1]);
    // An edge is named by its lower left point and whether it goes right (0) or up (1).
    let name = |i: usize, j: usize, up: usize| (i * (ny + 2) + j) * 2 + up;
    let cross = |edge: usize| {
        let (i, j) = (edge / 2 / (ny + 2), edge / 2 % (ny + 2));
        let (k, l) = if edge.is_multiple_of(2) { (i + 1, j) } else { (i, j + 1) };
        let (a, b) = (value(i, j), value(k, l));
        let t = match (a.is_finite(), b.is_finite()) {
            (true, true) => ((level - a) / (b - a)).clamp(0.0, 1.0),
            (true, false) => 0.0,
            _ => 1.0,
        };
        let (p, q) = (place(i, j), place(k, l));
        (p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1))
    };
    // Each crossed edge leads to one other, with the inside on the left.
    const NONE: usize = usize::MAX;
    let mut next = vec![NONE; (nx + 2) * (ny + 2) * 2];
    for i in 0..=nx {
        for j in 0..=ny {
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let inside = corners.map(|(i, j)| value(i, j) >= level);
            let edges = [name(i, j, 0), name(i + 1, j, 1), name(i, j + 1, 0), name(i, j, 1)];
            let middle = corners.iter().map(|(i, j)| value(*i, *j)).sum::<f64>() / 4.0 >= level;
            // Going round anticlockwise, an outline leaves the square where inside turns to outside and enters where outside turns to inside.
            for leave in (0..4).filter(|&e| !inside[e] && inside[(e + 1) % 4]) {
                let turns = |back: bool| {
                    (1..4)
                        .map(|s| if back { (leave + 4 - s) % 4 } else { (leave + s) % 4 })
                        .find(|&e| inside[e] && !inside[(e + 1) % 4])
                };
                // Two inside corners across from each other are joined when the middle is inside.
                if let Some(enter) = turns(middle) {
                    next[edges[enter]] = edges[leave];
                }
            }
        }
    }
    let mut loops = Vec::new();
    for start in 0..next.len() {
        let mut outline = Vec::new();
        let mut edge = start;
        while next[edge] != NONE {
            outline.push(cross(edge));
            edge = std::mem::replace(&mut next[edge], NONE);
        }
        outline.dedup();
        if outline.len() > 2 {
            loops.push(outline);
        }
    }
    loops
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signed area of all outlines.
    fn area(loops: &[Vec<(f64, f64)>]) -> f64 {
        let of = |l: &Vec<(f64, f64)>| -> f64 {
            (0..l.len())
                .map(|i| {
                    let (p, q) = (l[i], l[(i + 1) % l.len()]);
                    0.5 * (p.0 * q.1 - q.0 * p.1)
                })
                .sum()
        };
        loops.iter().map(of).sum()
    }

    fn grid(n: usize, half: f64) -> Vec<f64> {
        (0..n).map(|i| half * (2.0 * i as f64 / (n - 1) as f64 - 1.0)).collect()
    }

    #[test]
    fn discs_rings_and_cut_regions_have_their_area() {
        let (x, y) = (grid(201, 2.0), grid(161, 2.0));
        let radius = |i: usize, j: usize| x[i].hypot(y[j]);
        // Chords against arcs of so fine a grid: below one in a thousand.
        let disc = outlines(&x, &y, |i, j| -radius(i, j), -1.5);
        assert_eq!(disc.len(), 1);
        assert!((area(&disc).abs() / (std::f64::consts::PI * 2.25) - 1.0).abs() < 1e-3, "{}", area(&disc));
        let ring = outlines(&x, &y, |i, j| -(radius(i, j) - 1.0).abs(), -0.5);
        assert_eq!(ring.len(), 2);
        assert!((area(&ring).abs() / (std::f64::consts::PI * 2.0) - 1.0).abs() < 2e-3, "{}", area(&ring));
        let all = outlines(&x, &y, |_, _| 1.0, 0.5);
        assert!((area(&all).abs() - 16.0).abs() < 1e-12);
        let none = outlines(&x, &y, |i, _| if i < 100 { f64::NAN } else { 0.0 }, 0.5);
        assert!(none.is_empty());
        let half = outlines(&x, &y, |i, _| x[i], 0.31);
        assert!((area(&half).abs() - 1.69 * 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_saddle_is_resolved_and_every_outline_closes() {
        let (x, y) = (grid(2, 1.0), grid(2, 1.0));
        let saddle = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
        assert_eq!(outlines(&x, &y, saddle, 0.4).len(), 1);
        assert_eq!(outlines(&x, &y, saddle, 0.6).len(), 2);
        let (x, y) = (grid(40, 3.0), grid(40, 3.0));
        let waves = outlines(&x, &y, |i, j| (3.0 * x[i]).sin() * (3.0 * y[j]).sin(), 0.0);
        let mut sum = 0.0;
        for i in 0..39 {
            for j in 0..39 {
                let (a, b) = (0.5 * (x[i] + x[i + 1]), 0.5 * (y[j] + y[j + 1]));
                sum += f64::from(u8::from((3.0 * a).sin() * (3.0 * b).sin() > 0.0)) * (6.0_f64 / 39.0).powi(2);
            }
        }
        assert!((area(&waves).abs() / sum - 1.0).abs() < 0.05, "{} {sum}", area(&waves));
    }
}
