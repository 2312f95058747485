//! Rows as PostgreSQL's text and CSV, a message each.

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::arrow::error::ArrowError;

use super::{CopyForm, CopyHeader};
use crate::value::{TextCells, plain, text_cells};
use crate::wire::Output;

/// The names of the columns, where the form has them.
pub(super) fn write_header(schema: &Schema, form: &CopyForm, output: &mut Output) {
    if form.header == CopyHeader::None {
        return;
    }
    output.message(b'd', |body| {
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                body.push(form.delimiter);
            }
            let start = body.len();
            body.extend_from_slice(field.name().as_bytes());
            escape(form, start, body);
        }
        body.push(b'\n');
    });
}

/// The rows of a batch.
pub(super) fn write_rows(
    batch: &RecordBatch,
    form: &CopyForm,
    output: &mut Output,
) -> Result<(), ArrowError> {
    let arrays: Vec<ArrayRef> = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
    let columns = arrays.iter().map(text_cells).collect::<Result<Vec<TextCells<'_>>, _>>()?;
    for row in 0..batch.num_rows() {
        output.message(b'd', |body| {
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    body.push(form.delimiter);
                }
                if column.is_null(row) {
                    body.extend_from_slice(&form.null);
                    continue;
                }
                let start = body.len();
                column.write(row, body);
                escape(form, start, body);
            }
            body.push(b'\n');
        });
    }
    Ok(())
}

/// Makes what stands behind `start` one value.
fn escape(form: &CopyForm, start: usize, body: &mut Vec<u8>) {
    match form.is_csv {
        true => quote(form, start, body),
        false => escape_text(form, start, body),
    }
}

fn quote(form: &CopyForm, start: usize, body: &mut Vec<u8>) {
    let value = &body[start..];
    let is_special =
        |byte: &u8| *byte == form.delimiter || *byte == form.quote || matches!(byte, b'\n' | b'\r');
    if value != form.null && value != b"\\." && !value.iter().any(is_special) {
        return;
    }
    let value = body.split_off(start);
    body.push(form.quote);
    for byte in value {
        if byte == form.quote || byte == form.escape {
            body.push(form.escape);
        }
        body.push(byte);
    }
    body.push(form.quote);
}

fn escape_text(form: &CopyForm, start: usize, body: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'\\' | 8..=13) || *byte == form.delimiter;
    if !body[start..].iter().any(is_special) {
        return;
    }
    for byte in body.split_off(start) {
        let letter = match byte {
            8 => b'b',
            9 => b't',
            10 => b'n',
            11 => b'v',
            12 => b'f',
            13 => b'r',
            b'\\' => b'\\',
            other if other == form.delimiter => other,
            other => {
                body.push(other);
                continue;
            }
        };
        body.extend_from_slice(&[b'\\', letter]);
    }
}
