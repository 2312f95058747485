//! One side of a join.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::{Part, PrimitiveError};

/// What a join returns for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Its number: rows are counted from 0 through all parts in order.
    #[default]
    Row,
    /// The bits of a column, by position: of a 64-bit type without nulls. Requires keys that fit 64 bits.
    Column(usize),
}

/// One side of a join. Cloning shares the buffers.
#[derive(Clone, Debug)]
pub struct JoinInput {
    /// Its rows, all parts of one schema.
    pub parts: Vec<Part>,
    /// Key columns, by position.
    pub on: Vec<usize>,
    /// What is returned for a row.
    pub payload: Payload,
}

impl JoinInput {
    /// These rows and key columns; the join returns row numbers.
    pub fn new(parts: Vec<Part>, on: impl Into<Vec<usize>>) -> Self {
        Self { parts, on: on.into(), payload: Payload::Row }
    }

    /// The same, with a column as payload.
    pub fn with_payload(self, column: usize) -> Self {
        Self { payload: Payload::Column(column), ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows.num_rows()).sum()
    }

    /// Types of the key columns; None without parts.
    pub(super) fn key_types(&self, side: &str) -> Result<Option<Vec<DataType>>, PrimitiveError> {
        let Some(first) = self.parts.first() else { return Ok(None) };
        let columns = self.columns(side, first)?;
        let types: Vec<DataType> = columns.iter().map(|key| key.data_type().clone()).collect();
        for (number, part) in self.parts.iter().enumerate() {
            let found: Vec<DataType> =
                self.columns(side, part)?.iter().map(|key| key.data_type().clone()).collect();
            if found != types {
                return Err(PrimitiveError::Shape {
                    what: format!("key columns of part {number} of the {side} side"),
                    found: format!("{found:?}"),
                    expected: format!("{types:?}, as in the first part"),
                });
            }
        }
        Ok(Some(types))
    }

    /// Key columns of a part.
    pub(super) fn columns(&self, side: &str, part: &Part) -> Result<Vec<ArrayRef>, PrimitiveError> {
        self.on.iter().map(|at| column(side, part, *at)).collect()
    }
}

/// A column of a part.
pub(super) fn column(side: &str, part: &Part, at: usize) -> Result<ArrayRef, PrimitiveError> {
    let columns = part.rows.columns();
    columns.get(at).cloned().ok_or_else(|| PrimitiveError::Shape {
        what: format!("a column of the {side} side"),
        found: format!("position {at}"),
        expected: format!("less than {}", columns.len()),
    })
}
