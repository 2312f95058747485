//! Batches as messages, one per row, written straight into the output, column by column within a row.

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::{ColumnOrigin, ColumnOrigins};

use super::binary::{binary_column, write_sized};
use super::format::Format;
use super::plain;
use super::text::text_column;
use super::types::PgType;
use crate::wire::{Output, text};

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
    output.message(b'T', |body| {
        body.extend_from_slice(&(schema.fields().len() as u16).to_be_bytes());
        for (at, field) in schema.fields().iter().enumerate() {
            let of = PgType::of_field(field);
            text(body, field.name());
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
pub(crate) fn write_rows(
    batch: &RecordBatch,
    schema: &Schema,
    formats: &[i16],
    output: &mut Output,
) -> Result<(), ArrowError> {
    let arrays: Vec<ArrayRef> = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
    let columns =
        arrays.iter().enumerate().map(|(at, array)| match Format::for_column(formats, at) {
            Format::Text => text_column(schema.field(at), array),
            Format::Binary => binary_column(schema.field(at), array),
        });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let count = (columns.len() as u16).to_be_bytes();
    for row in 0..batch.num_rows() {
        output.message(b'D', |body| {
            body.extend_from_slice(&count);
            for column in &columns {
                write_sized(column, row, body);
            }
        });
    }
    Ok(())
}
