//! `{name}` in the arguments of a command.
//!
//! A name in braces stands for a value. Doubled braces around a name stand for single ones. Braces around anything else (a script for
//! awk, a piece of JSON) stay as they are.

use super::protocol::decimal;
use crate::error::{Error, Result};
use crate::types::Job;

/// Names in braces that are no parameters, with what they become.
const OWN: [(&str, Piece); 4] = [("in", Piece::In), ("out", Piece::Out), ("id", Piece::Id), ("seed", Piece::Seed)];

/// A part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it stands.
    Text(String),
    /// The path of the file with the question.
    In,
    /// The path of the file for the answer.
    Out,
    /// The number of the job.
    Id,
    /// The seed of the job.
    Seed,
    /// A coordinate of the point.
    Parameter(usize),
}

/// An argument in pieces.
pub(super) type Template = Vec<Piece>;

/// An argument in pieces, for points whose coordinates are called `names`; in a `script` for a shell, `${name}` is the shell's.
///
/// # Errors
/// [`Error::Invalid`] for a name in braces that is nobody's, or that of a parameter and of something else.
pub(super) fn parse(argument: &str, names: &[String], script: bool) -> Result<Template> {
    let mut pieces = Vec::new();
    let (mut rest, mut text) = (argument, String::new());
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        let (open, inner) = opening(&rest[at..]);
        let Some(slot) = inner.and_then(Slot::read) else {
            text.push_str(&rest[at..at + open]);
            rest = &rest[at + open..];
            continue;
        };
        let known = OWN.iter().any(|(own, _)| *own == slot.name) || names.iter().any(|name| name == slot.name);
        if !slot.exact && !known || script && open == 1 && text.ends_with('$') {
            text.push_str(&rest[at..at + open]);
            rest = &rest[at + open..];
            continue;
        }
        // Pairs of braces stand for single ones, as long as both sides have them; what is over is text.
        let after = at + open + slot.inner.len();
        let close = rest[after..].bytes().take_while(|&b| b == b'}').count();
        let (pairs, spare, closed) = if close >= open { (open / 2, 0, open) } else { (0, open - 1, 1) };
        text.push_str(&"{".repeat(pairs + spare));
        if close >= open && open % 2 == 0 {
            text.push_str(slot.inner);
        } else {
            let piece = slot.piece(argument, names)?;
            pieces.extend((!text.is_empty()).then(|| Piece::Text(std::mem::take(&mut text))));
            pieces.push(piece);
        }
        text.push_str(&"}".repeat(pairs));
        let end = after + closed;
        rest = &rest[end..];
    }
    text.push_str(rest);
    pieces.extend((!text.is_empty() || pieces.is_empty()).then_some(Piece::Text(text)));
    Ok(pieces)
}

/// How many braces a text begins with, and what is between them and the next closing one.
fn opening(text: &str) -> (usize, Option<&str>) {
    let open = text.bytes().take_while(|&b| b == b'{').count();
    let inner = text[open..].find(['{', '}']).filter(|&at| text[open + at..].starts_with('}'));
    (open, inner.map(|at| &text[open..open + at]))
}

/// Something in braces that may stand for a value.
struct Slot<'a> {
    inner: &'a str,
    name: &'a str,
    /// Whether there is nothing beside the name: no blanks, no format.
    exact: bool,
}

impl<'a> Slot<'a> {
    fn read(inner: &'a str) -> Option<Self> {
        let trimmed = inner.trim();
        let name = trimmed.split([':', '!']).next().unwrap_or(trimmed).trim_end();
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(fits);
        is_name.then_some(Self { inner, name, exact: name == inner })
    }

    fn piece(&self, argument: &str, names: &[String]) -> Result<Piece> {
        let refuse = |expected: String| Err(Error::invalid("command", argument, expected));
        let own = OWN.iter().find(|(own, _)| *own == self.name).map(|(_, piece)| piece);
        let parameter = names.iter().position(|name| name == self.name);
        match (own, parameter) {
            _ if !self.exact => refuse(format!(
                "{{{}}} instead of {{{}}}: values are written in full precision; {{{{{}}}}} stands for the text itself",
                self.name, self.inner, self.inner
            )),
            (Some(_), Some(_)) => {
                refuse(format!("another name for the parameter {:?}: {{{0}}} has a meaning of its own", self.name))
            }
            (Some(own), None) => Ok(own.clone()),
            (None, Some(k)) => Ok(Piece::Parameter(k)),
            (None, None) => {
                let known: Vec<String> = names
                    .iter()
                    .map(String::as_str)
                    .chain(OWN.map(|(own, _)| own))
                    .map(|n| format!("{{{n}}}"))
                    .collect();
                refuse(format!(
                    "one of {} in braces, and not {{{}}}; {{{{{}}}}} stands for the text itself",
                    known.join(", "),
                    self.name,
                    self.name
                ))
            }
        }
    }
}

/// The argument for a job; `files` are the paths of the question and of the answer.
#[cfg_attr(not(unix), allow(dead_code))]
pub(super) fn fill_in(template: &Template, job: &Job, files: Option<&[String; 2]>) -> String {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::In => files.map_or_else(String::new, |[input, _]| input.clone()),
        Piece::Out => files.map_or_else(String::new, |[_, output]| output.clone()),
        Piece::Id => job.id.to_string(),
        Piece::Seed => job.seed.to_string(),
        Piece::Parameter(k) => job.theta.get(*k).map_or_else(String::new, |&value| decimal(value)),
    };
    template.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::JobId;
    use proptest::prelude::*;

    fn filled(argument: &str, script: bool) -> Result<String, String> {
        let names = ["k", "c", "x[0]", "log_z.1"].map(String::from);
        let job = Job { id: JobId(3), theta: vec![0.1 + 0.2, -1e-300, 1.0, 2e21], seed: 17 };
        let files = ["/tmp/q".to_owned(), "/tmp/a".to_owned()];
        parse(argument, &names, script).map(|t| fill_in(&t, &job, Some(&files))).map_err(|e| e.to_string())
    }

    #[test]
    fn names_become_values_in_full_precision() {
        for (argument, expected) in [
            ("{k}", "0.30000000000000004"),
            ("--c={c}", "--c=-1e-300"),
            ("{x[0]},{log_z.1}", "1.0,2e+21"),
            ("{k}{k}", "0.300000000000000040.30000000000000004"),
            ("{in}:{out}", "/tmp/q:/tmp/a"),
            ("job{id}-{seed}", "job3-17"),
            ("", ""),
            (r#"{"a": {"k": {k}}}"#, r#"{"a": {"k": 0.30000000000000004}}"#),
        ] {
            assert_eq!(filled(argument, false).unwrap(), expected, "{argument}");
        }
    }

    #[test]
    fn doubled_braces_stand_for_single_ones_and_others_stay() {
        for (argument, expected) in [
            ("{{k}}", "{k}"),
            ("{{no_such}}", "{no_such}"),
            ("{{k:.3f}}", "{k:.3f}"),
            ("{{{k}}}", "{0.30000000000000004}"),
            ("{{{{k}}}}", "{{k}}"),
            ("{{k}", "{0.30000000000000004"),
            ("{k}}", "0.30000000000000004}"),
            ("{}", "{}"),
            ("{", "{"),
            ("{k", "{k"),
            ("k}", "k}"),
            ("{ printf \"%d\\n\", $1 }", "{ printf \"%d\\n\", $1 }"),
            ("{a,b}", "{a,b}"),
            ("{3}", "{3}"),
            ("{kk : 1}", "{kk : 1}"),
        ] {
            assert_eq!(filled(argument, false).unwrap(), expected, "{argument}");
        }
    }

    #[test]
    fn names_of_nobody_and_formats_are_refused_with_a_remedy() {
        for (argument, said) in [
            ("{kk}", "one of {k}, {c}, {x[0]}, {log_z.1}, {in}, {out}, {id}, {seed} in braces, and not {kk}"),
            ("{print}", "{{print}} stands for the text itself"),
            ("{k:.3f}", "{k} instead of {k:.3f}"),
            ("{ k }", "{k} instead of { k }"),
            ("${HOME}", "not {HOME}"),
        ] {
            let error = filled(argument, false).unwrap_err();
            assert!(error.contains(said) && error.contains(&format!("{argument:?}")), "{error} lacks {said}");
        }
        let both = parse("{in}", &["in".to_owned()], false).unwrap_err().to_string();
        assert!(both.contains("another name for the parameter \"in\""), "{both}");
        parse("{k}", &["in".to_owned(), "k".to_owned()], false).unwrap();
    }

    #[test]
    fn variables_of_a_shell_are_the_shells() {
        assert_eq!(filled("./sim {k} ${k} ${HOME}", true).unwrap(), "./sim 0.30000000000000004 ${k} ${HOME}");
        assert!(filled("./sim {K}", true).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}ké:! $0]{0,16}", script: bool) {
            let _ = filled(&text, script);
        }
    }
}
