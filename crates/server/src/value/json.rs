//! Structs, maps and nested lists as JSON, whose dates, times and intervals have one style.

use atoll_sql::arrow::array::{Array, ArrayRef, AsArray};
use atoll_sql::arrow::datatypes::{DataType, Field};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::temporal::TemporalStyle;

use super::text::{TextCells, text_cells};
use super::types::{FLOAT4, FLOAT8, INT2, INT4, INT8, JSON, JSONB, NUMERIC, PgType};
use super::{WriteValue, items, items_of, plain};

/// How a text is written as JSON.
#[derive(Clone, Copy)]
enum JsonForm {
    /// Verbatim.
    Plain,
    /// A Boolean, from `t` and `f`.
    Flag,
    /// Verbatim, but `NaN` and infinities in quotes.
    Number,
    /// In quotes.
    Quoted,
}

/// The values of an array as JSON.
pub(super) fn json_cells(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    match array.data_type() {
        DataType::Struct(_) => structs(array),
        DataType::Map(..) => maps(array),
        _ => lists(array),
    }
}

fn structs(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let fields = array.as_struct();
    let names: Vec<Vec<u8>> = fields
        .fields()
        .iter()
        .map(|field| {
            let mut name = field.name().as_bytes().to_vec();
            quote(0, &mut name);
            name.push(b':');
            name
        })
        .collect();
    let columns = fields.fields().iter().zip(fields.columns());
    let columns = columns.map(|(field, column)| JsonColumn::new(field, column));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |row, out| {
        out.push(b'{');
        for (at, (name, column)) in names.iter().zip(&columns).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            column.write(row, out);
        }
        out.push(b'}');
    }))
}

fn maps(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let entries = array.as_map().entries();
    let (keys, values) = (entries.column(0), entries.column(1));
    let values = JsonColumn::new(&entries.fields()[1], values)?;
    let keys = Column::new(keys)?;
    Ok(Box::new(move |row, out| {
        out.push(b'{');
        for (at, entry) in items_of(array, row).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let start = out.len();
            keys.write(entry, out);
            quote(start, out);
            out.push(b':');
            values.write(entry, out);
        }
        out.push(b'}');
    }))
}

fn lists(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let (
        Some(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
    ) = (items(array), array.data_type())
    else {
        return Ok(Box::new(|_, _| {}));
    };
    let values = JsonColumn::new(item, values)?;
    Ok(Box::new(move |row, out| {
        out.push(b'[');
        for (at, item) in items_of(array, row).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            values.write(item, out);
        }
        out.push(b']');
    }))
}

/// A column whose dictionary, if any, is resolved for each value.
enum Column<'a> {
    Cells(TextCells<'a>),
    Encoded(&'a ArrayRef),
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, ArrowError> {
        match array.data_type() {
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) => Ok(Self::Encoded(array)),
            _ => text_cells(array, TemporalStyle::default()).map(Self::Cells),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Cells(cells) => cells.is_null(row),
            Self::Encoded(array) => array.logical_nulls().is_some_and(|nulls| nulls.is_null(row)),
        }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Cells(cells) => cells.write(row, out),
            Self::Encoded(array) => {
                if let Ok(value) = plain(&array.slice(row, 1))
                    && let Ok(cells) = text_cells(&value, TemporalStyle::default())
                {
                    cells.write(0, out);
                }
            }
        }
    }
}

struct JsonColumn<'a> {
    form: JsonForm,
    column: Column<'a>,
}

impl<'a> JsonColumn<'a> {
    fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let form = match PgType::of_field(field).oid {
            JSON | JSONB => JsonForm::Plain,
            INT2 | INT4 | INT8 | FLOAT4 | FLOAT8 | NUMERIC => JsonForm::Number,
            _ if *field.data_type() == DataType::Boolean => JsonForm::Flag,
            _ if items(array).is_some() => {
                let write = lists(array)?;
                let cells = TextCells { nulls: array.logical_nulls(), write };
                return Ok(Self { form: JsonForm::Plain, column: Column::Cells(cells) });
            }
            _ => JsonForm::Quoted,
        };
        Ok(Self { form, column: Column::new(array)? })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.column.is_null(row) {
            return out.extend_from_slice(b"null");
        }
        let start = out.len();
        self.column.write(row, out);
        match self.form {
            JsonForm::Plain => {}
            JsonForm::Flag => {
                let text: &[u8] = if out[start..] == *b"t" { b"true" } else { b"false" };
                out.truncate(start);
                out.extend_from_slice(text);
            }
            JsonForm::Number if out[start..].iter().all(|byte| !byte.is_ascii_uppercase()) => {}
            JsonForm::Number | JsonForm::Quoted => quote(start, out),
        }
    }
}

/// Quotes the text after `start`.
fn quote(start: usize, out: &mut Vec<u8>) {
    let text = out.split_off(start);
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                let digit =
                    |value: u8| char::from_digit(value.into(), 16).map_or(b'0', |it| it as u8);
                out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
