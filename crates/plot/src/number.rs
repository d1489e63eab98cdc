//! Numbers as people read them.

/// A number to so many significant digits without trailing zeros: `0.25`, `−14.02`, `1.5×10⁻⁹`.
///
/// ```
/// use batchquad_plot::compact;
/// assert_eq!(compact(-0.250, 3), "−0.25");
/// assert_eq!(compact(123456.0, 3), "123000");
/// assert_eq!(compact(1.5e-9, 3), "1.5×10⁻⁹");
/// ```
#[must_use]
pub fn compact(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "not a number".into()
        } else if value > 0.0 {
            "∞".into()
        } else {
            "−∞".into()
        };
    }
    if value == 0.0 {
        return "0".into();
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    // What rounding makes of the exponent counts: 9.99 to two digits is 10.
    let exponent: i32 = scientific.split('e').nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    if (-4..7).contains(&exponent) {
        let decimals = digits as i32 - 1 - exponent;
        if decimals >= 0 {
            return plain(value, decimals as usize, true);
        }
        let unit = 10f64.powi(-decimals);
        return plain((value / unit).round() * unit, 0, false);
    }
    power(value, digits - 1, true)
}

/// `value` with so many decimals, a true minus sign, and no sign on zero.
fn plain(value: f64, decimals: usize, trim: bool) -> String {
    let mut text = format!("{value:.decimals$}");
    if trim && text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// `value` as mantissa and power of ten.
fn power(value: f64, decimals: usize, trim: bool) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = plain(mantissa.parse().unwrap_or(0.0), decimals, trim);
    let ten = power_of_ten(exponent.parse().unwrap_or(0));
    match mantissa.as_str() {
        "1" => ten,
        "−1" => format!("−{ten}"),
        _ => format!("{mantissa}×{ten}"),
    }
}

/// `10ⁿ`.
pub(crate) fn power_of_ten(n: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if n < 0 { "⁻" } else { "" };
    let digits: String =
        n.unsigned_abs().to_string().bytes().map(|b| DIGITS[usize::from(b.saturating_sub(b'0')) % 10]).collect();
    format!("10{sign}{digits}")
}

/// Labels of evenly spaced ticks: as many decimals as the step needs, plain or by powers of ten, whichever is shorter.
pub(crate) fn labels(ticks: &[f64], step: f64) -> Vec<String> {
    let largest = ticks.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
    if largest == 0.0 || step <= 0.0 {
        return ticks.iter().map(|t| compact(*t, 6)).collect();
    }
    // A step of 2.5 needs one decimal more than its magnitude says.
    let exponent = step.log10().floor() as i32;
    let mantissa = step / 10f64.powi(exponent);
    let last = if (mantissa - mantissa.round()).abs() < 1e-6 { exponent } else { exponent - 1 };
    let decimals = (-last).max(0) as usize;
    let top = largest.log10().floor() as i32;
    let write_all = |write: &dyn Fn(f64) -> String| -> Vec<String> { ticks.iter().map(|t| write(*t)).collect() };
    let by_power = write_all(&|t| power(t, (top - last).clamp(0, 16) as usize, true));
    if decimals > 18 || top > 18 {
        return by_power;
    }
    let plainly = write_all(&|t| plain(t, decimals, false));
    let longest = |labels: &[String]| labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    if longest(&plainly) <= longest(&by_power).max(6) { plainly } else { by_power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_signed_well() {
        for (value, digits, text) in [
            (0.0, 3, "0"),
            (-0.0, 3, "0"),
            (1.0, 3, "1"),
            (-14.019_41, 4, "−14.02"),
            (9.99, 2, "10"),
            (0.000_123_4, 3, "0.000123"),
            (1e7, 3, "10⁷"),
            (-1e-12, 2, "−10⁻¹²"),
            (2.5e300, 2, "2.5×10³⁰⁰"),
            (987_654.0, 2, "990000"),
            (f64::NEG_INFINITY, 3, "−∞"),
        ] {
            assert_eq!(compact(value, digits), text);
        }
    }

    #[test]
    fn labels_have_the_decimals_of_their_step() {
        assert_eq!(labels(&[0.0, 0.2, 0.4, 0.600_000_000_000_000_1], 0.2), ["0.0", "0.2", "0.4", "0.6"]);
        assert_eq!(labels(&[2.5, 5.0, 7.5], 2.5), ["2.5", "5.0", "7.5"]);
        assert_eq!(labels(&[-20.0, 0.0, 20.0], 20.0), ["−20", "0", "20"]);
        assert_eq!(labels(&[0.0, 2e-9, 4e-9], 2e-9), ["0", "2×10⁻⁹", "4×10⁻⁹"]);
        assert_eq!(labels(&[-1_000_000.02, -1_000_000.0], 0.02), ["−1000000.02", "−1000000.00"]);
        assert_eq!(labels(&[1e20, 2e20], 1e20), ["10²⁰", "2×10²⁰"]);
    }
}
