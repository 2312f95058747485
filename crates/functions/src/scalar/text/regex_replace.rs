//! `regexp_replace`, `regexp_like` and `regexp_match`, as in PostgreSQL.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use regex::{Captures, Regex};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, flag, text, texts};
use crate::scalar::text::regex_compiled::Compiled;
use crate::scalar::text::regex_places::{NUMBER_OR_ALL, START, behind, byte_of_letter, number};
use crate::scalar::text::texts::entry;

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq)]
enum ReplacementPiece {
    Text(String),
    /// A group of the match; empty if the expression has no such group.
    Group(usize),
}

/// Parses a replacement: `\1` to `\9` are groups, `\&` is the whole match, `\\` is a backslash. Any other
/// backslash is literal.
fn pieces(replacement: &str) -> Vec<ReplacementPiece> {
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut letters = replacement.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        let group = match letters.clone().next() {
            Some('&') => Some(0),
            Some(digit @ '1'..='9') => digit.to_digit(10).map(|digit| digit as usize),
            _ => None,
        };
        plain.push_str(if group.is_none() { "\\" } else { "" });
        if let Some(group) = group {
            pieces.push(ReplacementPiece::Text(std::mem::take(&mut plain)));
            pieces.push(ReplacementPiece::Group(group));
        }
        if group.is_some() || letters.as_str().starts_with('\\') {
            letters.next();
        }
    }
    pieces.push(ReplacementPiece::Text(plain));
    pieces.retain(|piece| *piece != ReplacementPiece::Text(String::new()));
    pieces
}

/// A parsed replacement, and its text.
#[derive(Default)]
struct Replacement {
    text: String,
    pieces: Vec<ReplacementPiece>,
}

impl Replacement {
    /// Parses the text if it differs.
    fn read(&mut self, text: &str) {
        if self.text != text {
            *self = Self { text: text.to_owned(), pieces: pieces(text) };
        }
    }

    fn has_groups(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, ReplacementPiece::Group(_)))
    }

    fn write(&self, found: Option<&Captures<'_>>, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                ReplacementPiece::Text(text) => out.push_str(text),
                ReplacementPiece::Group(group) => {
                    let group = found.and_then(|found| found.get(*group));
                    out.push_str(group.map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

/// Which of the matches are replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Which {
    /// The byte at which the search begins; None if it lies beyond the end of the text.
    from: Option<usize>,
    /// The number of the match to replace; None replaces all.
    nth: Option<usize>,
}

/// Writes a text with its matches replaced.
fn replace(regex: &Regex, text: &str, which: Which, by: &Replacement, out: &mut String) {
    let (mut copied, mut number, mut from) = (0, 0, which.from);
    let has_groups = by.has_groups();
    while let Some(at) = from {
        let groups = if has_groups { regex.captures_at(text, at) } else { None };
        let whole = match has_groups {
            true => groups.as_ref().and_then(|groups| groups.get(0)),
            false => regex.find_at(text, at),
        };
        let Some(whole) = whole else { break };
        number += 1;
        from = behind(text, whole);
        if which.nth.is_some_and(|nth| number < nth) {
            continue;
        }
        out.push_str(&text[copied..whole.start()]);
        by.write(groups.as_ref(), out);
        copied = whole.end();
        if which.nth.is_some() {
            break;
        }
    }
    out.push_str(&text[copied..]);
}

/// Reads the arguments after the replacement: options, or the position at which the search begins, the number of the
/// match, and options.
fn which<'a>(call: &'a Call, row: usize, text: &str) -> Result<(Which, &'a str)> {
    let options = |at: usize| if call.count() > at { call.text(at).value(row) } else { "" };
    let has_start = call.arrays.get(3).is_some_and(|it| *it.data_type() == DataType::Int64);
    if !has_start {
        let options = options(3);
        let nth = (!options.contains('g')).then_some(1);
        return Ok((Which { from: Some(0), nth }, options));
    }
    let start = number(call, 3, row, START)?;
    let nth = Some(number(call, 4, row, NUMBER_OR_ALL)?).filter(|nth| *nth > 0);
    Ok((Which { from: byte_of_letter(text, start), nth }, options(5)))
}

/// Shortens an expression such as `^https?://([^/]+)/.*$` if it is replaced by its group:
/// `.*$` always extends to the end of the text.
fn head<'a>(pattern: &'a str, options: &str, which: Which, by: &Replacement) -> Option<&'a str> {
    let head = pattern.strip_prefix('^')?.strip_suffix(".*$")?;
    let is_plain = options.is_empty() && !head.contains('|') && !head.ends_with(['\\', '[']);
    let is_all = which == Which { from: Some(0), nth: Some(1) };
    let is_group = by.pieces == [ReplacementPiece::Group(1)];
    (is_plain && is_all && is_group).then(|| &pattern[..=head.len()])
}

fn regexp_replace(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns, replacements) = (call.text(0), call.text(1), call.text(2));
    let compiled = Compiled::default();
    let replacement = std::cell::RefCell::new(Replacement::default());
    call.texts(|row, out| {
        let text = texts.value(row);
        let (which, options) = which(call, row, text)?;
        let mut replacement = replacement.borrow_mut();
        replacement.read(replacements.value(row));
        let pattern = patterns.value(row);
        if let Some(head) = head(pattern, options, which, &replacement) {
            return compiled.with(head, options, false, |regex| {
                match regex.captures(text) {
                    Some(found) => replacement.write(Some(&found), out),
                    None => out.push_str(text),
                }
                Ok(true)
            });
        }
        compiled.with(pattern, options, false, |regex| {
            replace(regex, text, which, &replacement, out);
            Ok(true)
        })
    })
}

/// Reads the options of a function that has no option g.
fn options_of_one(call: &Call, row: usize) -> Result<&str> {
    let options = if call.count() > 2 { call.text(2).value(row) } else { "" };
    match options.contains('g') {
        true => call.fails_as("22023", "the option g is not supported"),
        false => Ok(options),
    }
}

fn regexp_like(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.flags(|row| {
        compiled.with(patterns.value(row), options_of_one(call, row)?, false, |regex| {
            Ok(Some(regex.is_match(texts.value(row))))
        })
    })
}

/// Returns the groups of the first match, or the whole match if the expression has no groups, or NULL without a match.
fn regexp_match(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.text_lists(|row, out| {
        compiled.with(patterns.value(row), options_of_one(call, row)?, false, |regex| {
            let Some(found) = regex.captures(texts.value(row)) else { return Ok(false) };
            let first = usize::from(found.len() > 1);
            for group in found.iter().skip(first) {
                out.values().append_option(group.map(|group| group.as_str()));
            }
            Ok(true)
        })
    })
}

use Takes::{Text, Whole};

const REPLACES: &[Arguments] = &[
    Arguments::Are(&[Text, Text, Text]),
    Arguments::Are(&[Text, Text, Text, Text]),
    Arguments::Are(&[Text, Text, Text, Whole]),
    Arguments::Are(&[Text, Text, Text, Whole, Whole]),
    Arguments::Are(&[Text, Text, Text, Whole, Whole, Text]),
];
const ONE: &[Arguments] = &[Arguments::Are(&[Text, Text]), Arguments::Are(&[Text, Text, Text])];

const ALL: &[Entry] = &[
    entry!("regexp_replace" [], "text, pattern, replacement[, start[, n]][, options]", REPLACES, text,
        "A text with what a regular expression finds first, or, with the option g or an n of 0, everywhere, replaced. In the replacement \\1 is a group, \\& all that was found, and \\\\ a backslash.",
        "regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g') = 'fooXarYXazY'", regexp_replace),
    entry!("regexp_like" [], "text, pattern[, options]", ONE, flag,
        "Whether a regular expression is found in a text.", "regexp_like('Köln', 'k.ln$', 'i')", regexp_like),
    entry!("regexp_match" [], "text, pattern[, options]", ONE, texts,
        "The groups of a regular expression's first match, or the whole match if it has no groups; NULL without a match.",
        "regexp_match('a-12', '([a-z])-([0-9]+)') = ['a', '12']", regexp_match),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, pattern: &str, replacement: &str, nth: Option<usize>) -> String {
        let regex = Regex::new(pattern).expect(pattern);
        let mut by = Replacement::default();
        by.read(replacement);
        let mut out = String::new();
        replace(&regex, text, Which { from: Some(0), nth }, &by, &mut out);
        out
    }

    /// PostgreSQL's answers.
    #[test]
    fn a_backslash_in_a_replacement_means_what_it_does_in_postgresql() {
        for (replacement, wanted) in [
            (r"[\\]", r"a[\]c"),
            (r"[\]", r"a[\]c"),
            (r"\", r"a\c"),
            (r"\\\\", r"a\\c"),
            (r"[\&]", "a[b]c"),
            (r"[&]", "a[&]c"),
            (r"[\1]", "a[b]c"),
            (r"[\2]", "a[]c"),
            (r"[\0]", r"a[\0]c"),
            (r"[\12]", "a[b2]c"),
            (r"[\x]", r"a[\x]c"),
            (r"\\1", r"a\1c"),
            (r"[$1]${1}$$", "a[$1]${1}$$c"),
            ("", "ac"),
        ] {
            assert_eq!(replaced("abc", "(b)", replacement, Some(1)), wanted, "{replacement}");
        }
    }

    #[test]
    fn the_rest_of_a_text_need_not_be_searched() {
        let mut by = Replacement::default();
        by.read(r"\1");
        let first = Which { from: Some(0), nth: Some(1) };
        assert_eq!(head(r"^a([^/]+)/.*$", "", first, &by), Some(r"^a([^/]+)/"));
        for (pattern, options) in [
            (r"^a(b)\.*$", ""),
            ("^a(b)|.*$", ""),
            ("a(b).*$", ""),
            ("^a(b).*$", "n"),
            ("^[.*$", ""),
        ] {
            assert_eq!(head(pattern, options, first, &by), None, "{pattern}");
        }
        assert_eq!(head("^a(b).*$", "", Which { nth: None, ..first }, &by), None);
        by.read(r"x\1");
        assert_eq!(head("^a(b).*$", "", first, &by), None);
    }

    #[test]
    fn matches_without_letters_are_replaced_as_in_postgresql() {
        assert_eq!(replaced("abc", "", "x", None), "xaxbxcx");
        assert_eq!(replaced("baac", "a*", "x", None), "xbxxcx");
        assert_eq!(replaced("", "", "x", None), "x");
        assert_eq!(replaced("abcb", "b", "X", Some(2)), "abcX");
        assert_eq!(replaced("abcb", "b", "X", Some(3)), "abcb");
        assert_eq!(replaced("ab", "(a)(b)", r"\2\1", Some(1)), "ba");
    }
}
