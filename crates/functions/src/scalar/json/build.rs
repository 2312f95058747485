//! `to_json`, `json_object`, and functions from text to text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, text};
use super::super::marks::is_json_field;
use super::extract::{is_jsonb, parsed, told};
use super::jsonb::{self, canonical, canonical_jsonb};
use super::value::Json;
use super::write::{Column, JsonForm};
use crate::failure::FunctionFailure;

fn columns(call: &Call) -> Result<Vec<Column>> {
    call.arrays
        .iter()
        .zip(&call.fields)
        .map(|(array, field)| Column::try_from_array(array, is_json_field(field)))
        .collect()
}

/// The format of a call's result.
fn form_of(call: &Call) -> JsonForm {
    if call.is_jsonb { JsonForm::Jsonb } else { JsonForm::Json }
}

/// Converts a call's output to JSONB if the function returns JSONB.
fn finish(call: &Call, out: &mut String) -> Result<bool> {
    let other = match call.is_jsonb {
        true => told(call, canonical(out).map(changed))?,
        false => None,
    };
    if let Some(other) = other {
        *out = other;
    }
    Ok(true)
}

/// Maps each text to another one.
fn changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(other) => Some(other),
        Cow::Borrowed(_) => None,
    }
}

/// Writes the texts of all rows, including rows with a NULL.
fn every(call: &Call, write: impl Fn(usize, &mut String) -> Result<()>) -> Result<ArrayRef> {
    call.all_texts(|row, out| {
        write(row, out)?;
        finish(call, out)
    })
}

fn to_json(call: &Call) -> Result<ArrayRef> {
    let column = &columns(call)?[0];
    call.texts(|row, out| {
        column.write(row, form_of(call), out)?;
        finish(call, out)
    })
}

/// What a list or an object has between its values, and between a key and its value.
struct Separators {
    comma: &'static str,
    colon: &'static str,
}

/// As in DuckDB.
const NARROW: Separators = Separators { comma: ",", colon: ":" };

/// As in PostgreSQL.
const WIDE: Separators = Separators { comma: ", ", colon: " : " };

fn json_array(call: &Call, Separators { comma, .. }: &Separators) -> Result<ArrayRef> {
    let columns = columns(call)?;
    every(call, |row, out| {
        out.push('[');
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push_str(comma);
            }
            column.write(row, form_of(call), out)?;
        }
        out.push(']');
        Ok(())
    })
}

fn json_object(call: &Call, Separators { comma, colon }: &Separators) -> Result<ArrayRef> {
    let columns = columns(call)?;
    every(call, |row, out| {
        out.push('{');
        for at in (0..columns.len()).step_by(2) {
            if at > 0 {
                out.push_str(comma);
            }
            if !columns[at].write_key(row, out)? {
                let why = format!("argument {}: a key must not be NULL", at + 1);
                return call.fails_as("22023", why);
            }
            out.push_str(colon);
            columns[at + 1].write(row, form_of(call), out)?;
        }
        out.push('}');
        Ok(())
    })
}

/// As in DuckDB, keys are texts.
fn object_type(given: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.iter().step_by(2).all(DataType::is_string) {
        true => built_object_type(given, constants),
        false => plan_err!("json_object: a key must be text; cast it to VARCHAR"),
    }
}

/// As in PostgreSQL, keys are values of any scalar type, converted to text.
fn built_object_type(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    if !given.len().is_multiple_of(2) {
        let why = "the last key has no value; a JSON object needs a value for each key";
        return Err(FunctionFailure::error("22023", why.to_owned()));
    }
    match given.iter().step_by(2).any(DataType::is_nested) {
        false => Ok(DataType::Utf8),
        true => {
            let why = "key value must be scalar, not array, composite, or json";
            Err(FunctionFailure::error("22023", why.to_owned()))
        }
    }
}

/// Applies a merge patch to a value (RFC 7386).
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
        finish(call, out)
    })
}

/// Whether the argument of a cast is text, which is parsed as JSON; other values are converted to JSON.
fn is_text_cast(call: &Call) -> bool {
    call.arrays[0].data_type().is_string()
}

/// Returns the text unchanged after parsing it.
fn checked(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    if !is_text_cast(call) {
        return to_json(call);
    }
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

/// Converts a text to JSONB.
fn checked_jsonb(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    if !is_text_cast(call) {
        return to_json(call);
    }
    let texts = call.text(0);
    call.texts(|row, out| {
        match canonical(texts.value(row)) {
            Ok(text) => out.push_str(&text),
            Err(_) if is_tried => return Ok(false),
            failed => drop(told(call, failed)?),
        }
        Ok(true)
    })
}

fn pretty(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let value = parsed(call, 0, row)?;
        match is_jsonb(call, 0) {
            true => told(call, jsonb::write_lines(&value, 0, out))?,
            false => value.write_lines(0, out),
        }
        Ok(true)
    })
}

/// A list with a line for each row or array in it, as `json_agg` returns it.
fn json_aggregated(call: &Call) -> Result<ArrayRef> {
    let lists = call.list(0);
    let is_json = call.fields.first().is_some_and(|field| is_json_field(field));
    let column = Column::try_from_array(lists.values(), is_json)?;
    call.texts(|row, out| {
        let (from, to) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
        write_list(&column, from as usize..to as usize, JsonForm::Json, true, out)?;
        Ok(true)
    })
}

/// Writes a list; a wide one as PostgreSQL's `json_agg`, with a line for each row or array.
fn write_list(
    column: &Column,
    rows: Range<usize>,
    form: JsonForm,
    is_wide: bool,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    for row in rows.clone() {
        if row > rows.start {
            out.push_str(match is_wide {
                true if column.is_nested() && !column.is_null(row) => ", \n ",
                true => WIDE.comma,
                false => NARROW.comma,
            });
        }
        column.write(row, form, out)?;
    }
    out.push(']');
    Ok(())
}

/// With `true` as the second argument, a row or array has a line for each of its values.
fn with_lines(call: &Call) -> Result<ArrayRef> {
    let column = &columns(call)?[0];
    let flags = (call.count() > 1).then(|| call.flag(1));
    call.texts(|row, out| {
        match flags.is_some_and(|flags| flags.value(row)) {
            true => column.write_lines(row, out)?,
            false => column.write(row, JsonForm::Json, out)?,
        }
        Ok(true)
    })
}

/// How an aggregate writes the values of its groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupedForm {
    /// Whether text values are JSON.
    pub(crate) of_json: bool,
    /// Whether the result is JSONB.
    pub(crate) is_jsonb: bool,
    /// Whether there are blanks and lines as in PostgreSQL.
    pub(crate) is_wide: bool,
}

impl GroupedForm {
    fn form(self) -> JsonForm {
        if self.is_jsonb { JsonForm::Jsonb } else { JsonForm::Json }
    }
}

/// Writes the values of each row's list as a JSON list; NULL for an empty one.
pub(crate) fn grouped_lists(
    values: &ArrayRef,
    offsets: &[i32],
    form: GroupedForm,
) -> Result<ArrayRef> {
    let column = Column::try_from_array(values, form.of_json)?;
    grouped(offsets, form, |rows, out| write_list(&column, rows, form.form(), form.is_wide, out))
}

/// Writes the keys and values of each row's list as a JSON object; NULL for an empty one.
pub(crate) fn grouped_objects(
    keys: &ArrayRef,
    values: &ArrayRef,
    offsets: &[i32],
    form: GroupedForm,
) -> Result<ArrayRef> {
    let keys = Column::try_from_array(keys, false)?;
    let column = Column::try_from_array(values, form.of_json)?;
    let Separators { comma, colon } = if form.is_wide { WIDE } else { NARROW };
    let [open, close] = if form.is_wide { ["{ ", " }"] } else { ["{", "}"] };
    grouped(offsets, form, |rows, out| {
        out.push_str(open);
        for row in rows.clone() {
            if row > rows.start {
                out.push_str(comma);
            }
            if !keys.write_key(row, out)? {
                let why = "field name must not be null; leave such rows out with FILTER (WHERE …)";
                return Err(FunctionFailure::error("22004", why.to_owned()));
            }
            out.push_str(colon);
            column.write(row, form.form(), out)?;
        }
        out.push_str(close);
        Ok(())
    })
}

fn grouped(
    offsets: &[i32],
    form: GroupedForm,
    write: impl Fn(Range<usize>, &mut String) -> Result<()>,
) -> Result<ArrayRef> {
    let text = |pair: &[i32]| -> Result<Option<String>> {
        if pair[0] == pair[1] {
            return Ok(None);
        }
        let mut out = String::new();
        write(pair[0] as usize..pair[1] as usize, &mut out)?;
        Ok(Some(match form.is_jsonb {
            true => {
                let text = canonical_jsonb(&out).map_err(FunctionFailure::into_datafusion)?;
                text.into_owned()
            }
            false => out,
        }))
    };
    let texts: Result<StringArray> = offsets.windows(2).map(text).collect();
    Ok(Arc::new(texts?))
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const ANY: &[Arguments] = &[Arguments::Are(&[Takes::Any])];
/// Parses texts and writes other values.
const CAST: &[Arguments] = &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Any])];
const ALL_ANY: &[Arguments] = &[Arguments::More(&[], Takes::Any)];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "to_json",
        aliases: &["json_quote"],
        arguments: "value",
        about: "A value as JSON.",
        example: "to_json([1, NULL]) = '[1,null]'",
        takes: ANY,
        gives: text,
        volatile: false,
        run: to_json,
    },
    Entry {
        name: "row_to_json",
        aliases: &["array_to_json"],
        arguments: "row or array[, lines]",
        about: "A row or an array as JSON; with true, each of its values on a line of its own.",
        example: "array_to_json([1, NULL]) = '[1,null]'",
        takes: &[Arguments::Are(&[Takes::Any]), Arguments::Are(&[Takes::Any, Takes::Flag])],
        gives: text,
        volatile: false,
        run: with_lines,
    },
    Entry {
        name: "json_aggregated",
        aliases: &[],
        arguments: "array",
        about: "An array as JSON, as json_agg returns the values of its rows.",
        example: "json_aggregated([1, NULL]) = '[1, null]'",
        takes: &[Arguments::Are(&[Takes::List])],
        gives: text,
        volatile: false,
        run: json_aggregated,
    },
    Entry {
        name: "to_jsonb",
        aliases: &[],
        arguments: "value",
        about: "A value as JSONB.",
        example: "to_jsonb([1, NULL]) = '[1, null]'",
        takes: ANY,
        gives: text,
        volatile: false,
        run: to_json,
    },
    Entry {
        name: "jsonb_build_array",
        aliases: &[],
        arguments: "values…",
        about: "A list of the values, as JSONB.",
        example: "jsonb_build_array(1, 'a') = '[1, \"a\"]'",
        takes: ALL_ANY,
        gives: text,
        volatile: false,
        run: |call| json_array(call, &NARROW),
    },
    Entry {
        name: "jsonb_build_object",
        aliases: &[],
        arguments: "key, value, …",
        about: "An object of keys and values, as JSONB.",
        example: "jsonb_build_object('a', 1) = '{\"a\": 1}'",
        takes: ALL_ANY,
        gives: built_object_type,
        volatile: false,
        run: |call| json_object(call, &NARROW),
    },
    Entry {
        name: "json_array",
        aliases: &[],
        arguments: "values…",
        about: "A JSON list of the values, without blanks.",
        example: "json_array(1, 'a') = '[1,\"a\"]'",
        takes: ALL_ANY,
        gives: text,
        volatile: false,
        run: |call| json_array(call, &NARROW),
    },
    Entry {
        name: "json_build_array",
        aliases: &[],
        arguments: "values…",
        about: "A JSON list of the values, with blanks as in PostgreSQL.",
        example: "json_build_array(1, 'a') = '[1, \"a\"]'",
        takes: ALL_ANY,
        gives: text,
        volatile: false,
        run: |call| json_array(call, &WIDE),
    },
    Entry {
        name: "json_build_object",
        aliases: &[],
        arguments: "key, value, …",
        about: "A JSON object of keys of any type, which become texts, and values.",
        example: "json_build_object(1, 'a') = '{\"1\" : \"a\"}'",
        takes: ALL_ANY,
        gives: built_object_type,
        volatile: false,
        run: |call| json_object(call, &WIDE),
    },
    Entry {
        name: "json_object",
        aliases: &[],
        arguments: "key, value, …",
        about: "A JSON object of keys, which are texts, and values.",
        example: "json_object('a', 1) = '{\"a\":1}'",
        takes: ALL_ANY,
        gives: object_type,
        volatile: false,
        run: |call| json_object(call, &NARROW),
    },
    Entry {
        name: "json_merge_patch",
        aliases: &[],
        arguments: "json, patches…",
        about: "A JSON value with patches of RFC 7386: their values replace those of the same keys, null takes a key away.",
        example: "json_merge_patch('{\"a\": 1}', '{\"b\": 2}') = '{\"a\":1,\"b\":2}'",
        takes: &[Arguments::More(&[Takes::Json, Takes::Text], Takes::Text)],
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
        arguments: "text or value",
        about: "A text as it is, after it was found to be JSON; the cast to JSON.",
        example: "'[1, 2]'::JSON",
        takes: CAST,
        gives: text,
        volatile: false,
        run: |call| checked(call, false),
    },
    Entry {
        name: "try_json_checked",
        aliases: &[],
        arguments: "text or value",
        about: "A text if it is JSON, otherwise NULL; TRY_CAST to JSON.",
        example: "TRY_CAST('{a' AS JSON) IS NULL",
        takes: CAST,
        gives: text,
        volatile: false,
        run: |call| checked(call, true),
    },
    Entry {
        name: "jsonb_checked",
        aliases: &[],
        arguments: "text or value",
        about: "A text as JSONB, as PostgreSQL prints it: unique sorted keys, a blank after colons and commas; \
                the cast to JSONB.",
        example: "'[1,2]'::JSONB = '[1, 2]'",
        takes: CAST,
        gives: text,
        volatile: false,
        run: |call| checked_jsonb(call, false),
    },
    Entry {
        name: "try_jsonb_checked",
        aliases: &[],
        arguments: "text or value",
        about: "A text as JSONB, or NULL if it is not JSON; TRY_CAST to JSONB.",
        example: "TRY_CAST('{a' AS JSONB) IS NULL",
        takes: CAST,
        gives: text,
        volatile: false,
        run: |call| checked_jsonb(call, true),
    },
    Entry {
        name: "json_pretty",
        aliases: &[],
        arguments: "json",
        about: "JSON with a line for each value.",
        example: "json_pretty('[1, 2]')",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: text,
        volatile: false,
        run: pretty,
    },
    Entry {
        name: "jsonb_pretty",
        aliases: &[],
        arguments: "json",
        about: "JSONB with a line for each value.",
        example: "jsonb_pretty('[1, 2]')",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: text,
        volatile: false,
        run: pretty,
    },
];
