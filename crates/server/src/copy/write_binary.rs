//! Writes rows in PostgreSQL's binary format, one message each.

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::error::ArrowError;

use super::read_binary::SIGNATURE;
use crate::value::{Format, binary_column, plain, types_of, write_cells, write_message};
use crate::wire::{ErrorFields, Output};

/// Writes rows.
#[derive(Debug, Default)]
pub(crate) struct BinaryCopyWriter {
    has_begun: bool,
}

impl BinaryCopyWriter {
    /// The rows of a batch.
    pub(super) fn rows(
        &mut self,
        batch: &RecordBatch,
        output: &mut Output,
    ) -> Result<(), ErrorFields> {
        let arrays: Vec<ArrayRef> = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
        let fields = batch.schema_ref().fields();
        let columns = fields.iter().zip(&arrays).map(|(field, array)| binary_column(field, array));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        let types = types_of(batch.schema_ref(), |_| Format::Binary);
        let count = (columns.len() as i16).to_be_bytes();
        for row in 0..batch.num_rows() {
            write_message(output, b'd', |body, encoding| {
                self.begin(body);
                body.extend_from_slice(&count);
                write_cells(&columns, &types, row, encoding, body)
            })?;
        }
        Ok(())
    }

    /// The trailer.
    pub(super) fn end(&mut self, output: &mut Output) {
        output.message(b'd', |body| {
            self.begin(body);
            body.extend_from_slice(&(-1_i16).to_be_bytes());
        });
    }

    /// The header, which drivers expect in the message of the first row: no flags and no extension.
    fn begin(&mut self, body: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            body.extend_from_slice(SIGNATURE);
            body.extend_from_slice(&[0; 8]);
        }
    }
}
