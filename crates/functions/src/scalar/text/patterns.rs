//! DuckDB's regular expression functions, in the syntax of the crate `regex` with PostgreSQL's escapes and options;
//! a dot matches any character, including newline.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, flag, text, texts};
use crate::scalar::text::regex_compiled::Compiled;
use crate::scalar::text::regex_places::Matches;
use crate::scalar::text::texts::entry;

/// Reads the options at an argument, if any.
fn options(call: &Call, at: usize, row: usize) -> &str {
    match call.arrays.get(at) {
        Some(array) if array.data_type() == &DataType::Utf8 => call.text(at).value(row),
        _ => "",
    }
}

fn matches(call: &Call, whole: bool) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.flags(|row| {
        compiled.with(patterns.value(row), options(call, 2, row), whole, |regex| {
            Ok(Some(regex.is_match(texts.value(row))))
        })
    })
}

fn globs(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.flags(|row| {
        let Some(regex) = glob_regex(patterns.value(row)) else { return Ok(Some(false)) };
        compiled.with(&regex, "", true, |regex| Ok(Some(regex.is_match(texts.value(row)))))
    })
}

/// Translates a shell pattern; None if a bracket is not closed, which matches no text.
fn glob_regex(pattern: &str) -> Option<String> {
    let mut regex = String::with_capacity(pattern.len() * 2);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => regex.push_str(&bracket(&mut letters)?),
            '\\' => regex.push_str(&regex::escape(&letters.next()?.to_string())),
            other => regex.push_str(&regex::escape(&other.to_string())),
        }
    }
    Some(regex)
}

/// Translates a set after its opening bracket, up to the closing one. A range from a later character to an earlier
/// one is empty.
fn bracket(letters: &mut std::str::Chars) -> Option<String> {
    let is_not = letters.as_str().starts_with('!');
    if is_not {
        letters.next();
    }
    let mut set = vec![letters.next()?];
    loop {
        match letters.next()? {
            ']' => break,
            other => set.push(other),
        }
    }
    let (mut class, mut rest) = (String::new(), &set[..]);
    while let [first, more @ ..] = rest {
        rest = match more {
            ['-', last, more @ ..] => {
                if first <= last {
                    put_letter(*first, &mut class);
                    class.push('-');
                    put_letter(*last, &mut class);
                }
                more
            }
            more => {
                put_letter(*first, &mut class);
                more
            }
        };
    }
    Some(match (class.is_empty(), is_not) {
        (true, true) => "(?s:.)".to_owned(),
        (true, false) => "[^\\s\\S]".to_owned(),
        (false, true) => format!("[^{class}]"),
        (false, false) => format!("[{class}]"),
    })
}

/// Escapes a character of a set.
fn put_letter(letter: char, class: &mut String) {
    class.push_str(&regex::escape(&letter.to_string()));
}

/// Returns the requested group number; a nonexistent group matches nothing.
fn group(call: &Call, row: usize) -> Result<usize> {
    let group = match call.arrays.get(2) {
        Some(array) if array.data_type() == &DataType::Int64 => call.whole(2).value(row),
        _ => 0,
    };
    match usize::try_from(group) {
        Ok(group) => Ok(group),
        Err(_) => call.fails(format_args!("the group {group} is negative")),
    }
}

fn extract(call: &Call) -> Result<ArrayRef> {
    if let DataType::Struct(fields) = &call.result {
        return extract_named(call, fields);
    }
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.texts(|row, out| {
        compiled.with(patterns.value(row), options(call, 3, row), false, |regex| {
            let group = group(call, row)?;
            let found = regex.captures(texts.value(row)).and_then(|found| found.get(group));
            out.push_str(found.map_or("", |found| found.as_str()));
            Ok(true)
        })
    })
}

/// Returns the groups as fields of a struct.
fn extract_named(call: &Call, fields: &Fields) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    let mut columns: Vec<StringBuilder> = fields.iter().map(|_| StringBuilder::new()).collect();
    for row in 0..call.rows {
        if call.is_null(row) {
            columns.iter_mut().for_each(StringBuilder::append_null);
            continue;
        }
        compiled.with(patterns.value(row), options(call, 3, row), false, |regex| {
            if regex.captures_len() <= columns.len() {
                return call.fails("the expression has fewer groups than there are names");
            }
            let found = regex.captures(texts.value(row));
            for (at, column) in columns.iter_mut().enumerate() {
                let group = found.as_ref().and_then(|found| found.get(at + 1));
                column.append_value(group.map_or("", |group| group.as_str()));
            }
            Ok(())
        })?;
    }
    let columns: Vec<ArrayRef> =
        columns.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef).collect();
    let nulls: NullBuffer = (0..call.rows).map(|row| !call.is_null(row)).collect();
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, Some(nulls))?))
}

fn extract_type(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    if !matches!(given.get(2), Some(DataType::List(_))) {
        return Ok(DataType::Utf8);
    }
    let Some(Some(ScalarValue::List(names))) = constants.get(2) else {
        return plan_err!("regexp_extract: the names of the groups must be constants");
    };
    let names = names.value(0);
    let fields: Fields = names
        .as_string::<i32>()
        .iter()
        .map(|name| Field::new(name.unwrap_or_default(), DataType::Utf8, true))
        .collect();
    Ok(DataType::Struct(fields))
}

fn extract_all(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.text_lists(|row, out| {
        compiled.with(patterns.value(row), options(call, 3, row), false, |regex| {
            let group = group(call, row)?;
            for found in regex.captures_iter(texts.value(row)) {
                out.values().append_value(found.get(group).map_or("", |group| group.as_str()));
            }
            Ok(true)
        })
    })
}

fn split(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0), call.text(1));
    let compiled = Compiled::default();
    call.text_lists(|row, out| {
        compiled.with(patterns.value(row), options(call, 2, row), false, |regex| {
            let text = texts.value(row);
            let (mut begin, mut last) = (0, 0);
            for found in Matches::new(regex, text, Some(0)).map(|found| found.whole) {
                // As in PostgreSQL: an empty match separates characters, except at an end or after another match.
                if found.start() < text.len() && found.end() > last {
                    out.values().append_value(&text[begin..found.start()]);
                    begin = found.end();
                }
                last = found.end();
            }
            out.values().append_value(&text[begin..]);
            Ok(true)
        })
    })
}

const MATCHES: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Text]),
];
const GROUPS: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Whole]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Whole, Takes::Text]),
];
const GROUPS_OR_NAMES: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Whole]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Whole, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Texts]),
    Arguments::Are(&[Takes::Text, Takes::Text, Takes::Texts, Takes::Text]),
];

const ALL: &[Entry] = &[
    entry!("regexp_matches" [], "text, pattern[, options]", MATCHES, flag,
        "Whether a regular expression is found in a text. Options: i (any case), c, n or m (`.` is not a line's end, `^` and `$` are lines' ends), p (only the first of these), w (only the second), s (neither), x (blanks in the pattern mean nothing), l or q (the pattern is a plain text).",
        "regexp_matches('abc', '^a')", |call| matches(call, false)),
    entry!("regexp_full_match" [], "text, pattern[, options]", MATCHES, flag,
        "Whether a regular expression is all of a text.", "regexp_full_match('abc', 'a.c')",
        |call| matches(call, true)),
    entry!("regexp_extract" [], "text, pattern[, group or names][, options]", GROUPS_OR_NAMES, extract_type,
        "What is found first, or a group of it; with a list of names, a struct of its groups. '' where nothing is found.",
        "regexp_extract('a-12', '([a-z])-([0-9]+)', 2) = '12'", extract),
    entry!("regexp_extract_all" [], "text, pattern[, group][, options]", GROUPS, texts,
        "All that is found, or a group of each.", "regexp_extract_all('a1b22', '[0-9]+') = ['1', '22']",
        extract_all),
    entry!("text_glob" [], "text, pattern", &[Arguments::Are(&[Takes::Text, Takes::Text])], flag,
        "Whether a pattern of shells is all of a text, as GLOB asks: * and ? for any characters and one, [a-z] for one of some.",
        "text_glob('abc', 'a*')", globs),
    entry!("string_split_regex" ["str_split_regex", "regexp_split_to_array"], "text, pattern[, options]",
        MATCHES, texts, "The parts of a text between the matches.",
        "string_split_regex('a1b22c', '[0-9]+') = ['a', 'b', 'c']", split),
    entry!("regexp_escape" [], "text", &[Arguments::Are(&[Takes::Text])], text,
        "A text as a regular expression that finds it.", "regexp_escape('a.b') = 'a\\.b'", |call| {
        let texts = call.text(0);
        call.texts(|row, out| {
            for one in texts.value(row).chars() {
                if !(one.is_alphanumeric() || one == '_' || !one.is_ascii()) {
                    out.push('\\');
                }
                out.push(one);
            }
            Ok(true)
        })
    }),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
