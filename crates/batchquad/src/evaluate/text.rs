//! What strangers' programs print, made fit to be kept and shown.

/// `text` without what could move a terminal's cursor, change its state or disguise its contents: control characters
/// other than line feed and tab, and the characters that switch the direction of writing.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !(c.is_control() || turns_direction(c))).collect()
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The cleaned last lines of `text`, at most about 400 characters, on one line.
pub(super) fn one_line(text: &str) -> String {
    const MOST: usize = 400;
    let cleaned = clean(text).replace('\t', " ");
    let line = cleaned.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" | ");
    let count = line.chars().count();
    if count <= MOST { line } else { format!("… {}", line.chars().skip(count - MOST).collect::<String>()) }
}

/// The beginning of `bytes`, quoted and escaped, so that a message can name what was refused.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 100;
    let (shown, rest) = match std::str::from_utf8(bytes) {
        Ok(text) => {
            let shown: String = text.chars().take(MOST).filter(|&c| !turns_direction(c)).collect();
            (shown.escape_debug().to_string(), text.chars().count() > MOST)
        }
        Err(_) => (bytes[..bytes.len().min(MOST)].escape_ascii().to_string(), bytes.len() > MOST),
    };
    format!("\"{shown}\"{}", if rest { format!(" … ({} bytes)", bytes.len()) } else { String::new() })
}

/// The last bytes of a stream of any length.
#[cfg(unix)]
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

#[cfg(unix)]
impl Tail {
    const MOST: usize = 4096;

    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(Self::MOST)..];
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(Self::MOST);
        self.0.drain(..excess);
    }

    /// The tail as cleaned text.
    pub fn text(&self) -> String {
        clean(&String::from_utf8_lossy(&self.0)).trim().to_owned()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_direction_marks_go_lines_and_tabs_stay() {
        assert_eq!(clean("a\x1b[31mred\x07\r\n\tb\u{202e}c\u{9b}d"), "a[31mred\n\tbcd");
    }

    #[test]
    fn excerpts_are_bounded_and_escaped() {
        assert_eq!(excerpt(b"a\n\x1b"), r#""a\n\u{1b}""#);
        assert_eq!(excerpt(b"\xff\xfe"), r#""\xff\xfe""#);
        assert!(excerpt(&[b'x'; 100_000]).len() < 200);
        assert!(excerpt(&[0xff; 100_000]).len() < 500);
    }

    #[cfg(unix)]
    #[test]
    fn a_tail_keeps_the_end_and_no_more() {
        let mut tail = Tail::default();
        for i in 0..2000 {
            tail.push(format!("line {i}\n").as_bytes());
        }
        assert!(tail.text().ends_with("line 1999") && tail.text().len() <= Tail::MOST);
        tail.push(&[b'y'; 1 << 20]);
        assert_eq!(tail.text(), "y".repeat(Tail::MOST));
    }

    #[test]
    fn one_line_keeps_the_last_words() {
        assert_eq!(one_line("Traceback\n  file\nValueError: no\n"), "Traceback | file | ValueError: no");
        assert!(one_line(&"é".repeat(1000)).chars().count() <= 402);
    }
}
