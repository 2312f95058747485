//! SQL values to JSON.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;

use super::super::marks::is_json_field;
use super::jsonb::canonical_jsonb;
use super::value::{quote, write_double};
use crate::failure::FunctionFailure;
use crate::temporal::{TemporalStyle, temporal_texts};

/// Whether the output becomes JSONB, whose numbers keep their printed scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonForm {
    Json,
    Jsonb,
}

/// A column's values and how to write them.
pub(super) enum Column {
    Null,
    /// Text that is JSON.
    Json(ArrayRef),
    Text(ArrayRef),
    Flag(ArrayRef),
    Double(ArrayRef),
    /// Digits as printed.
    Digits(ArrayRef),
    /// Anything else, as printed, in quotes.
    Printed(ArrayRef),
    List(ArrayRef, Box<Column>),
    Struct(ArrayRef, Vec<(String, Column)>),
    Map(ArrayRef, Box<Column>, Box<Column>),
}

impl Column {
    pub(super) fn try_from_array(array: &ArrayRef, is_json: bool) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(array, &DataType::Utf8)?;
                if is_json { Self::Json(texts) } else { Self::Text(texts) }
            }
            DataType::Boolean => Self::Flag(array.clone()),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Self::Double(match array.data_type() {
                    // With its own digits: 0.1::REAL is 0.1.
                    DataType::Float32 => cast(&cast(array, &DataType::Utf8)?, &DataType::Float64)?,
                    _ => cast(array, &DataType::Float64)?,
                })
            }
            number if number.is_numeric() => Self::Digits(cast(array, &DataType::Utf8)?),
            DataType::List(_) => {
                let items = Self::try_from_array(array.as_list::<i32>().values(), is_json)?;
                Self::List(array.clone(), Box::new(items))
            }
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                return Self::try_from_array(
                    &cast(array, &DataType::List(field.clone()))?,
                    is_json,
                );
            }
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns();
                let pairs = fields.iter().zip(columns).map(|(field, column)| {
                    Ok((field.name().clone(), Self::try_from_array(column, is_json_field(field))?))
                });
                Self::Struct(array.clone(), pairs.collect::<Result<Vec<_>>>()?)
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let is_json = |at: usize| match entries.data_type() {
                    DataType::Struct(fields) => fields.get(at).is_some_and(|of| is_json_field(of)),
                    _ => false,
                };
                let keys = Self::try_from_array(map.keys(), is_json(0))?;
                let values = Self::try_from_array(map.values(), is_json(1))?;
                Self::Map(array.clone(), Box::new(keys), Box::new(values))
            }
            DataType::Dictionary(_, value) => {
                return Self::try_from_array(&cast(array, value)?, is_json);
            }
            _ => Self::Printed(printed(array)?),
        })
    }

    /// Returns the array, if its values may be NULL.
    fn array(&self) -> Option<&ArrayRef> {
        match self {
            Self::Null => None,
            Self::Json(array)
            | Self::Text(array)
            | Self::Flag(array)
            | Self::Double(array)
            | Self::Digits(array)
            | Self::Printed(array)
            | Self::List(array, _)
            | Self::Struct(array, _)
            | Self::Map(array, _, _) => Some(array),
        }
    }

    /// Whether the values are rows, arrays or maps.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self, Self::List(..) | Self::Struct(..) | Self::Map(..))
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.array().is_none_or(|array| array.is_null(row))
    }

    /// Writes the value of a row.
    pub(super) fn write(&self, row: usize, form: JsonForm, out: &mut String) -> Result<()> {
        if self.is_null(row) {
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
                    // JSON cannot represent these as numbers.
                    _ if !value.is_finite() => {
                        out.push('"');
                        write_double(value, out);
                        out.push('"');
                    }
                    JsonForm::Json => write_double(value, out),
                    JsonForm::Jsonb => out.push_str(&value.to_string()),
                }
            }
            Self::Digits(texts) => out.push_str(texts.as_string::<i32>().value(row)),
            Self::List(lists, items) => {
                let offsets = lists.as_list::<i32>().value_offsets();
                let rows = offsets[row]..offsets[row + 1];
                listed(BRACKETS, rows, out, |at, out| items.write(at as usize, form, out))?;
            }
            Self::Struct(_, fields) => {
                listed(BRACES, fields, out, |(name, column), out| {
                    quote(name, out);
                    out.push(':');
                    column.write(row, form, out)
                })?;
            }
            Self::Map(maps, keys, values) => {
                let offsets = maps.as_map().value_offsets();
                let rows = offsets[row]..offsets[row + 1];
                listed(BRACES, rows, out, |at, out| {
                    keys.write_key(at as usize, out)?;
                    out.push(':');
                    values.write(at as usize, form, out)
                })?;
            }
        }
        Ok(())
    }

    /// Writes a row or an array with a line for each of its values.
    pub(super) fn write_lines(&self, row: usize, out: &mut String) -> Result<()> {
        const COMMA: &str = ",\n ";
        match self {
            Self::List(lists, items) if lists.is_valid(row) => {
                let offsets = lists.as_list::<i32>().value_offsets();
                listed(["[", COMMA, "]"], offsets[row]..offsets[row + 1], out, |at, out| {
                    items.write(at as usize, JsonForm::Json, out)
                })
            }
            Self::Struct(rows, fields) if rows.is_valid(row) => {
                listed(["{", COMMA, "}"], fields, out, |(name, column), out| {
                    quote(name, out);
                    out.push(':');
                    column.write(row, JsonForm::Json, out)
                })
            }
            _ => self.write(row, JsonForm::Json, out),
        }
    }

    /// Writes the value of a row as an object key; returns `false` for NULL.
    pub(super) fn write_key(&self, row: usize, out: &mut String) -> Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        match self {
            Self::Json(texts) | Self::Text(texts) | Self::Digits(texts) | Self::Printed(texts) => {
                quote(texts.as_string::<i32>().value(row), out);
            }
            other => {
                let mut text = String::new();
                other.write(row, JsonForm::Jsonb, &mut text)?;
                // NaN and the infinities are already quoted.
                match matches!(other, Self::Double(_)) && text.starts_with('"') {
                    true => out.push_str(&text),
                    false => quote(&text, out),
                }
            }
        }
        Ok(true)
    }
}

const BRACKETS: [&str; 3] = ["[", ",", "]"];
const BRACES: [&str; 3] = ["{", ",", "}"];

/// Writes values between brackets, with what separates them.
fn listed<T>(
    [open, comma, close]: [&str; 3],
    values: impl IntoIterator<Item = T>,
    out: &mut String,
    mut write: impl FnMut(T, &mut String) -> Result<()>,
) -> Result<()> {
    out.push_str(open);
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push_str(comma);
        }
        write(value, out)?;
    }
    out.push_str(close);
    Ok(())
}

/// Writes a text that is JSON.
fn write_json(text: &str, form: JsonForm, out: &mut String) -> Result<()> {
    match form {
        JsonForm::Json => out.push_str(text),
        JsonForm::Jsonb => {
            let text = canonical_jsonb(text).map_err(FunctionFailure::into_datafusion)?;
            out.push_str(&text);
        }
    }
    Ok(())
}

/// Writes dates, times, intervals and bytes as PostgreSQL does in JSON, whatever the session's styles.
fn printed(array: &ArrayRef) -> Result<ArrayRef> {
    let data_type = array.data_type();
    if data_type.is_binary() {
        let bytes = cast(array, &DataType::Binary)?;
        let texts = bytes.as_binary::<i32>().iter().map(|bytes| bytes.map(hexadecimal));
        return Ok(Arc::new(texts.collect::<StringArray>()));
    }
    let Some(texts) = temporal_texts(array, TemporalStyle::default())? else {
        return Ok(cast(array, &DataType::Utf8)?);
    };
    if !matches!(data_type, DataType::Timestamp(..)) {
        return Ok(Arc::new(texts));
    }
    let texts = texts.iter().map(|text| text.map(moment));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("\\x");
    for byte in bytes {
        // Writing to a String does not fail.
        let _written = write!(text, "{byte:02x}");
    }
    text
}

/// Converts `2024-01-02 03:04:05+01` to ISO 8601, `2024-01-02T03:04:05+01:00`; `infinity` and `BC` stay.
fn moment(text: &str) -> String {
    let Some((date, rest)) = text.split_once(' ') else { return text.to_owned() };
    let (time, era) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let has_hours_alone = time.len() >= 3 && time[time.len() - 3..].starts_with(['+', '-']);
    let minutes = if has_hours_alone { ":00" } else { "" };
    format!("{date}T{time}{minutes}{era}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_by_iso_8601() {
        for (text, written) in [
            ("2024-01-02 03:04:05", "2024-01-02T03:04:05"),
            ("2024-01-02 03:04:05.5+00", "2024-01-02T03:04:05.5+00:00"),
            ("2024-01-02 03:04:05+05:30", "2024-01-02T03:04:05+05:30"),
            ("0044-03-15 12:00:00-01 BC", "0044-03-15T12:00:00-01:00 BC"),
            ("infinity", "infinity"),
            ("-infinity", "-infinity"),
        ] {
            assert_eq!(moment(text), written, "{text}");
        }
    }
}
