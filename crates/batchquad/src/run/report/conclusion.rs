//! What a comparison of models says, in a sentence.

use crate::{infer::compare::Standing, run::diagnostics::Level};

/// A model in a comparison.
#[derive(Debug, Clone)]
pub struct Contender<'a> {
    /// What it is called.
    pub name: &'a str,
    /// How it fares against the others.
    pub standing: &'a Standing,
    /// What the diagnostics make of its evidence; `None` where only the number is known.
    pub verdict: Option<Level>,
}

/// A log Bayes factor below this says next to nothing: odds of less than three to one.
const SLIGHT: f64 = 1.0;

/// What the comparison says: which model is the most probable, which cannot be told apart from it, and whose evidence
/// is not to be trusted.
///
/// Models are told apart when their log Bayes factor is more than one and more than twice its standard deviation.
#[must_use]
pub fn conclusion(models: &[Contender<'_>]) -> String {
    let (doubtful, sound): (Vec<&Contender<'_>>, Vec<_>) =
        models.iter().partition(|model| model.verdict == Some(Level::DoNotTrust));
    let doubts = match doubtful.len() {
        0 => None,
        1 => Some(format!("the log Z of {} is not to be trusted", doubtful[0].name)),
        n if n == models.len() => Some("none of the log Z values is to be trusted".to_owned()),
        _ => Some(format!("the log Z values of {} are not to be trusted", list(&doubtful))),
    };
    let Some(doubts) = doubts else { return leader(&sound, models.len()) };
    match sound.len() {
        0 | 1 => format!("No conclusion: {doubts}"),
        _ => format!("No conclusion about all models: {doubts}; of the others, {}", leader(&sound, models.len())),
    }
}

/// The best of some models, and what ties with it; `all` is how many are compared.
fn leader(models: &[&Contender<'_>], all: usize) -> String {
    let best = models.iter().max_by(|a, b| a.standing.log_bayes_factor.total_cmp(&b.standing.log_bayes_factor));
    let Some(best) = best else { return "There is nothing to compare".into() };
    let apart = |model: &Contender<'_>| {
        let factor = best.standing.log_bayes_factor - model.standing.log_bayes_factor;
        // Of the best of all models the sd is zero; of another one that leads, both count.
        let sd = if best.standing.log_bayes_factor_sd > 0.0 {
            model.standing.log_bayes_factor_sd.hypot(best.standing.log_bayes_factor_sd)
        } else {
            model.standing.log_bayes_factor_sd
        };
        factor > SLIGHT && factor > 2.0 * sd
    };
    let tied: Vec<&Contender<'_>> =
        models.iter().copied().filter(|model| std::ptr::eq(*model, *best) || !apart(model)).collect();
    if tied.len() > 1 {
        return format!("{} cannot be told apart", list(&tied));
    }
    if models.len() < all {
        return format!("{} is the most probable", best.name);
    }
    format!("{} is the most probable, with {:.1} %", best.name, 100.0 * best.standing.probability)
}

/// `a, b and c`.
fn list(models: &[&Contender<'_>]) -> String {
    let names: Vec<&str> = models.iter().map(|model| model.name).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::compare;

    fn said(models: &[(&str, f64, f64, Option<Level>)]) -> String {
        let evidences: Vec<(f64, f64)> = models.iter().map(|m| (m.1, m.2)).collect();
        let standings = compare(&evidences).unwrap();
        let contenders: Vec<Contender<'_>> = models
            .iter()
            .zip(&standings)
            .map(|(m, standing)| Contender { name: m.0, standing, verdict: m.3 })
            .collect();
        conclusion(&contenders)
    }

    #[test]
    fn a_model_leads_ties_or_is_not_to_be_trusted() {
        let (fine, bad) = (Some(Level::Fine), Some(Level::DoNotTrust));
        assert_eq!(said(&[("a", -10.0, 0.1, fine), ("b", -13.0, 0.1, None)]), "a is the most probable, with 95.2 %");
        assert_eq!(said(&[("a", -10.0, 0.1, fine), ("b", -10.5, 0.1, fine)]), "a and b cannot be told apart");
        // Far apart for their numbers, near for their errors.
        assert_eq!(
            said(&[("a", -10.0, 2.0, fine), ("b", -13.0, 2.0, fine), ("c", -99.0, 0.1, fine)]),
            "a and b cannot be told apart"
        );
        assert_eq!(
            said(&[("a", -10.0, 0.1, bad), ("b", -13.0, 0.1, fine)]),
            "No conclusion: the log Z of a is not to be trusted"
        );
        assert_eq!(
            said(&[("a", -10.0, 0.1, bad), ("b", -13.0, 0.1, fine), ("c", -19.0, 0.1, fine)]),
            "No conclusion about all models: the log Z of a is not to be trusted; of the others, b is the most probable"
        );
        assert_eq!(
            said(&[("a", 0.0, 0.1, bad), ("b", -1.0, 0.1, bad)]),
            "No conclusion: none of the log Z values is to be trusted"
        );
    }
}
