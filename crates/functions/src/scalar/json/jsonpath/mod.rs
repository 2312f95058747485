//! SQL/JSON paths, as PostgreSQL reads and evaluates them: `$.items[*] ? (@.price > 10).name`.
//!
//! Crates for JSONPath have another language (RFC 9535), or binary floats; here numbers are NUMERIC.
//!
//! | file | contents |
//! |---|---|
//! | `tree` | a parsed path |
//! | `tokens` | its tokens |
//! | `parser` | the parser |
//! | `item` | a value that a path finds |
//! | `number` | arithmetic |
//! | `evaluate` | the evaluation on a value |

mod evaluate;
mod item;
mod number;
mod parser;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, flag, text, texts};
use super::extract::{parsed, told};
use super::value::{Json, JsonFailure};
use crate::failure::FunctionFailure;
use evaluate::{Evaluation, is_suppressed};
use item::Item;
use parser::parse_path;
use tree::JsonPath;

/// The paths of a call's rows; parsed once if all are the same.
struct RowPaths<'a> {
    call: &'a Call,
    same: Option<JsonPath>,
}

impl<'a> RowPaths<'a> {
    fn try_from_call(call: &'a Call) -> Result<Self> {
        let texts = call.text(1);
        let mut given =
            (0..call.rows).filter(|row| !call.is_null(*row)).map(|row| texts.value(row));
        let same = match given.next() {
            Some(first) if given.all(|text| text == first) => Some(of_path(parse_path(first))?),
            _ => None,
        };
        Ok(Self { call, same })
    }

    /// Calls `with` with what the path of a row finds; with None if it fails and errors are suppressed.
    fn with<T>(
        &self,
        row: usize,
        with: impl FnOnce(Option<Vec<Item<'_>>>) -> Result<T>,
    ) -> Result<T> {
        let call = self.call;
        let own;
        let path = match &self.same {
            Some(same) => same,
            None => {
                own = of_path(parse_path(call.text(1).value(row)))?;
                &own
            }
        };
        let value = parsed(call, 0, row)?;
        let variables = match call.count() > 2 {
            true => Some(parsed(call, 2, row)?),
            false => None,
        };
        if variables.as_ref().is_some_and(|given| !matches!(given, Json::Object(_))) {
            return call.fails_as("22023", "\"vars\" argument is not an object");
        }
        match Evaluation::new(path, &value, variables.as_ref()).items() {
            Ok(items) => with(Some(items)),
            Err(failure) if is_silent(call, row) && is_suppressed(&failure) => with(None),
            Err(failure) => of_path(Err(failure)),
        }
    }
}

/// Whether errors are suppressed.
fn is_silent(call: &Call, row: usize) -> bool {
    call.count() > 3 && call.flag(3).value(row)
}

/// Errors of paths are PostgreSQL's, without the name of the function.
fn of_path<T>(result: Result<T, JsonFailure>) -> Result<T> {
    result.map_err(|(state, message)| FunctionFailure::error(state, message))
}

fn query(call: &Call) -> Result<ArrayRef> {
    let paths = RowPaths::try_from_call(call)?;
    call.text_lists(|row, out| {
        paths.with(row, |items| {
            for item in items.into_iter().flatten() {
                let mut text = String::new();
                told(call, item.write(&mut text))?;
                out.values().append_value(text);
            }
            Ok(true)
        })
    })
}

fn query_array(call: &Call) -> Result<ArrayRef> {
    let paths = RowPaths::try_from_call(call)?;
    call.texts(|row, out| {
        paths.with(row, |items| {
            out.push('[');
            for (at, item) in items.into_iter().flatten().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                told(call, item.write(out))?;
            }
            out.push(']');
            Ok(true)
        })
    })
}

fn query_first(call: &Call) -> Result<ArrayRef> {
    let paths = RowPaths::try_from_call(call)?;
    call.texts(|row, out| {
        paths.with(row, |items| match items.into_iter().flatten().next() {
            Some(first) => told(call, first.write(out)).map(|()| true),
            None => Ok(false),
        })
    })
}

fn exists(call: &Call) -> Result<ArrayRef> {
    let paths = RowPaths::try_from_call(call)?;
    call.flags(|row| paths.with(row, |items| Ok(items.map(|items| !items.is_empty()))))
}

fn matches(call: &Call) -> Result<ArrayRef> {
    let paths = RowPaths::try_from_call(call)?;
    call.flags(|row| {
        paths.with(row, |items| match items.as_deref() {
            Some([item]) if item.flag().is_some() || item.is_null() => Ok(item.flag()),
            None => Ok(None),
            Some(_) if is_silent(call, row) => Ok(None),
            Some(_) => of_path(Err(("22038", "single boolean result is expected".to_owned()))),
        })
    })
}

const PATH: &[Arguments] = &[
    Arguments::Are(&[Takes::Json, Takes::Text]),
    Arguments::Are(&[Takes::Json, Takes::Text, Takes::Json]),
    Arguments::Are(&[Takes::Json, Takes::Text, Takes::Json, Takes::Flag]),
];

macro_rules! of_a_path {
    ($name:literal, $gives:expr, $run:expr, $about:literal, $example:literal) => {
        Entry {
            name: $name,
            aliases: &[],
            arguments: "json, path, variables, silent",
            about: $about,
            example: $example,
            takes: PATH,
            gives: $gives,
            volatile: false,
            run: $run,
        }
    };
}

pub(super) const ALL: &[Entry] = &[
    of_a_path!(
        "jsonb_path_list",
        texts,
        query,
        "The values that a path of SQL/JSON finds, each as JSONB; jsonb_path_query gives a row for each.",
        "jsonb_path_list('[1, 5]', '$[*] ? (@ > 2)') = ['5']"
    ),
    of_a_path!(
        "jsonb_path_query_array",
        text,
        query_array,
        "The values that a path of SQL/JSON finds, as a list in JSONB. The variables are an object; silent \
         suppresses errors.",
        "jsonb_path_query_array('[1, 5, 7]', '$[*] ? (@ > $least)', '{\"least\": 2}') = '[5, 7]'"
    ),
    of_a_path!(
        "jsonb_path_query_first",
        text,
        query_first,
        "The first value that a path of SQL/JSON finds, as JSONB; NULL if it finds none.",
        "jsonb_path_query_first('{\"a\": [1, 5]}', '$.a[last] + 1') = '6'"
    ),
    of_a_path!(
        "jsonb_path_exists",
        flag,
        exists,
        "Whether a path of SQL/JSON finds a value; the operator @?, which suppresses errors.",
        "jsonb_path_exists('{\"a\": 1}', '$.a ? (@ == 1)')"
    ),
    of_a_path!(
        "jsonb_path_match",
        flag,
        matches,
        "The result of a predicate in SQL/JSON; NULL if it is unknown. The operator @@, which suppresses errors.",
        "jsonb_path_match('{\"a\": 1}', '$.a < 2')"
    ),
];
