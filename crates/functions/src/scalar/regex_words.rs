//! Regular expressions as PostgreSQL's programs write them, as those of the crate `regex`.
//!
//! | written | means | becomes |
//! |---|---|---|
//! | `\m`, `\M` | begin and end of a word | `\b{start}`, `\b{end}` |
//! | `\y`, `\Y` | begin or end of a word, neither | `\b`, `\B` |
//! | `\Z` | end of the text | `\z` |
//! | `[a&&b]`, `[a~~b]`, `[a--b]`, `[[a]` | these letters | the same with escapes: to `regex` they are operations of sets |

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// The expression in the words of `regex`; see the module.
pub fn regex_of(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains(['\\', '[']) {
        return Cow::Borrowed(pattern);
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('m') => out.push_str("\\b{start}"),
                Some('M') => out.push_str("\\b{end}"),
                Some('y') => out.push_str("\\b"),
                Some('Y') => out.push_str("\\B"),
                Some('Z') => out.push_str("\\z"),
                other => out.extend(['\\'].into_iter().chain(other)),
            },
            '[' => {
                out.push('[');
                write_brackets(&mut letters, &mut out);
            }
            _ => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// What stands behind an opening bracket, with the one that closes it.
fn write_brackets(letters: &mut Peekable<Chars<'_>>, out: &mut String) {
    if let Some(not) = letters.next_if_eq(&'^') {
        out.push(not);
    }
    // The first letter is one of the set, also where it is a bracket.
    if letters.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    let mut last = None;
    while let Some(letter) = letters.next() {
        match letter {
            ']' => {
                out.push(']');
                return;
            }
            '\\' => out.extend(['\\'].into_iter().chain(letters.next())),
            '[' if letters.peek() == Some(&':') => write_class(letters, out),
            '[' | '&' | '~' => out.extend(['\\', letter]),
            '-' if last == Some('-') => out.push_str("\\-"),
            _ => out.push(letter),
        }
        last = Some(letter);
    }
}

/// What is left of `[:alpha:]`.
fn write_class(letters: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push('[');
    for letter in letters {
        out.push(letter);
        if letter == ']' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::regex_of;

    #[test]
    fn words_and_sets_of_postgresql_are_those_of_the_crate() {
        for (pattern, regex) in [
            ("a.c", "a.c"),
            (r"\mfoo\M", r"\b{start}foo\b{end}"),
            (r"\yfoo\Y", r"\bfoo\B"),
            (r"\Aa\Z", r"\Aa\z"),
            (r"\\m", r"\\m"),
            ("[a&&b]", r"[a\&\&b]"),
            ("[a~~b]", r"[a\~\~b]"),
            ("[+--]", r"[+-\-]"),
            ("[[a]", r"[\[a]"),
            ("[]a]", r"[\]a]"),
            ("[^]a]", r"[^\]a]"),
            ("[[:alpha:]_]", "[[:alpha:]_]"),
            (r"[\]y]\y", r"[\]y]\b"),
        ] {
            assert_eq!(regex_of(pattern), regex, "{pattern}");
            regex::Regex::new(&regex_of(pattern)).expect(pattern);
        }
    }
}
