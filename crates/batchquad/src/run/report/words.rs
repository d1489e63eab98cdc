//! Numbers as people read them.

/// A number with as many digits as `sd` makes meaningful.
#[must_use]
pub fn rounded(value: f64, sd: f64) -> String {
    if !(sd.is_finite() && sd > 0.0) {
        return format!("{value}");
    }
    let digits = 1.0 - sd.log10().floor();
    // Powers of ten are for numbers that are long without them, not for ordinary ones that are known very well.
    if (digits > 12.0 && value != 0.0 && value.abs() < 1e-6) || value.abs() >= 1e12 {
        let meaningful = (digits + value.abs().log10().floor()).clamp(0.0, 12.0);
        format!("{value:.*e}", meaningful as usize)
    } else {
        let text = format!("{value:.*}", digits.clamp(0.0, 12.0) as usize);
        if text.contains(|c: char| c.is_ascii_digit() && c != '0') { text } else { text.replace('-', "") }
    }
}

/// `value ± sd`.
#[must_use]
pub fn plus_minus(value: f64, sd: f64) -> String {
    format!("{} ± {}", rounded(value, sd), rounded(sd, sd))
}

/// A probability with its standard deviation to four places, more where that would read as zero; a probability that would read as zero or one is bounded
/// instead.
#[must_use]
pub fn probability(p: f64, sd: f64) -> String {
    let (low, high) = (p - sd, p + sd);
    if high < 5e-5 {
        "< 0.0001".into()
    } else if low > 1.0 - 5e-5 {
        "> 0.9999".into()
    } else if sd > 0.0 && sd < 5e-5 {
        plus_minus(p, sd)
    } else {
        format!("{p:.4} ± {sd:.4}")
    }
}

/// Seconds in the unit a person would use.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.0} ms", 1e3 * s),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_two_uncertain_digits() {
        assert_eq!(plus_minus(-14.019_41, 0.0123), "-14.019 ± 0.012");
        assert_eq!(plus_minus(-1e6, 3.2), "-1000000.0 ± 3.2");
        assert_eq!(rounded(1.5, f64::INFINITY), "1.5");
        assert_eq!(rounded(1.23e-13, 1e-14), "1.23e-13");
        assert_eq!(plus_minus(-1.5, 1.9e-21), "-1.500000000000 ± 1.9e-21");
        assert_eq!(rounded(1.234_567e15, 1e11), "1.23457e15");
        assert_eq!(rounded(-0.0, 1e-20), "0.000000000000");
        assert_eq!(duration(0.0), "0 ms");
        assert_eq!(rounded(1234.5, 100.0), "1234");
        assert_eq!(rounded(-0.001, 0.5), "0.00");
        assert_eq!(probability(1e-9, 1e-9), "< 0.0001");
        assert_eq!(probability(1.0 - 1e-9, 1e-9), "> 0.9999");
        assert_eq!(probability(0.97, 0.000_6), "0.9700 ± 0.0006");
        assert_eq!(probability(0.309_123_4, 0.000_031), "0.309123 ± 0.000031");
    }
}
