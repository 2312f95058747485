//! Positions and counts of regular expression matches: `regexp_count`, `regexp_instr`, `regexp_substr`, as in
//! PostgreSQL.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};
use regex::{Match, Regex};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, text};
use crate::scalar::text::regex_compiled::Compiled;
use crate::scalar::text::texts::entry;

/// The matches of an expression in a text. After an empty match the search continues one
/// character later, after others at their end, where it may find an empty match.
pub(in crate::scalar) struct Matches<'r, 't> {
    regex: &'r Regex,
    text: &'t str,
    /// Where the search continues; None at the end of the text.
    at: Option<usize>,
}

/// A match, and where its search began.
pub(in crate::scalar) struct FoundMatch<'t> {
    pub(in crate::scalar) whole: Match<'t>,
    pub(in crate::scalar) from: usize,
}

impl<'r, 't> Matches<'r, 't> {
    /// Matches from this byte of the text on.
    pub(in crate::scalar) fn new(regex: &'r Regex, text: &'t str, at: Option<usize>) -> Self {
        Self { regex, text, at }
    }
}

impl<'t> Iterator for Matches<'_, 't> {
    type Item = FoundMatch<'t>;

    fn next(&mut self) -> Option<FoundMatch<'t>> {
        let from = self.at?;
        let whole = self.regex.find_at(self.text, from)?;
        self.at = behind(self.text, whole);
        Some(FoundMatch { whole, from })
    }
}

/// Returns the byte at which the search continues after a match, or None at the end of the text.
pub(in crate::scalar) fn behind(text: &str, whole: Match<'_>) -> Option<usize> {
    let letter = || text[whole.end()..].chars().next();
    match whole.is_empty() {
        true => letter().map(|letter| whole.end() + letter.len_utf8()),
        false => Some(whole.end()),
    }
}

/// Returns an integer argument, which must be at least `least`; `or` if it is omitted.
pub(in crate::scalar) fn number(
    call: &Call,
    at: usize,
    row: usize,
    (name, least, or): (&str, i64, usize),
) -> Result<usize> {
    if call.count() <= at {
        return Ok(or);
    }
    let value = call.whole(at).value(row);
    match usize::try_from(value) {
        Ok(number) if value >= least => Ok(number),
        _ => call.fails_as("22023", format_args!("invalid value for parameter '{name}': {value}")),
    }
}

pub(in crate::scalar) const START: (&str, i64, usize) = ("start", 1, 1);
const NUMBER: (&str, i64, usize) = ("n", 1, 1);
pub(in crate::scalar) const NUMBER_OR_ALL: (&str, i64, usize) = ("n", 0, 1);
const GROUP: (&str, i64, usize) = ("subexpr", 0, 0);

/// Returns the byte offset of the character with this number, counted from 1; None beyond the end.
pub(in crate::scalar) fn byte_of_letter(text: &str, number: usize) -> Option<usize> {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    places.nth(number - 1)
}

/// Reads the options from the argument at this index.
fn options(call: &Call, at: usize, row: usize) -> Result<&str> {
    if call.count() <= at {
        return Ok("");
    }
    let options = call.text(at).value(row);
    match options.contains('g') {
        true => call.fails_as("22023", "the option g is not supported"),
        false => Ok(options),
    }
}

fn count(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.plain::<Int32Type>(|row| {
        let (text, start) = (texts.value(row), number(call, 2, row, START)?);
        compiled.with(patterns.value(row), options(call, 3, row)?, false, |regex| {
            let found = Matches::new(regex, text, byte_of_letter(text, start)).count();
            Ok(Some(i32::try_from(found).unwrap_or(i32::MAX)))
        })
    })
}

/// Finds the match, or its group, that a row requests: `start`, `n`, then the options, then the group number.
fn place(
    call: &Call,
    row: usize,
    options_at: usize,
    compiled: &Compiled,
) -> Result<Option<(usize, usize)>> {
    let (text, pattern) = (call.text(0).value(row), call.text(1).value(row));
    let (start, n) = (number(call, 2, row, START)?, number(call, 3, row, NUMBER)?);
    let group = number(call, options_at + 1, row, GROUP)?;
    compiled.with(pattern, options(call, options_at, row)?, false, |regex| {
        let found = Matches::new(regex, text, byte_of_letter(text, start)).nth(n - 1);
        let found = found.and_then(|found| match group {
            0 => Some(found.whole),
            group => regex.captures_at(text, found.from)?.get(group),
        });
        Ok(found.map(|found| (found.start(), found.end())))
    })
}

fn substr(call: &Call) -> Result<ArrayRef> {
    let (texts, compiled) = (call.text(0), Compiled::default());
    call.texts(|row, out| {
        let found = place(call, row, 4, &compiled)?;
        out.push_str(found.map_or("", |(start, end)| &texts.value(row)[start..end]));
        Ok(found.is_some())
    })
}

fn instr(call: &Call) -> Result<ArrayRef> {
    let (texts, compiled) = (call.text(0), Compiled::default());
    // An argument before the options may request the end position.
    let asks = call.arrays.get(4).is_some_and(|array| array.data_type() == &DataType::Int64);
    call.plain::<Int32Type>(|row| {
        let end = match asks {
            true => call.whole(4).value(row),
            false => 0,
        };
        if !matches!(end, 0 | 1) {
            return call
                .fails_as("22023", format_args!("invalid value for parameter 'endoption': {end}"));
        }
        let Some(found) = place(call, row, if asks { 5 } else { 4 }, &compiled)? else {
            return Ok(Some(0));
        };
        let at = if end == 1 { found.1 } else { found.0 };
        let letters = texts.value(row)[..at].chars().count() + 1;
        Ok(Some(i32::try_from(letters).unwrap_or(i32::MAX)))
    })
}

fn integer(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int32)
}

use Takes::{Text, Whole};

const COUNTS: &[Arguments] = &[
    Arguments::Are(&[Text, Text]),
    Arguments::Are(&[Text, Text, Whole]),
    Arguments::Are(&[Text, Text, Whole, Text]),
];
const PLACES: &[Arguments] = &[
    Arguments::Are(&[Text, Text]),
    Arguments::Are(&[Text, Text, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole, Text]),
    Arguments::Are(&[Text, Text, Whole, Whole, Text, Whole]),
];
const PLACES_OR_ENDS: &[Arguments] = &[
    Arguments::Are(&[Text, Text]),
    Arguments::Are(&[Text, Text, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole, Whole, Text]),
    Arguments::Are(&[Text, Text, Whole, Whole, Whole, Text, Whole]),
    Arguments::Are(&[Text, Text, Whole, Whole, Text]),
    Arguments::Are(&[Text, Text, Whole, Whole, Text, Whole]),
];

const ALL: &[Entry] = &[
    entry!("regexp_count" [], "text, pattern[, start[, options]]", COUNTS, integer,
        "How often a regular expression is found in a text, from its letter of a number on.",
        "regexp_count('a1b22', '[0-9]') = 3", count),
    entry!("regexp_substr" [], "text, pattern[, start[, n[, options[, group]]]]", PLACES, text,
        "The n-th match of a regular expression, or a group of it; NULL without a match.",
        "regexp_substr('a1b22', '[0-9]+', 1, 2) = '22'", substr),
    entry!("regexp_instr" [], "text, pattern[, start[, n[, end[, options[, group]]]]]", PLACES_OR_ENDS, integer,
        "The position of the n-th match of a regular expression, or, if the fifth argument is 1, of the character after it; 0 without a match.",
        "regexp_instr('a1b22', '[0-9]+', 1, 2) = 4", instr),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::{Matches, byte_of_letter};

    fn found(pattern: &str, text: &str, start: usize) -> Vec<(usize, usize)> {
        let regex = regex::Regex::new(pattern).expect(pattern);
        let matches = Matches::new(&regex, text, byte_of_letter(text, start));
        matches.map(|found| (found.whole.start(), found.whole.end())).collect()
    }

    #[test]
    fn matches_without_letters_are_counted_as_in_postgresql() {
        assert_eq!(found("a*", "baac", 1), [(0, 0), (1, 3), (3, 3), (4, 4)]);
        assert_eq!(found("a*", "aa", 1), [(0, 2), (2, 2)]);
        assert_eq!(found("", "äb", 1), [(0, 0), (2, 2), (3, 3)]);
        assert_eq!(found("", "", 1), [(0, 0)]);
    }

    #[test]
    fn a_search_begins_at_a_letter_and_sees_what_is_before_it() {
        assert_eq!(found("^b", "äb", 2), []);
        assert_eq!(found("b", "äb", 2), [(2, 3)]);
        assert_eq!(found("$", "ä", 2), [(2, 2)]);
        assert_eq!(found("$", "ä", 3), []);
    }
}
