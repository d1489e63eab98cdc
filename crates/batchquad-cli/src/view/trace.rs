//! A line with its error bar in braille dots.

use batchquad_plot::compact;

/// The dots of a braille cell, by column and row, as bits of its number.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// Columns for the numbers at the left.
const MARGIN: usize = 12;

/// `(x, y, sd)` as rows of braille: the line of y, and dots at y ± sd. Nothing for fewer than two points or no room.
pub fn rows(points: &[(f64, f64, f64)], width: usize, height: usize) -> Vec<String> {
    let finite: Vec<(f64, f64, f64)> =
        points.iter().copied().filter(|(x, y, sd)| x.is_finite() && y.is_finite() && sd.is_finite()).collect();
    let (Some(first), Some(last)) = (finite.first(), finite.last()) else { return Vec::new() };
    if finite.len() < 2 || width < MARGIN + 10 || height < 2 || last.0 <= first.0 {
        return Vec::new();
    }
    // The first beliefs may be far off: the later three quarters set the range.
    let later = &finite[finite.len() / 4..];
    let fold = |(low, high): (f64, f64), (_, y, sd): &(f64, f64, f64)| (low.min(y - sd), high.max(y + sd));
    let (low, high) = later.iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold);
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
    let (columns, dots) = (2 * (width - MARGIN), 4 * height);
    let mut cells = vec![0u32; (width - MARGIN) * height];
    let mut set = |column: usize, y: f64| {
        let up = (y - low) / (high - low);
        if (0.0..=1.0).contains(&up) {
            let row = ((1.0 - up) * (dots - 1) as f64).round() as usize;
            cells[row / 4 * (width - MARGIN) + column / 2] |= DOTS[column % 2][row % 4];
        }
    };
    let mut before: Option<f64> = None;
    for column in 0..columns {
        let x = first.0 + (last.0 - first.0) * column as f64 / (columns - 1) as f64;
        let next = finite.partition_point(|p| p.0 < x).clamp(1, finite.len() - 1);
        let (a, b) = (finite[next - 1], finite[next]);
        let t = if b.0 > a.0 { ((x - a.0) / (b.0 - a.0)).clamp(0.0, 1.0) } else { 1.0 };
        let (y, sd) = (a.1 + t * (b.1 - a.1), a.2 + t * (b.2 - a.2));
        // Steep pieces are filled, so that the line holds together.
        let from = before.unwrap_or(y);
        for step in 0..=dots {
            set(column, from + (y - from) * step as f64 / dots as f64);
        }
        before = Some(y);
        if column % 4 == 0 {
            set(column, y - sd);
            set(column, y + sd);
        }
    }
    let label = |row: usize| match row {
        0 => compact(high, 6),
        r if r + 1 == height => compact(low, 6),
        _ => String::new(),
    };
    (0..height)
        .map(|row| {
            let dots = &cells[row * (width - MARGIN)..(row + 1) * (width - MARGIN)];
            let text: String = dots.iter().map(|bits| char::from_u32(0x2800 + bits).unwrap_or(' ')).collect();
            format!("{:>1$} {text}", label(row), MARGIN - 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_line_goes_from_the_lower_left_to_the_upper_right() {
        let points: Vec<(f64, f64, f64)> = (0..40).map(|i| (f64::from(i), f64::from(i), 0.0)).collect();
        let rows = rows(&points, 52, 6);
        assert_eq!(rows.len(), 6);
        assert!(rows.iter().all(|row| row.chars().count() == 52));
        assert!(rows[0].starts_with("         39 ") && rows[5].starts_with("         10 "), "{rows:#?}");
        let filled = |row: &str| row.chars().skip(12).position(|c| c != '\u{2800}');
        assert!(filled(&rows[0]) > filled(&rows[5]), "{rows:#?}");
    }

    #[test]
    fn no_points_bad_points_and_no_room_draw_nothing_or_something_and_never_panic() {
        assert!(rows(&[], 80, 8).is_empty());
        assert!(rows(&[(1.0, 2.0, 0.1)], 80, 8).is_empty());
        assert!(rows(&[(1.0, 2.0, 0.1), (2.0, 2.0, 0.1)], 5, 8).is_empty());
        assert!(rows(&[(1.0, f64::NAN, 0.1), (2.0, 2.0, 0.1)], 80, 8).is_empty());
        assert_eq!(rows(&[(1.0, 2.0, 0.0), (1.0, 2.0, 0.0), (2.0, 2.0, 0.0)], 80, 4).len(), 4);
        assert_eq!(rows(&[(1.0, -1e300, 0.0), (2.0, 1e300, 1e300)], 80, 4).len(), 4);
    }
}
