//! Lists to text as in PostgreSQL: `{1,NULL,"a b"}`; structs, maps and the lists in and of them as in DuckDB:
//! `{'a': [1, NULL]}`, `{key=value}`, `[{'a': 'b, c'}]`.
//!
//! Arrow writes nested NULLs as nothing, so that `[NULL]` would look like `[]`.

use std::fmt::Write;
use std::sync::Arc;

use atoll_functions::push_array_item;
use atoll_functions::temporal::{TemporalStyle, temporal_texts};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

/// Whether this module writes values of the type.
pub(super) fn is_nested(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
            | DataType::Map(..)
    )
}

/// Converts nested values to texts, those of dates, times and intervals in a style.
pub(super) fn nested_texts(
    values: &ArrayRef,
    style: TemporalStyle,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(match is_array(values.data_type()) {
        true => arrays(values, style)?,
        false => texts(values, style)?,
    }))
}

/// Whether values are arrays as PostgreSQL has them: their innermost items are neither structs nor maps.
pub(super) fn is_array(of: &DataType) -> bool {
    match of {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            is_array(item.data_type()) || !is_nested(item.data_type())
        }
        _ => false,
    }
}

/// Writes arrays as PostgreSQL does.
fn arrays(values: &ArrayRef, style: TemporalStyle) -> Result<StringArray, ArrowError> {
    if let DataType::LargeList(of) | DataType::FixedSizeList(of, _) = values.data_type() {
        let list = DataType::List(Arc::clone(of));
        return arrays(&cast_with_options(values, &list, &CastOptions::default())?, style);
    }
    let lists = values.as_list::<i32>();
    let (is_outer, ends) = (is_nested(&lists.value_type()), lists.value_offsets());
    let items = match lists.value_type() {
        of if is_nested(&of) => arrays(lists.values(), style)?,
        DataType::Boolean => {
            let letter = |flag: Option<bool>| flag.map(|flag| if flag { "t" } else { "f" });
            lists.values().as_boolean().iter().map(letter).collect()
        }
        _ => texts(lists.values(), style)?,
    };
    Ok(written(values, |row, text| {
        text.push('{');
        for (at, item) in (ends[row] as usize..ends[row + 1] as usize).enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            match items.is_valid(item).then(|| items.value(item)) {
                None => text.push_str("NULL"),
                Some(inner) if is_outer => text.push_str(inner),
                Some(plain) => push_array_item(plain, text),
            }
        }
        text.push('}');
    }))
}

fn texts(values: &ArrayRef, style: TemporalStyle) -> Result<StringArray, ArrowError> {
    match values.data_type() {
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            let (items, ends) = (parts(lists.values(), style)?, lists.value_offsets());
            Ok(written(values, |row, text| {
                text.push('[');
                for (at, item) in (ends[row]..ends[row + 1]).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    text.push_str(items.value(item as usize));
                }
                text.push(']');
            }))
        }
        DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            let list = DataType::List(Arc::clone(of));
            texts(&cast_with_options(values, &list, &CastOptions::default())?, style)
        }
        DataType::Struct(fields) => {
            let columns = values.as_struct().columns().iter().map(|column| parts(column, style));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let names: Vec<String> = fields.iter().map(|field| quoted(field.name())).collect();
            Ok(written(values, |row, text| {
                text.push('{');
                for (at, (name, column)) in names.iter().zip(&columns).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    text.push_str(name);
                    text.push_str(": ");
                    text.push_str(column.value(row));
                }
                text.push('}');
            }))
        }
        DataType::Map(..) => {
            let maps = values.as_map();
            let (keys, items) = (parts(maps.keys(), style)?, parts(maps.values(), style)?);
            let ends = maps.value_offsets();
            Ok(written(values, |row, text| {
                text.push('{');
                for (at, entry) in (ends[row]..ends[row + 1]).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    text.push_str(keys.value(entry as usize));
                    text.push('=');
                    text.push_str(items.value(entry as usize));
                }
                text.push('}');
            }))
        }
        _ => {
            if let Some(texts) = temporal_texts(values, style)? {
                return Ok(texts);
            }
            if values.data_type().is_binary() {
                return hexadecimal(values);
            }
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let texts = cast_with_options(values, &DataType::Utf8, &options)?;
            Ok(texts.as_string::<i32>().clone())
        }
    }
}

/// Bytes as PostgreSQL writes them: `\x00ff`.
pub fn hexadecimal(values: &dyn Array) -> Result<StringArray, ArrowError> {
    let bytes = cast_with_options(values, &DataType::LargeBinary, &CastOptions::default())?;
    let text = |bytes: &[u8]| {
        let mut text = String::with_capacity(2 + bytes.len() * 2);
        text.push_str("\\x");
        for byte in bytes {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    };
    Ok(bytes.as_binary::<i64>().iter().map(|bytes| bytes.map(text)).collect())
}

fn written(values: &ArrayRef, write: impl Fn(usize, &mut String)) -> StringArray {
    let mut builder = StringBuilder::new();
    let mut text = String::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            builder.append_null();
            continue;
        }
        text.clear();
        write(row, &mut text);
        builder.append_value(&text);
    }
    builder.finish()
}

/// Writes values as parts of others: with a word for NULL, and with quotes around ambiguous texts.
fn parts(values: &ArrayRef, style: TemporalStyle) -> Result<StringArray, ArrowError> {
    let may_be_other = matches!(
        values.data_type(),
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
    );
    let texts = texts(values, style)?;
    let part = |text: Option<&str>| match text {
        None => Some("NULL".to_owned()),
        Some(text) if may_be_other && is_ambiguous(text) => Some(quoted(text)),
        Some(text) => Some(text.to_owned()),
    };
    Ok(texts.iter().map(part).collect())
}

/// Whether a text inside another value needs quotes.
pub fn is_ambiguous(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.starts_with(char::is_whitespace)
        || text.ends_with(char::is_whitespace)
        || text.contains(['\'', '"', '\\', ',', ':', '=', '[', ']', '{', '}', '(', ')'])
}

/// Writes a quoted text inside another value, or a quoted field name.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
