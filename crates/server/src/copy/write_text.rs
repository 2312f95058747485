//! Writes rows as PostgreSQL's text and CSV, one message each.

use atoll_sql::CsvForm;
use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::arrow::error::ArrowError;

use super::{CopyForm, CopyHeader};
use crate::value::{TextCells, plain, text_column};
use crate::wire::Output;

/// The header line, if the format has one.
pub(super) fn write_header(schema: &Schema, form: &CopyForm, output: &mut Output) {
    if form.header == CopyHeader::None {
        return;
    }
    let values = form.values();
    output.message(b'd', |body| {
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                body.push(form.delimiter);
            }
            let start = body.len();
            body.extend_from_slice(field.name().as_bytes());
            escape(form, &values, start, false, body);
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
    let columns = batch.schema_ref().fields().iter().zip(&arrays);
    let columns = columns.map(|(field, array)| text_column(field, array));
    let columns = columns.collect::<Result<Vec<TextCells<'_>>, _>>()?;
    let (values, quoted) = (form.values(), form.quoted.of_schema(batch.schema_ref()));
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
                escape(form, &values, start, quoted[at], body);
            }
            body.push(b'\n');
        });
    }
    Ok(())
}

/// Escapes or quotes the value after `start`.
fn escape(form: &CopyForm, values: &CsvForm, start: usize, quotes: bool, body: &mut Vec<u8>) {
    match form.is_csv {
        true => values.quote(start, quotes, body),
        false => values.escape(start, body),
    }
}
