//! Values out of a text.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, flag, text};
use super::parse::parse;
use super::path::Path;
use super::value::Json;

pub(super) const PATHS: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Text]),
    Arguments::Are(&[Takes::Text, Takes::Whole]),
    Arguments::Are(&[Takes::Text, Takes::Texts]),
];

/// The path of the second argument in a row.
pub(super) fn path<'a>(call: &'a Call, row: usize) -> Result<Path<'a>> {
    match call.arrays[1].data_type() {
        DataType::Int64 => Ok(Path::index(call.whole(1).value(row))),
        _ => Path::parse(call.text(1).value(row)).or_else(|why| call.fails(why)),
    }
}

/// The paths of all rows; parsed once where they are the same.
pub(super) struct Paths<'a> {
    call: &'a Call,
    same: Option<Path<'a>>,
}

impl<'a> Paths<'a> {
    pub(super) fn of(call: &'a Call) -> Result<Self> {
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

pub(super) fn parsed<'a>(call: &'a Call, at: usize, row: usize) -> Result<Json<'a>> {
    parse(call.text(at).value(row)).or_else(|why| call.fails_as("22P02", why))
}

/// How a value becomes text; `false` for NULL.
pub(super) type AsText = fn(&Json<'_>, &mut String) -> bool;

pub(super) fn as_json(value: &Json<'_>, out: &mut String) -> bool {
    value.write(out);
    true
}

pub(super) fn as_text(value: &Json<'_>, out: &mut String) -> bool {
    value.write_text(out)
}

/// As JSON where it is neither a list nor an object nor null.
fn as_scalar(value: &Json<'_>, out: &mut String) -> bool {
    let is_scalar = !matches!(value, Json::Null | Json::List(_) | Json::Object(_));
    is_scalar && as_json(value, out)
}

fn extract(call: &Call, write: AsText) -> Result<ArrayRef> {
    let is_list_of_paths = matches!(call.arrays[1].data_type(), DataType::List(_));
    match (&call.result, is_list_of_paths) {
        (DataType::List(_), true) => return extract_by_each(call, write),
        (DataType::List(_), false) => return extract_many(call, write),
        _ => {}
    }
    let paths = Paths::of(call)?;
    call.texts(|row, out| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| {
            if path.finds_many() {
                return call.fails("a path with wildcards must be a constant");
            }
            Ok(path.first(&value).is_some_and(|found| write(found, out)))
        })?
    })
}

/// All that a path with wildcards finds.
fn extract_many(call: &Call, write: AsText) -> Result<ArrayRef> {
    let paths = Paths::of(call)?;
    call.text_lists(|row, out| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| {
            for found in path.find(&value) {
                let mut text = String::new();
                let is_there = write(found, &mut text);
                out.values().append_option(is_there.then_some(text));
            }
            true
        })
    })
}

/// What each path of a list finds.
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
            let is_there = path.first(&value).is_some_and(|found| write(found, &mut text));
            out.values().append_option(is_there.then_some(text));
        }
        Ok(true)
    })
}

/// A list for a list of paths and for one with wildcards.
fn as_asked(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
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
    let paths = Paths::of(call)?;
    call.flags(|row| {
        let value = parsed(call, 0, row)?;
        paths.with(row, |path| Some(path.first(&value).is_some()))
    })
}

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_extract",
        aliases: &["json_extract_path"],
        arguments: "json, path or list of paths",
        about: "The JSON that a path finds; the operator ->. Paths are '$.key[0]', '/key/0', a key or the \
                number of an element; with wildcards ('$.*', '[*]', '..key') a list of all that is found.",
        example: "json_extract('{\"a\": [1, 2]}', '$.a[0]') = '1'",
        takes: PATHS,
        gives: as_asked,
        volatile: false,
        run: |call| extract(call, as_json),
    },
    Entry {
        name: "json_extract_string",
        aliases: &["json_extract_path_text"],
        arguments: "json, path or list of paths",
        about: "The text that a path finds, without quotes; NULL for null. The operator ->>.",
        example: "json_extract_string('{\"a\": \"x\"}', '$.a') = 'x'",
        takes: PATHS,
        gives: as_asked,
        volatile: false,
        run: |call| extract(call, as_text),
    },
    Entry {
        name: "json_value",
        aliases: &[],
        arguments: "json, path",
        about: "The JSON that a path finds where it is neither a list nor an object; else NULL.",
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
