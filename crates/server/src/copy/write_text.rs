//! Writes rows as PostgreSQL's text and CSV, one message each.

use atoll_sql::CsvForm;
use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::arrow::error::ArrowError;

use super::{CopyForm, CopyHeader};
use crate::value::{TextCells, plain, text_column, write_message};
use crate::wire::{ErrorFields, Output};

/// The header line, if the format has one.
pub(super) fn write_header(
    schema: &Schema,
    form: &CopyForm,
    output: &mut Output,
) -> Result<(), ErrorFields> {
    if form.header == CopyHeader::None {
        return Ok(());
    }
    let values = form.values();
    write_line(output, |body| {
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                body.push(form.delimiter);
            }
            let start = body.len();
            body.extend_from_slice(field.name().as_bytes());
            escape(form, &values, start, false, body);
        }
    })
}

/// The rows of a batch.
pub(super) fn write_rows(
    batch: &RecordBatch,
    form: &CopyForm,
    output: &mut Output,
) -> Result<(), ErrorFields> {
    let arrays: Vec<ArrayRef> = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
    let columns = batch.schema_ref().fields().iter().zip(&arrays);
    let columns = columns.map(|(field, array)| text_column(field, array, output.style));
    let columns = columns.collect::<Result<Vec<TextCells<'_>>, ArrowError>>()?;
    let (values, quoted) = (form.values(), form.quoted.of_schema(batch.schema_ref()));
    for row in 0..batch.num_rows() {
        write_line(output, |body| {
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
                escape(form, &values, start, quoted[at], body);
            }
        })?;
    }
    Ok(())
}

/// A message with a line in the client's encoding.
fn write_line(output: &mut Output, line: impl FnOnce(&mut Vec<u8>)) -> Result<(), ErrorFields> {
    Ok(write_message(output, b'd', |body, encoding| {
        let start = body.len();
        line(body);
        body.push(b'\n');
        if !encoding.is_utf8()
            && let Ok(text) = String::from_utf8(body[start..].to_vec())
        {
            body.truncate(start);
            body.extend_from_slice(&encoding.encoded(&text)?);
        }
        Ok(())
    })?)
}

/// Escapes or quotes the value after `start`.
fn escape(form: &CopyForm, values: &CsvForm, start: usize, quotes: bool, body: &mut Vec<u8>) {
    match form.is_csv {
        true => values.quote(start, quotes, body),
        false => values.escape(start, body),
    }
}
