//! JSON to SQL values: `json_transform('{"a": 1}', '{"a": "INTEGER"}')`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListArray, StringArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes};
use super::extract::parsed;
use super::parse::parse;
use super::value::Json;

/// Returns the type that a structure describes.
fn type_of(structure: &Json<'_>) -> Result<DataType> {
    Ok(match structure {
        Json::Text(name) => named(name)?,
        Json::List(items) => match items.as_slice() {
            [item] => DataType::new_list(type_of(item)?, true),
            _ => return plan_err!("the structure of a list is a list of one type"),
        },
        Json::Object(pairs) => {
            let fields: Result<Vec<Field>> = pairs
                .iter()
                .map(|(key, value)| Ok(Field::new(&**key, type_of(value)?, true)))
                .collect();
            DataType::Struct(Fields::from(fields?))
        }
        _ => return plan_err!("a structure names types, such as '{{\"a\": \"INTEGER\"}}'"),
    })
}

fn named(name: &str) -> Result<DataType> {
    let upper = name.to_ascii_uppercase();
    if let Some(item) = upper.strip_suffix("[]") {
        return Ok(DataType::new_list(named(item)?, true));
    }
    Ok(match upper.as_str() {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" => DataType::Int8,
        "SMALLINT" => DataType::Int16,
        "INTEGER" | "INT" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "HUGEINT" => DataType::Decimal128(38, 0),
        "REAL" => DataType::Float32,
        "DOUBLE" | "FLOAT" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" | "JSON" | "NULL" => DataType::Utf8,
        "DATE" => DataType::Date32,
        "TIME" => DataType::Time64(TimeUnit::Microsecond),
        "TIMESTAMP" => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return plan_err!("json_transform does not know the type '{name}'"),
    })
}

/// Builds an array of a type from the values.
fn array(values: &[Option<&Json<'_>>], wanted: &DataType, strict: bool) -> Result<ArrayRef> {
    match wanted {
        DataType::List(field) => {
            let (mut items, mut lengths, mut valid) = (vec![], vec![], vec![]);
            for value in values {
                let list = match value {
                    Some(Json::List(list)) => Some(list),
                    _ => mismatch(*value, "a list", strict)?,
                };
                valid.push(list.is_some());
                lengths.push(list.map_or(0, Vec::len));
                items.extend(list.into_iter().flatten().map(Some));
            }
            let items = array(&items, field.data_type(), strict)?;
            let (offsets, valid) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, items, Some(valid))?))
        }
        DataType::Struct(fields) => {
            let mut valid = Vec::with_capacity(values.len());
            for value in values {
                let is_object = match value {
                    Some(Json::Object(_)) => true,
                    _ => mismatch(*value, "an object", strict)?.is_some_and(|()| true),
                };
                valid.push(is_object);
            }
            let column = |field: &Arc<Field>| {
                let inside: Vec<Option<&Json<'_>>> = values
                    .iter()
                    .map(|value| value.and_then(|value| value.get(field.name())))
                    .collect();
                array(&inside, field.data_type(), strict)
            };
            let columns: Result<Vec<ArrayRef>> = fields.iter().map(column).collect();
            Ok(Arc::new(StructArray::try_new(
                fields.clone(),
                columns?,
                Some(NullBuffer::from(valid)),
            )?))
        }
        scalar => {
            let text = |value: &Option<&Json<'_>>| {
                let mut out = String::new();
                value.is_some_and(|value| value.write_text(&mut out)).then_some(out)
            };
            let texts: StringArray = values.iter().map(text).collect();
            let options = CastOptions { safe: !strict, ..CastOptions::default() };
            Ok(cast_with_options(&texts, scalar, &options)?)
        }
    }
}

/// Returns NULL for a value that does not match the structure, or an error.
fn mismatch<T>(value: Option<&Json<'_>>, wanted: &str, strict: bool) -> Result<Option<T>> {
    match value {
        Some(value) if strict && !matches!(value, Json::Null) => {
            datafusion::common::exec_err!("expected {wanted}, found {}", value.type_name())
        }
        _ => Ok(None),
    }
}

fn transform(call: &Call, strict: bool) -> Result<ArrayRef> {
    let values: Result<Vec<Option<Json<'_>>>> = (0..call.rows)
        .map(|row| match call.is_null(row) {
            true => Ok(None),
            false => parsed(call, 0, row).map(Some),
        })
        .collect();
    let values = values?;
    let values: Vec<Option<&Json<'_>>> = values.iter().map(Option::as_ref).collect();
    array(&values, &call.result, strict)
}

fn as_structure(_: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let structure =
        constants.get(1).copied().flatten().and_then(|value| value.try_as_str().flatten());
    let Some(structure) = structure else {
        return plan_err!("the structure of json_transform must be a constant");
    };
    match parse(structure) {
        Ok(structure) => type_of(&structure),
        Err(why) => plan_err!("{why}"),
    }
}

const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_transform",
        aliases: &["from_json"],
        arguments: "json, structure",
        about: "JSON as structs, lists and values of the types that a structure names; NULL for values of other types.",
        example: "json_transform('{\"a\": 1}', '{\"a\": \"INTEGER\"}')",
        takes: TWO,
        gives: as_structure,
        volatile: false,
        run: |call| transform(call, false),
    },
    Entry {
        name: "json_transform_strict",
        aliases: &["from_json_strict"],
        arguments: "json, structure",
        about: "Like json_transform, but an error for values of other types.",
        example: "json_transform_strict('{\"a\": 1}', '{\"a\": \"INTEGER\"}')",
        takes: TWO,
        gives: as_structure,
        volatile: false,
        run: |call| transform(call, true),
    },
];
