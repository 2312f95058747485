//! `to_json`, `json_object`, and what makes texts of texts.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, text};
use super::extract::parsed;
use super::value::{Json, quote};
use super::write::{Column, is_json_field};

fn columns(call: &Call) -> Result<Vec<Column>> {
    call.arrays
        .iter()
        .zip(&call.fields)
        .map(|(array, field)| Column::of(array, is_json_field(field)))
        .collect()
}

/// Texts of all rows, also of those with a NULL.
fn every(call: &Call, write: impl Fn(usize, &mut String) -> Result<()>) -> Result<ArrayRef> {
    let (mut builder, mut buffer) = (StringBuilder::new(), String::new());
    for row in 0..call.rows {
        buffer.clear();
        write(row, &mut buffer)?;
        builder.append_value(&buffer);
    }
    Ok(Arc::new(builder.finish()))
}

fn to_json(call: &Call) -> Result<ArrayRef> {
    let column = &columns(call)?[0];
    call.texts(|row, out| {
        column.write(row, out)?;
        Ok(true)
    })
}

fn json_array(call: &Call) -> Result<ArrayRef> {
    let columns = columns(call)?;
    every(call, |row, out| {
        out.push('[');
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            column.write(row, out)?;
        }
        out.push(']');
        Ok(())
    })
}

fn json_object(call: &Call) -> Result<ArrayRef> {
    let columns = columns(call)?;
    every(call, |row, out| {
        out.push('{');
        for at in (0..columns.len()).step_by(2) {
            if at > 0 {
                out.push(',');
            }
            match &columns[at] {
                Column::Text(keys) | Column::Json(keys) if keys.is_valid(row) => {
                    quote(keys.as_string::<i32>().value(row), out);
                }
                _ => return call.fails("a key must be text and not NULL"),
            }
            out.push(':');
            columns[at + 1].write(row, out)?;
        }
        out.push('}');
        Ok(())
    })
}

fn object_type(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    if !given.len().is_multiple_of(2) {
        return plan_err!("json_object expects a value for each key");
    }
    let is_text =
        |key: &DataType| matches!(key, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match given.iter().step_by(2).all(is_text) {
        true => Ok(DataType::Utf8),
        false => plan_err!("json_object: a key must be text; cast it to VARCHAR"),
    }
}

/// A patch on a value, by RFC 7386.
fn merged<'a>(value: Json<'a>, patch: Json<'a>) -> Json<'a> {
    let Json::Object(changes) = patch else { return patch };
    let mut pairs = match value {
        Json::Object(pairs) => pairs,
        _ => vec![],
    };
    for (key, change) in changes {
        let found = pairs.iter().position(|(name, _)| *name == key);
        match (found, change) {
            (Some(at), Json::Null) => drop(pairs.remove(at)),
            (None, Json::Null) => {}
            (Some(at), change) => {
                let before = std::mem::replace(&mut pairs[at].1, Json::Null);
                pairs[at].1 = merged(before, change);
            }
            (None, change) => pairs.push((key, merged(Json::Null, change))),
        }
    }
    Json::Object(pairs)
}

fn json_merge_patch(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let mut value = parsed(call, 0, row)?;
        for at in 1..call.count() {
            value = merged(value, parsed(call, at, row)?);
        }
        value.write(out);
        Ok(true)
    })
}

/// The text as it is, after it was parsed.
fn checked(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let texts = call.text(0);
    call.texts(|row, out| {
        match parsed(call, 0, row) {
            Ok(_) => out.push_str(texts.value(row)),
            Err(_) if is_tried => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    })
}

/// The values of each row's list as a JSON list; NULL of an empty one.
pub(crate) fn grouped_lists(values: &ArrayRef, offsets: &[i32]) -> Result<ArrayRef> {
    let column = Column::of(values, false)?;
    grouped(offsets, ['[', ']'], |row, out| column.write(row, out))
}

/// The keys and values of each row's list as a JSON object; NULL of an empty one.
pub(crate) fn grouped_objects(
    keys: &ArrayRef,
    values: &ArrayRef,
    offsets: &[i32],
) -> Result<ArrayRef> {
    let keys = datafusion::arrow::compute::cast(keys, &DataType::Utf8)?;
    let column = Column::of(values, false)?;
    grouped(offsets, ['{', '}'], |row, out| {
        quote(keys.as_string::<i32>().value(row), out);
        out.push(':');
        column.write(row, out)
    })
}

fn grouped(
    offsets: &[i32],
    [open, close]: [char; 2],
    write: impl Fn(usize, &mut String) -> Result<()>,
) -> Result<ArrayRef> {
    let text = |pair: &[i32]| -> Result<Option<String>> {
        if pair[0] == pair[1] {
            return Ok(None);
        }
        let mut out = String::from(open);
        for row in pair[0]..pair[1] {
            if row > pair[0] {
                out.push(',');
            }
            write(row as usize, &mut out)?;
        }
        out.push(close);
        Ok(Some(out))
    };
    let texts: Result<StringArray> = offsets.windows(2).map(text).collect();
    Ok(Arc::new(texts?))
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
const ALL_ANY: &[Arguments] = &[Arguments::More(&[], Takes::Any)];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "to_json",
        aliases: &["json_quote", "row_to_json", "array_to_json", "to_jsonb"],
        arguments: "value",
        about: "A value as JSON.",
        example: "to_json([1, NULL]) = '[1,null]'",
        takes: ANY,
        gives: text,
        volatile: false,
        run: to_json,
    },
    Entry {
        name: "json_array",
        aliases: &["json_build_array", "jsonb_build_array"],
        arguments: "values…",
        about: "A JSON list of the values.",
        example: "json_array(1, 'a') = '[1,\"a\"]'",
        takes: ALL_ANY,
        gives: text,
        volatile: false,
        run: json_array,
    },
    Entry {
        name: "json_object",
        aliases: &["json_build_object", "jsonb_build_object"],
        arguments: "key, value, …",
        about: "A JSON object of keys and values.",
        example: "json_object('a', 1) = '{\"a\":1}'",
        takes: ALL_ANY,
        gives: object_type,
        volatile: false,
        run: json_object,
    },
    Entry {
        name: "json_merge_patch",
        aliases: &[],
        arguments: "json, patches…",
        about: "A JSON value with patches of RFC 7386: their values replace those of the same keys, null takes a key away.",
        example: "json_merge_patch('{\"a\": 1}', '{\"b\": 2}') = '{\"a\":1,\"b\":2}'",
        takes: &[Arguments::More(&[Takes::Text, Takes::Text], Takes::Text)],
        gives: text,
        volatile: false,
        run: json_merge_patch,
    },
    Entry {
        name: "json",
        aliases: &[],
        arguments: "text",
        about: "A text that is JSON, without blanks.",
        example: "json('[1, 2]') = '[1,2]'",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| {
            call.texts(|row, out| {
                parsed(call, 0, row)?.write(out);
                Ok(true)
            })
        },
    },
    Entry {
        name: "json_checked",
        aliases: &[],
        arguments: "text",
        about: "A text as it is, after it was found to be JSON; the cast to JSON.",
        example: "'[1, 2]'::JSON",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| checked(call, false),
    },
    Entry {
        name: "try_json_checked",
        aliases: &[],
        arguments: "text",
        about: "A text where it is JSON, else NULL; TRY_CAST to JSON.",
        example: "TRY_CAST('{a' AS JSON) IS NULL",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| checked(call, true),
    },
    Entry {
        name: "jsonb_checked",
        aliases: &[],
        arguments: "text",
        about: "As json_checked, but clients are told of JSONB; the cast to JSONB.",
        example: "'[1, 2]'::JSONB",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| checked(call, false),
    },
    Entry {
        name: "try_jsonb_checked",
        aliases: &[],
        arguments: "text",
        about: "As try_json_checked, but clients are told of JSONB; TRY_CAST to JSONB.",
        example: "TRY_CAST('{a' AS JSONB) IS NULL",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| checked(call, true),
    },
    Entry {
        name: "json_pretty",
        aliases: &["jsonb_pretty"],
        arguments: "json",
        about: "JSON with a line for each value.",
        example: "json_pretty('[1, 2]')",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| {
            call.texts(|row, out| {
                parsed(call, 0, row)?.write_lines(0, out);
                Ok(true)
            })
        },
    },
];
