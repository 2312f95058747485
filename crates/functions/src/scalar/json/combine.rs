//! JSONB operators as in PostgreSQL: `||`, `-`, `?`, `?|` and `?&`.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, flag, text};
use super::extract::{parsed, told};
use super::jsonb;
use super::value::{Json, order_keys};

/// Merges two objects, in which the second one's keys win, or concatenates lists.
fn concatenated<'a>(left: Json<'a>, right: Json<'a>) -> Json<'a> {
    match (left, right) {
        (Json::Object(mut pairs), Json::Object(more)) => {
            pairs.extend(more);
            order_keys(&mut pairs);
            Json::Object(pairs)
        }
        (left, right) => {
            let mut items = elements(left);
            items.extend(elements(right));
            Json::List(items)
        }
    }
}

fn elements(value: Json<'_>) -> Vec<Json<'_>> {
    match value {
        Json::List(items) => items,
        other => vec![other],
    }
}

fn concat(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let value = concatenated(parsed(call, 0, row)?, parsed(call, 1, row)?);
        told(call, jsonb::write(&value, out))?;
        Ok(true)
    })
}

/// Removes a key, or the elements that equal this text.
fn remove(value: &mut Json<'_>, key: &str) {
    match value {
        Json::Object(pairs) => pairs.retain(|(name, _)| name != key),
        Json::List(items) => items.retain(|item| !is_text(item, key)),
        _ => {}
    }
}

/// Removes the element at an index, counted from the end if negative.
fn remove_element(items: &mut Vec<Json<'_>>, at: i64) {
    let at = if at < 0 { at.saturating_add(items.len() as i64) } else { at };
    if let Some(at) = usize::try_from(at).ok().filter(|at| *at < items.len()) {
        items.remove(at);
    }
}

fn delete(call: &Call) -> Result<ArrayRef> {
    call.texts(|row, out| {
        let mut value = parsed(call, 0, row)?;
        match (&mut value, call.arrays[1].data_type()) {
            (Json::List(items), DataType::Int64) => remove_element(items, call.whole(1).value(row)),
            (Json::Object(_), DataType::Int64) => {
                return call.fails_as("22023", "cannot delete from object using integer index");
            }
            (Json::List(_) | Json::Object(_), DataType::List(_)) => {
                let keys = call.list(1).value(row);
                keys.as_string::<i32>().iter().flatten().for_each(|key| remove(&mut value, key));
            }
            (Json::List(_) | Json::Object(_), _) => remove(&mut value, call.text(1).value(row)),
            _ => return call.fails_as("22023", "cannot delete from scalar"),
        }
        told(call, jsonb::write(&value, out))?;
        Ok(true)
    })
}

fn is_text(value: &Json<'_>, text: &str) -> bool {
    matches!(value, Json::Text(own) if own == text)
}

/// Whether a text is a key of an object, an element of a list, or the value.
fn exists(value: &Json<'_>, key: &str) -> bool {
    match value {
        Json::List(items) => items.iter().any(|item| is_text(item, key)),
        Json::Object(_) => value.get(key).is_some(),
        other => is_text(other, key),
    }
}

/// Whether one of the texts exists, or all of them do.
fn exist(call: &Call, is_all: bool) -> Result<ArrayRef> {
    call.flags(|row| {
        let (value, keys) = (parsed(call, 0, row)?, call.list(1).value(row));
        let mut keys = keys.as_string::<i32>().iter().flatten();
        Ok(Some(match is_all {
            true => keys.all(|key| exists(&value, key)),
            false => keys.any(|key| exists(&value, key)),
        }))
    })
}

const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Json, Takes::Json])];
const KEYS: &[Arguments] = &[Arguments::Are(&[Takes::Json, Takes::Texts])];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "jsonb_concat",
        aliases: &[],
        arguments: "json, json",
        about: "Two objects as one, in which the keys of the second one win; else the elements of both as one \
                list; the operator ||.",
        example: "jsonb_concat('{\"a\": 1}', '{\"b\": 2}') = '{\"a\": 1, \"b\": 2}'",
        takes: TWO,
        gives: text,
        volatile: false,
        run: concat,
    },
    Entry {
        name: "jsonb_delete",
        aliases: &[],
        arguments: "json, key, number of an element or list of keys",
        about: "JSONB without a key, an element or the elements that are a text; the operator -.",
        example: "jsonb_delete('{\"a\": 1, \"b\": 2}', 'a') = '{\"b\": 2}'",
        takes: &[
            Arguments::Are(&[Takes::Json, Takes::Text]),
            Arguments::Are(&[Takes::Json, Takes::Whole]),
            Arguments::Are(&[Takes::Json, Takes::Texts]),
        ],
        gives: text,
        volatile: false,
        run: delete,
    },
    Entry {
        name: "jsonb_exists",
        aliases: &[],
        arguments: "json, key",
        about: "Whether a text is a key of an object or an element of a list; the operator ?.",
        example: "jsonb_exists('{\"a\": 1}', 'a')",
        takes: &[Arguments::Are(&[Takes::Json, Takes::Text])],
        gives: flag,
        volatile: false,
        run: |call| {
            call.flags(|row| Ok(Some(exists(&parsed(call, 0, row)?, call.text(1).value(row)))))
        },
    },
    Entry {
        name: "jsonb_exists_any",
        aliases: &[],
        arguments: "json, keys",
        about: "Whether one of the texts is a key or an element; the operator ?|.",
        example: "jsonb_exists_any('{\"a\": 1}', ['a', 'b'])",
        takes: KEYS,
        gives: flag,
        volatile: false,
        run: |call| exist(call, false),
    },
    Entry {
        name: "jsonb_exists_all",
        aliases: &[],
        arguments: "json, keys",
        about: "Whether all of the texts are keys or elements; the operator ?&.",
        example: "jsonb_exists_all('{\"a\": 1}', ['a', 'b']) = false",
        takes: KEYS,
        gives: flag,
        volatile: false,
        run: |call| exist(call, true),
    },
];
