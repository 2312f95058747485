//! Values of SQL as JSON.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, exec_err};

use super::super::marks::is_json_field;
use super::jsonb::canonical_jsonb;
use super::parse::parse;
use super::value::{quote, write_double};
use crate::failure::FunctionFailure;
use crate::temporal::temporal_texts;

/// Whether what is written becomes JSONB, whose numbers keep the places that they are printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonForm {
    Json,
    Jsonb,
}

/// The values of a column, and how each of them is written.
pub(super) enum Column {
    Null,
    /// Text that is JSON.
    Json(ArrayRef),
    Text(ArrayRef),
    Flag(ArrayRef),
    Double(ArrayRef),
    /// Digits, as they are printed.
    Digits(ArrayRef),
    /// Anything else, as it is printed, in quotes.
    Printed(ArrayRef),
    List(ArrayRef, Box<Column>),
    Struct(ArrayRef, Vec<(String, Column)>),
    Map(ArrayRef, ArrayRef, Box<Column>),
}

impl Column {
    pub(super) fn of(array: &ArrayRef, is_json: bool) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(array, &DataType::Utf8)?;
                if is_json { Self::Json(texts) } else { Self::Text(texts) }
            }
            DataType::Boolean => Self::Flag(array.clone()),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Self::Double(match array.data_type() {
                    // By its own digits: 0.1::REAL is 0.1.
                    DataType::Float32 => cast(&cast(array, &DataType::Utf8)?, &DataType::Float64)?,
                    _ => cast(array, &DataType::Float64)?,
                })
            }
            number if number.is_numeric() => Self::Digits(cast(array, &DataType::Utf8)?),
            DataType::List(_) => {
                let items = Self::of(array.as_list::<i32>().values(), is_json)?;
                Self::List(array.clone(), Box::new(items))
            }
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                return Self::of(&cast(array, &DataType::List(field.clone()))?, is_json);
            }
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns();
                let pairs = fields.iter().zip(columns).map(|(field, column)| {
                    Ok((field.name().clone(), Self::of(column, is_json_field(field))?))
                });
                Self::Struct(array.clone(), pairs.collect::<Result<Vec<_>>>()?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let keys = cast(map.keys(), &DataType::Utf8)?;
                Self::Map(array.clone(), keys, Box::new(Self::of(map.values(), false)?))
            }
            DataType::Dictionary(_, value) => return Self::of(&cast(array, value)?, is_json),
            _ => Self::Printed(printed(array)?),
        })
    }

    /// Writes the value of a row.
    pub(super) fn write(&self, row: usize, form: JsonForm, out: &mut String) -> Result<()> {
        let (Self::Json(array)
        | Self::Text(array)
        | Self::Flag(array)
        | Self::Double(array)
        | Self::Digits(array)
        | Self::Printed(array)
        | Self::List(array, _)
        | Self::Struct(array, _)
        | Self::Map(array, _, _)) = self
        else {
            out.push_str("null");
            return Ok(());
        };
        if array.is_null(row) {
            out.push_str("null");
            return Ok(());
        }
        match self {
            Self::Null => {}
            Self::Json(texts) => write_json(texts.as_string::<i32>().value(row), form, out)?,
            Self::Text(texts) | Self::Printed(texts) => {
                quote(texts.as_string::<i32>().value(row), out);
            }
            Self::Flag(flags) => {
                out.push_str(if flags.as_boolean().value(row) { "true" } else { "false" });
            }
            Self::Double(doubles) => {
                let value = doubles.as_primitive::<Float64Type>().value(row);
                match form {
                    JsonForm::Json => write_double(value, out),
                    JsonForm::Jsonb if value.is_finite() => out.push_str(&value.to_string()),
                    JsonForm::Jsonb => {
                        out.push('"');
                        write_double(value, out);
                        out.push('"');
                    }
                }
            }
            Self::Digits(texts) => {
                let digits = texts.as_string::<i32>().value(row);
                match form == JsonForm::Json && digits.contains('.') {
                    true => {
                        let digits = digits.trim_end_matches('0');
                        out.push_str(digits);
                        if digits.ends_with('.') {
                            out.push('0');
                        }
                    }
                    false => out.push_str(digits),
                }
            }
            Self::List(lists, items) => {
                let offsets = lists.as_list::<i32>().value_offsets();
                out.push('[');
                for at in offsets[row]..offsets[row + 1] {
                    if at > offsets[row] {
                        out.push(',');
                    }
                    items.write(at as usize, form, out)?;
                }
                out.push(']');
            }
            Self::Struct(_, fields) => {
                out.push('{');
                for (at, (name, column)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(name, out);
                    out.push(':');
                    column.write(row, form, out)?;
                }
                out.push('}');
            }
            Self::Map(maps, keys, values) => {
                let offsets = maps.as_map().value_offsets();
                out.push('{');
                for at in offsets[row]..offsets[row + 1] {
                    if at > offsets[row] {
                        out.push(',');
                    }
                    quote(keys.as_string::<i32>().value(at as usize), out);
                    out.push(':');
                    values.write(at as usize, form, out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

/// Writes a text that is JSON.
fn write_json(text: &str, form: JsonForm, out: &mut String) -> Result<()> {
    match form {
        JsonForm::Json => match parse(text) {
            Ok(value) => value.write(out),
            Err(why) => return exec_err!("{why}"),
        },
        JsonForm::Jsonb => {
            let text = canonical_jsonb(text).map_err(FunctionFailure::into_datafusion)?;
            out.push_str(&text);
        }
    }
    Ok(())
}

/// Dates, times and intervals as text.
fn printed(array: &ArrayRef) -> Result<ArrayRef> {
    match temporal_texts(array)? {
        Some(texts) => Ok(std::sync::Arc::new(texts)),
        None => Ok(cast(array, &DataType::Utf8)?),
    }
}
