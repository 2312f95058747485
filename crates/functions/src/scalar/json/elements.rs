//! The items of a JSON list and the members of an object, as SQL lists. A value of another kind is an error,
//! as in PostgreSQL, whose set-returning functions are built on these.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListArray, StringBuilder, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{DataFusionError, Result, ScalarValue};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, texts};
use super::extract::{AsText, json_form, parsed, text_form, told};
use super::value::Json;
use crate::failure::FunctionFailure;

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];

/// Maximum number of members in a batch, which fits the offsets of a list.
const MEMBERS_MAX: usize = i32::MAX as usize;

fn members_fields() -> Fields {
    ["key", "value"].into_iter().map(|name| Field::new(name, DataType::Utf8, true)).collect()
}

fn members_lists(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::new_list(DataType::Struct(members_fields()), true))
}

fn other_kind(message: String) -> DataFusionError {
    FunctionFailure::error("22023", message)
}

/// The items of each row's list.
fn items(call: &Call, write: AsText) -> Result<ArrayRef> {
    call.text_lists(|row, out| {
        let value = parsed(call, 0, row)?;
        let kind = match &value {
            Json::List(items) => {
                for item in items {
                    let mut text = String::new();
                    let is_there = told(call, write(item, &mut text))?;
                    out.values().append_option(is_there.then_some(text));
                }
                return Ok(true);
            }
            Json::Object(_) => "an object",
            _ => "a scalar",
        };
        Err(other_kind(format!("cannot extract elements from {kind}")))
    })
}

/// The keys of each row's object.
fn names(call: &Call) -> Result<ArrayRef> {
    call.text_lists(|row, out| {
        let value = parsed(call, 0, row)?;
        let kind = match &value {
            Json::Object(pairs) => {
                pairs.iter().for_each(|(key, _)| out.values().append_value(key));
                return Ok(true);
            }
            Json::List(_) => "an array",
            _ => "a scalar",
        };
        Err(other_kind(format!("cannot call json_object_keys on {kind}")))
    })
}

/// The keys and values of each row's object.
fn members(call: &Call, write: AsText) -> Result<ArrayRef> {
    let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
    let (mut text, mut count) = (String::new(), 0);
    let (mut lengths, mut valid) = (Vec::with_capacity(call.rows), Vec::with_capacity(call.rows));
    for row in 0..call.rows {
        valid.push(!call.is_null(row));
        let start = count;
        if !call.is_null(row) {
            let value = parsed(call, 0, row)?;
            let pairs = match &value {
                Json::Object(pairs) => pairs,
                Json::List(_) => {
                    return Err(other_kind("cannot deconstruct an array as an object".to_owned()));
                }
                _ => return Err(other_kind("cannot deconstruct a scalar".to_owned())),
            };
            for (key, member) in pairs {
                text.clear();
                let is_there = told(call, write(member, &mut text))?;
                keys.append_value(key);
                values.append_option(is_there.then_some(&text));
            }
            count += pairs.len();
        }
        if count > MEMBERS_MAX {
            return call.fails(format_args!("more than {MEMBERS_MAX} members at once"));
        }
        lengths.push(count - start);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(values.finish())];
    let members = Arc::new(StructArray::try_new(members_fields(), columns, None)?);
    let item = Arc::new(Field::new_list_field(DataType::Struct(members_fields()), true));
    let (offsets, valid) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
    Ok(Arc::new(ListArray::try_new(item, offsets, members, Some(valid))?))
}

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_elements",
        aliases: &[],
        arguments: "json",
        about: "The items of a JSON list, each as JSON; json_array_elements gives a row for each.",
        example: "json_elements('[1, \"a\"]') = ['1', '\"a\"']",
        takes: ONE,
        gives: texts,
        volatile: false,
        run: |call| items(call, json_form(call)),
    },
    Entry {
        name: "json_element_texts",
        aliases: &[],
        arguments: "json",
        about: "The items of a JSON list as texts, null as NULL; json_array_elements_text gives a row for each.",
        example: "json_element_texts('[1, \"a\"]') = ['1', 'a']",
        takes: ONE,
        gives: texts,
        volatile: false,
        run: |call| items(call, text_form(call)),
    },
    Entry {
        name: "json_members",
        aliases: &[],
        arguments: "json",
        about: "The keys of a JSON object and their values as JSON, as structs; jsonb_each gives a row for each.",
        example: "json_members('{\"a\": \"x\"}')",
        takes: ONE,
        gives: members_lists,
        volatile: false,
        run: |call| members(call, json_form(call)),
    },
    Entry {
        name: "json_member_texts",
        aliases: &[],
        arguments: "json",
        about: "The keys of a JSON object and their values as texts, null as NULL; jsonb_each_text gives a row for each.",
        example: "json_member_texts('{\"a\": \"x\"}')",
        takes: ONE,
        gives: members_lists,
        volatile: false,
        run: |call| members(call, text_form(call)),
    },
    Entry {
        name: "json_member_names",
        aliases: &[],
        arguments: "json",
        about: "The keys of a JSON object; json_object_keys gives a row for each.",
        example: "json_member_names('{\"a\": 1}') = ['a']",
        takes: ONE,
        gives: texts,
        volatile: false,
        run: names,
    },
];
