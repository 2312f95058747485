//! Extracts values from a text.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, flag, text};
use super::super::marks::is_jsonb_field;
use super::jsonb;
use super::parse::{parse, parse_jsonb};
use super::path::Path;
use super::value::{Json, JsonFailure};

pub(super) const PATHS: &[Arguments] = &[
    Arguments::Are(&[Takes::Json, Takes::Text]),
    Arguments::Are(&[Takes::Json, Takes::Whole]),
    Arguments::Are(&[Takes::Json, Takes::Texts]),
];

/// Returns the path in the second argument of a row.
pub(super) fn path<'a>(call: &'a Call, row: usize) -> Result<Path<'a>> {
    match call.arrays[1].data_type() {
        DataType::Int64 => Ok(Path::index(call.whole(1).value(row))),
        _ => Path::parse(call.text(1).value(row)).or_else(|why| call.fails(why)),
    }
}

/// The paths of all rows; parsed once if they are the same.
pub(super) struct Paths<'a> {
    call: &'a Call,
    same: Option<Path<'a>>,
}

impl<'a> Paths<'a> {
    pub(super) fn try_from_call(call: &'a Call) -> Result<Self> {
        let first = (0..call.rows).find(|&row| !call.is_null(row));
        let same = match (first, call.arrays[1].data_type()) {
            (Some(first), DataType::Utf8) => {
                let texts = call.text(1);
                let is_same = (first..call.rows)
                    .all(|row| call.is_null(row) || texts.value(row) == texts.value(first));
                if is_same { Some(path(call, first)?) } else { None }
            }
            _ => None,
        };
        Ok(Self { call, same })
    }

    /// Calls `with` with the path of a row.
    pub(super) fn with<T>(&self, row: usize, with: impl FnOnce(&Path<'_>) -> T) -> Result<T> {
        match &self.same {
            Some(same) => Ok(with(same)),
            None => Ok(with(&path(self.call, row)?)),
        }
    }
}

/// Whether an argument is JSONB, according to its field or the function.
pub(super) fn is_jsonb(call: &Call, at: usize) -> bool {
    call.is_jsonb || call.name.starts_with("jsonb_") || is_jsonb_field(&call.fields[at])
}

/// Parses an argument's value in a row.
pub(super) fn parsed<'a>(call: &'a Call, at: usize, row: usize) -> Result<Json<'a>> {
    let text = call.text(at).value(row);
    match is_jsonb(call, at) {
        true => told(call, parse_jsonb(text)),
        false => parse(text).or_else(|why| call.fails_as("22P02", why)),
    }
}

/// Converts a value's failure to an error of the call.
pub(super) fn told<T>(call: &Call, result: Result<T, JsonFailure>) -> Result<T> {
    result.or_else(|(state, why)| call.fails_as(state, why))
}

/// Converts a value to text; returns `false` for NULL.
pub(super) type AsText = fn(&Json<'_>, &mut String) -> Result<bool, JsonFailure>;

fn as_json(value: &Json<'_>, out: &mut String) -> Result<bool, JsonFailure> {
    value.write(out);
    Ok(true)
}

fn as_jsonb(value: &Json<'_>, out: &mut String) -> Result<bool, JsonFailure> {
    jsonb::write(value, out)?;
    Ok(true)
}

fn as_text(value: &Json<'_>, out: &mut String) -> Result<bool, JsonFailure> {
    Ok(value.write_text(out))
}

/// Converts parts of the first argument to JSON, or to JSONB if it is JSONB.
pub(super) fn json_form(call: &Call) -> AsText {
    if is_jsonb(call, 0) { as_jsonb } else { as_json }
}

/// Converts parts of the first argument to text.
pub(super) fn text_form(call: &Call) -> AsText {
    if is_jsonb(call, 0) { jsonb::write_text } else { as_text }
}

/// Returns scalars as JSON.
fn as_scalar(value: &Json<'_>, out: &mut String) -> Result<bool, JsonFailure> {
    let is_scalar = !matches!(value, Json::Null | Json::List(_) | Json::Object(_));
    Ok(is_scalar && as_json(value, out)?)
}

/// Returns values as JSON.
fn values(call: &Call) -> Result<ArrayRef> {
    extract_or_step(call, json_form(call))
}

fn texts(call: &Call) -> Result<ArrayRef> {
    extract_or_step(call, text_form(call))
}

/// Returns the value at a path, or after several steps, as in PostgreSQL's `json_extract_path`.
fn extract_or_step(call: &Call, write: AsText) -> Result<ArrayRef> {
    match call.count() {
        2 => extract(call, write),
        _ => at_steps(call, write),
    }
}

/// Returns the value at a path of keys and indices, given as a list or as the arguments after the first.
fn at_steps(call: &Call, write: AsText) -> Result<ArrayRef> {
    let is_list = call.count() == 2 && call.arrays[1].data_type().is_list();
    call.texts(|row, out| {
        let value = parsed(call, 0, row)?;
        let found = match is_list {
            true => {
                let steps = call.list(1).value(row);
                let steps: Vec<Option<&str>> = steps.as_string::<i32>().iter().collect();
                value.at_steps(&steps)
            }
            false => {
                let steps = (1..call.count()).map(|at| Some(call.text(at).value(row)));
                value.at_steps(&steps.collect::<Vec<_>>())
            }
        };
        match found {
            Some(found) => told(call, write(found, out)),
            None => Ok(false),
        }
    })
}

fn value_at_steps(call: &Call) -> Result<ArrayRef> {
    at_steps(call, json_form(call))
}

fn text_at_steps(call: &Call) -> Result<ArrayRef> {
    at_steps(call, text_form(call))
}

fn extract(call: &Call, write: AsText) -> Result<ArrayRef> {
    let is_list_of_paths = matches!(call.arrays[1].data_type(), DataType::List(_));
    match (&call.result, is_list_of_paths) {
        (DataType::List(_), true) => return extract_by_each(call, write),
        (DataType::List(_), false) => return extract_many(call, write),
        _ => {}
    }
    let paths = Paths::try_from_call(call)?;
    call.texts(|row, out| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| {
            if path.finds_many() {
                return call.fails("a path with wildcards must be a constant");
            }
            match path.first(&value) {
                Some(found) => told(call, write(found, out)),
                None => Ok(false),
            }
        })?
    })
}

/// Returns all matches of a path with wildcards.
fn extract_many(call: &Call, write: AsText) -> Result<ArrayRef> {
    let paths = Paths::try_from_call(call)?;
    call.text_lists(|row, out| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| {
            for found in path.find(&value) {
                let mut text = String::new();
                let is_there = told(call, write(found, &mut text))?;
                out.values().append_option(is_there.then_some(text));
            }
            Ok(true)
        })?
    })
}

/// Returns the match of each path in a list.
fn extract_by_each(call: &Call, write: AsText) -> Result<ArrayRef> {
    let lists = call.list(1);
    call.text_lists(|row, out| {
        let (value, paths) = (parsed(call, 0, row)?, lists.value(row));
        for path in paths.as_string::<i32>() {
            let path = match path {
                Some(path) => Path::parse(path).or_else(|why| call.fails(why))?,
                None => {
                    out.values().append_null();
                    continue;
                }
            };
            let mut text = String::new();
            let is_there = match path.first(&value) {
                Some(found) => told(call, write(found, &mut text))?,
                None => false,
            };
            out.values().append_option(is_there.then_some(text));
        }
        Ok(true)
    })
}

/// Returns a list for a list of paths or a path with wildcards.
fn as_asked(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    if given.len() > 2 {
        return Ok(DataType::Utf8);
    }
    let many = match (given.get(1), constants.get(1).copied().flatten()) {
        (Some(DataType::List(_)), _) => true,
        (
            _,
            Some(
                ScalarValue::Utf8(Some(path))
                | ScalarValue::Utf8View(Some(path))
                | ScalarValue::LargeUtf8(Some(path)),
            ),
        ) => Path::parse(path).is_ok_and(|path| path.finds_many()),
        _ => false,
    };
    Ok(if many { DataType::new_list(DataType::Utf8, true) } else { DataType::Utf8 })
}

fn exists(call: &Call) -> Result<ArrayRef> {
    let paths = Paths::try_from_call(call)?;
    call.flags(|row| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| Some(path.first(&value).is_some()))
    })
}

const PATHS_OR_STEPS: &[Arguments] = &[
    Arguments::Are(&[Takes::Json, Takes::Text]),
    Arguments::Are(&[Takes::Json, Takes::Whole]),
    Arguments::Are(&[Takes::Json, Takes::Texts]),
    Arguments::More(&[Takes::Json, Takes::Text, Takes::Text], Takes::Text),
];

const STEPS: &[Arguments] = &[
    Arguments::Are(&[Takes::Json, Takes::Texts]),
    Arguments::More(&[Takes::Json, Takes::Text], Takes::Text),
];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_at_path",
        aliases: &[],
        arguments: "json, steps",
        about: "The JSON at the end of a list of keys and numbers of elements; the operator #>.",
        example: "json_at_path('{\"a\": [1, 2]}', ['a', '-1']) = '2'",
        takes: STEPS,
        gives: text,
        volatile: false,
        run: value_at_steps,
    },
    Entry {
        name: "json_text_at_path",
        aliases: &[],
        arguments: "json, steps",
        about: "The same as text, without quotes; NULL for null. The operator #>>.",
        example: "json_text_at_path('{\"a\": [\"x\"]}', ['a', '0']) = 'x'",
        takes: STEPS,
        gives: text,
        volatile: false,
        run: text_at_steps,
    },
    Entry {
        name: "jsonb_extract_path",
        aliases: &[],
        arguments: "json, steps…",
        about: "The JSONB at the end of keys and numbers of elements.",
        example: "jsonb_extract_path('{\"a\": [1, 2]}', 'a', '0') = '1'",
        takes: STEPS,
        gives: text,
        volatile: false,
        run: value_at_steps,
    },
    Entry {
        name: "jsonb_extract_path_text",
        aliases: &[],
        arguments: "json, steps…",
        about: "The same as text, without quotes; NULL for null.",
        example: "jsonb_extract_path_text('{\"a\": [\"x\"]}', 'a', '0') = 'x'",
        takes: STEPS,
        gives: text,
        volatile: false,
        run: text_at_steps,
    },
    Entry {
        name: "json_extract",
        aliases: &["json_extract_path"],
        arguments: "json, path or list of paths, or steps",
        about: "The JSON that a path finds; the operator ->. Paths are '$.key[0]', '/key/0', a key or the \
                number of an element; with wildcards ('$.*', '[*]', '..key') a list of all that is found. Of equal \
                keys the last one counts. More than one step are keys and numbers of elements.",
        example: "json_extract('{\"a\": [1, 2]}', '$.a[0]') = '1'",
        takes: PATHS_OR_STEPS,
        gives: as_asked,
        volatile: false,
        run: values,
    },
    Entry {
        name: "json_extract_string",
        aliases: &["json_extract_path_text"],
        arguments: "json, path or list of paths, or steps",
        about: "The text that a path finds, without quotes; NULL for null. The operator ->>.",
        example: "json_extract_string('{\"a\": \"x\"}', '$.a') = 'x'",
        takes: PATHS_OR_STEPS,
        gives: as_asked,
        volatile: false,
        run: texts,
    },
    Entry {
        name: "json_value",
        aliases: &[],
        arguments: "json, path",
        about: "The JSON at a path if it is neither a list nor an object; otherwise NULL.",
        example: "json_value('{\"a\": 1}', '$.a') = '1'",
        takes: PATHS,
        gives: text,
        volatile: false,
        run: |call| extract(call, as_scalar),
    },
    Entry {
        name: "json_exists",
        aliases: &[],
        arguments: "json, path",
        about: "Whether a path finds something, null too.",
        example: "json_exists('{\"a\": null}', '$.a')",
        takes: PATHS,
        gives: flag,
        volatile: false,
        run: exists,
    },
];
