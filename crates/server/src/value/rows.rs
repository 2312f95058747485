//! Batches as messages, one per row, written straight into the output, column by column within a row.

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::{ColumnOrigin, ColumnOrigins};

use super::binary::{binary_column, write_sized};
use super::format::Format;
use super::plain;
use super::recoded::to_client;
use super::text::{TextCells, text_column};
use super::types::PgType;
use crate::wire::{ErrorFields, Output};
use atoll_sql::{EncodingError, TextEncoding};

/// The columns of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowColumns<'r> {
    pub(crate) schema: &'r Schema,
    /// The columns' tables.
    pub(crate) origins: Option<&'r ColumnOrigins>,
}

impl RowColumns<'_> {
    fn origin(&self, at: usize) -> Option<ColumnOrigin> {
        self.origins?.get(at).copied().flatten()
    }
}

/// Describes the columns of a result.
pub(crate) fn row_description(columns: RowColumns<'_>, formats: &[i16], output: &mut Output) {
    let schema = columns.schema;
    let encoding = output.encoding;
    output.message(b'T', |body| {
        body.extend_from_slice(&(schema.fields().len() as u16).to_be_bytes());
        for (at, field) in schema.fields().iter().enumerate() {
            let of = PgType::of_field(field);
            encoding.write(body, field.name());
            let origin = columns.origin(at);
            body.extend_from_slice(&origin.map_or(0, |origin| origin.table).to_be_bytes());
            body.extend_from_slice(&origin.map_or(0, |origin| origin.column).to_be_bytes());
            body.extend_from_slice(&of.oid.to_be_bytes());
            body.extend_from_slice(&of.length.to_be_bytes());
            body.extend_from_slice(&of.modifier.to_be_bytes());
            body.extend_from_slice(&Format::for_column(formats, at).code().to_be_bytes());
        }
    });
}

/// Writes the rows of a batch whose columns were described by `schema`.
///
/// # Errors
/// If a type has no form, or a character no equivalent in the client's encoding; the rows before it are written.
pub(crate) fn write_rows(
    batch: &RecordBatch,
    schema: &Schema,
    formats: &[i16],
    output: &mut Output,
) -> Result<(), ErrorFields> {
    let arrays: Vec<ArrayRef> = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
    let columns =
        arrays.iter().enumerate().map(|(at, array)| match Format::for_column(formats, at) {
            Format::Text => text_column(schema.field(at), array, output.style),
            Format::Binary => binary_column(schema.field(at), array),
        });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let count = (columns.len() as u16).to_be_bytes();
    let types = types_of(schema, |at| Format::for_column(formats, at));
    for row in 0..batch.num_rows() {
        write_message(output, b'D', |body, encoding| {
            body.extend_from_slice(&count);
            write_cells(&columns, &types, row, encoding, body)
        })?;
    }
    Ok(())
}

/// The type and format of each column.
pub(crate) fn types_of(schema: &Schema, format: impl Fn(usize) -> Format) -> Vec<(u32, Format)> {
    let fields = schema.fields().iter().enumerate();
    fields.map(|(at, field)| (PgType::of_field(field).oid, format(at))).collect()
}

/// Writes a message, or none if that fails.
pub(crate) fn write_message(
    output: &mut Output,
    kind: u8,
    body: impl FnOnce(&mut Vec<u8>, TextEncoding) -> Result<(), EncodingError>,
) -> Result<(), EncodingError> {
    let (encoding, mark) = (output.encoding, output.mark());
    let mut written = Ok(());
    output.message(kind, |bytes| written = body(bytes, encoding));
    if written.is_err() {
        output.back_to(mark);
    }
    written
}

/// Writes the values of a row after their lengths, in the client's encoding.
pub(crate) fn write_cells(
    columns: &[TextCells<'_>],
    types: &[(u32, Format)],
    row: usize,
    encoding: TextEncoding,
    body: &mut Vec<u8>,
) -> Result<(), EncodingError> {
    for (column, (oid, format)) in columns.iter().zip(types) {
        let start = body.len();
        write_sized(column, row, body);
        if !encoding.is_utf8() {
            to_client(body, start, *oid, *format, encoding)?;
        }
    }
    Ok(())
}
