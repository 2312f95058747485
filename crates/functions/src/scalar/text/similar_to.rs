//! SIMILAR TO patterns as regular expressions.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, text};
use crate::scalar::text::texts::entry;

fn similar_to_escape(call: &Call) -> Result<ArrayRef> {
    let patterns = call.text(0);
    let escapes = (call.arrays.len() > 1).then(|| call.text(1));
    call.texts(|row, out| {
        let mut escape = escapes.as_ref().map_or("\\", |escapes| escapes.value(row)).chars();
        let first = escape.next();
        if escape.next().is_some() {
            return call.fails_as("22025", "the escape must be empty or one character");
        }
        out.push_str("^(?s:");
        write_regex(patterns.value(row), first, out);
        out.push_str(")$");
        Ok(true)
    })
}

/// Translates an SQL pattern: `%` and `_` are wildcards as in LIKE, and `.`, `^` and `$` are literal.
fn write_regex(pattern: &str, escape: Option<char>, out: &mut String) {
    let (mut letters, mut in_brackets) = (pattern.chars().peekable(), false);
    let mut last = None;
    while let Some(letter) = letters.next() {
        match letter {
            _ if Some(letter) == escape => {
                let next = letters.next().unwrap_or(letter);
                // As in PostgreSQL, an escaped letter has its regular-expression meaning: `\d` is a digit.
                out.push_str(if next.is_ascii() { "\\" } else { "" });
                out.push(next);
            }
            ']' => {
                in_brackets = false;
                out.push(letter);
            }
            // `[[:alpha:]` is a class, `[[]` is a bracket.
            '[' if in_brackets && letters.peek() != Some(&':') => out.push_str("\\["),
            '[' if in_brackets => write_class(&mut letters, out),
            '[' => {
                in_brackets = true;
                out.push(letter);
            }
            '\\' => out.push_str("\\\\"),
            // Doubled, they are set operations in `regex`.
            '&' | '~' if in_brackets => out.extend(['\\', letter]),
            '-' if in_brackets && last == Some('-') => out.push_str("\\-"),
            _ if in_brackets => out.push(letter),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '.' | '^' | '$' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
        last = Some(letter);
    }
}

/// Reads the rest of `[:alpha:]`.
fn write_class(letters: &mut impl Iterator<Item = char>, out: &mut String) {
    out.push('[');
    for letter in letters {
        out.push(letter);
        if letter == ']' {
            return;
        }
    }
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("similar_to_escape" [], "pattern[, escape]",
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Text, Takes::Text])], text,
    "A SIMILAR TO pattern as a regular expression. The escape is a backslash by default; an empty escape means none.",
    "'a.c' ~ similar_to_escape('a.%')", similar_to_escape),
]];

#[cfg(test)]
mod tests {
    use super::write_regex;

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, escape, regex) in [
            ("a%_", Some('\\'), "a.*."),
            ("(a|b)*c?", Some('\\'), "(a|b)*c?"),
            ("a.^$", Some('\\'), "a\\.\\^\\$"),
            ("\\%\\_\\d\\", Some('\\'), "\\%\\_\\d\\\\"),
            ("#%\\", Some('#'), "\\%\\\\"),
            ("\\%", None, "\\\\.*"),
            ("[a%_.[]%", Some('\\'), "[a%_.\\[].*"),
            ("[[:alpha:]_]", Some('\\'), "[[:alpha:]_]"),
            ("\\é", Some('\\'), "é"),
            ("[a&&b~~c--]", Some('\\'), "[a\\&\\&b\\~\\~c-\\-]"),
        ] {
            let mut written = String::new();
            write_regex(pattern, escape, &mut written);
            assert_eq!(written, regex, "{pattern}");
        }
    }
}
