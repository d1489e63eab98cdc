//! Times and numbers in words.

use std::collections::BTreeMap;

use batchquad::evaluate::clean;
use batchquad_plot::compact;

/// A log-likelihood, with the standard deviation of its noise where that is known.
pub fn noisy(value: f64, sd: Option<f64>) -> String {
    let noise = sd.map(|sd| format!(" ± {}", compact(sd, 2))).unwrap_or_default();
    format!("log-likelihood {}{noise}", compact(value, 6))
}

/// `1` evaluation, `2` evaluations.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Milliseconds since 1970 as `2026-11-16 00:35:52 UTC`.
pub fn date(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the leap day is the last of a year; an era of 400 years has 146 097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Seconds in a unit that suits `total` of them: the divisor and the unit's name.
pub fn unit_of_time(total: f64) -> (f64, &'static str) {
    match total {
        t if t < 0.5 => (1e-3, "ms"),
        t if t < 300.0 => (1.0, "s"),
        t if t < 3.0 * 3600.0 => (60.0, "min"),
        t if t < 4.0 * 86_400.0 => (3600.0, "h"),
        _ => (86_400.0, "days"),
    }
}

/// `−14.019 ± 0.012`, with a true minus sign and the digits that the sd makes meaningful.
pub fn plus_minus(value: f64, sd: f64) -> String {
    crate::output::plus_minus(value, sd).replace('-', "−")
}

/// A number with the digits that an sd makes meaningful.
pub fn rounded(value: f64, sd: f64) -> String {
    crate::output::rounded(value, sd).replace('-', "−")
}

/// What a page calls a parameter: its label as plain text, or its name.
pub fn label(labels: &BTreeMap<String, String>, name: &str) -> String {
    clean(&labels.get(name).map_or_else(|| name.to_owned(), |label| in_plain_text(label)))
}

/// Formulas between dollar signs as plain text: Greek letters, and no more of TeX than its commands for these.
fn in_plain_text(label: &str) -> String {
    let mut text = String::new();
    for (i, piece) in label.split('$').enumerate() {
        if i % 2 == 0 {
            text.push_str(piece);
            continue;
        }
        let mut rest = piece;
        while let Some(at) = rest.find('\\') {
            text.push_str(&rest[..at]);
            let word: String = rest[at + 1..].chars().take_while(char::is_ascii_alphabetic).collect();
            rest = &rest[at + 1 + word.len()..];
            // TeX ends a command at the first blank and drops it.
            rest = if word.is_empty() { rest } else { rest.trim_start() };
            match GREEK.iter().find(|(name, _)| *name == word) {
                Some((_, letter)) => text.push(*letter),
                // \mathrm, \rm, \, and the like say how to print, not what.
                None if word.is_empty() => rest = rest.strip_prefix([',', ';', '!', ' ']).unwrap_or(rest),
                None => {}
            }
        }
        text.push_str(rest);
    }
    text.retain(|c| !matches!(c, '{' | '}'));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const GREEK: [(&str, char); 33] = [
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("epsilon", 'ε'),
    ("varepsilon", 'ε'),
    ("zeta", 'ζ'),
    ("eta", 'η'),
    ("theta", 'θ'),
    ("iota", 'ι'),
    ("kappa", 'κ'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("nu", 'ν'),
    ("xi", 'ξ'),
    ("pi", 'π'),
    ("rho", 'ρ'),
    ("sigma", 'σ'),
    ("tau", 'τ'),
    ("phi", 'φ'),
    ("varphi", 'φ'),
    ("chi", 'χ'),
    ("psi", 'ψ'),
    ("omega", 'ω'),
    ("Gamma", 'Γ'),
    ("Delta", 'Δ'),
    ("Theta", 'Θ'),
    ("Lambda", 'Λ'),
    ("Sigma", 'Σ'),
    ("Phi", 'Φ'),
    ("Psi", 'Ψ'),
    ("Omega", 'Ω'),
    ("odot", '⊙'),
];

/// `exp(log_value)` as a power of ten, also where it would underflow, with one digit more than its relative error `sd` leaves certain.
pub fn exponential(log_value: f64, sd: f64) -> String {
    let digits = if sd > 0.0 { (2.0 - sd.log10().ceil()).clamp(2.0, 8.0) as usize } else { 3 };
    let tens = log_value / std::f64::consts::LN_10;
    let exponent = tens.floor();
    if (-4.0..6.0).contains(&exponent) || !tens.is_finite() {
        return compact(log_value.exp(), digits);
    }
    if exponent.abs() > 300.0 {
        let mantissa = compact(10f64.powf(tens - exponent), digits);
        let power = compact(1e7, 1).replace("10⁷", &format!("10^{exponent:.0}")).replace('-', "−");
        return format!("{mantissa}×{power}");
    }
    compact(log_value.exp(), digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @S '+%F %T'` for each.
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_164_799, "2024-02-28 23:59:59 UTC"),
            (1_794_786_860, "2026-11-15 23:54:20 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds * 1000 + 7), text);
        }
    }

    #[test]
    fn evidences_far_below_the_smallest_double_are_written() {
        assert_eq!(exponential(0.0, 0.1), "1");
        assert_eq!(exponential(-14.019_41, 0.01), "8.155×10⁻⁷");
        // ± 0.041 %.
        assert_eq!(exponential(4137.26_f64.ln(), 0.000_41), "4137.3");
        // e^-1000000 = 10^-434294.48…; 10^0.518 = 3.30.
        assert_eq!(exponential(-1e6, 0.1), "3.3×10^−434295");
    }

    #[test]
    fn labels_are_plain_text() {
        for (label, plain) in [
            (r"$\alpha$ [km/s]", "α [km/s]"),
            (r"$\Omega_{\rm m}$", "Ω_m"),
            ("mass of the star", "mass of the star"),
            (r"$M_\odot$ \x", r"M_⊙ \x"),
        ] {
            assert_eq!(in_plain_text(label), plain);
        }
        assert_eq!(label(&BTreeMap::from([("a".into(), "A\x1b[2J".into())]), "a"), "A[2J");
        assert_eq!(label(&BTreeMap::new(), "a"), "a");
    }
}
