//! Parameter values from a client's batches, one row per execution of the statement.

use std::sync::Arc;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::datafusion::common::ScalarValue;
use futures::TryStreamExt;

use super::messages::whole;
use super::status::unreadable;
use crate::wire::ErrorFields;

/// Bytes of all values of a statement, at most.
const BYTES_MAX: usize = 256 << 20;

/// Rows of values, at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters(Arc<[RecordBatch]>);

impl Parameters {
    /// Reads a client's batches; None if they have no columns.
    pub(super) async fn read(messages: PeekableFlightDataStream) -> Result<Self, ErrorFields> {
        let mut stream = batches(messages);
        let (mut all, mut bytes) = (Vec::new(), 0_usize);
        while let Some(batch) = stream.try_next().await.map_err(|error| unreadable(&error))? {
            bytes = bytes.saturating_add(batch.get_array_memory_size());
            if bytes > BYTES_MAX {
                let message = format!("the parameter values take more than {BYTES_MAX} bytes");
                let hint = "bind fewer rows at a time, or insert them as a bulk ingestion";
                return Err(ErrorFields::error("53200", message).hint(hint));
            }
            if batch.num_columns() > 0 {
                all.push(batch);
            }
        }
        Ok(Self(all.into()))
    }

    /// Whether there are no values at all.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often the statement runs: once if it has no values.
    pub(super) fn runs(&self) -> usize {
        match self.is_empty() {
            true => 1,
            false => self.0.iter().map(RecordBatch::num_rows).sum(),
        }
    }

    /// The client's types of the parameters; None for those that are always NULL.
    pub(super) fn types(&self) -> Vec<Option<DataType>> {
        let Some(batch) = self.0.first() else { return Vec::new() };
        let known = |data_type: &DataType| match data_type {
            DataType::Null => None,
            DataType::Dictionary(_, values) => Some(values.as_ref().clone()),
            other => Some(other.clone()),
        };
        batch.schema_ref().fields().iter().map(|field| known(field.data_type())).collect()
    }

    /// The values, row by row.
    pub(super) fn rows(&self) -> ParameterRows {
        ParameterRows { all: self.clone(), batch: 0, row: 0 }
    }
}

/// The remaining rows of values.
pub(super) struct ParameterRows {
    all: Parameters,
    batch: usize,
    row: usize,
}

impl Iterator for ParameterRows {
    type Item = Result<Vec<ScalarValue>, ErrorFields>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.all.is_empty() {
            return (std::mem::replace(&mut self.row, 1) == 0).then(|| Ok(Vec::new()));
        }
        loop {
            let batch = self.all.0.get(self.batch)?;
            if self.row < batch.num_rows() {
                let row = self.row;
                self.row += 1;
                return Some(values(batch, row));
            }
            (self.batch, self.row) = (self.batch + 1, 0);
        }
    }
}

fn values(batch: &RecordBatch, row: usize) -> Result<Vec<ScalarValue>, ErrorFields> {
    let value = |column: &ArrayRef| match ScalarValue::try_from_array(column, row) {
        Ok(ScalarValue::Dictionary(_, value)) => Ok(*value),
        Ok(value) => Ok(value),
        Err(error) => Err(ErrorFields::error("22P02", error.strip_backtrace())),
    };
    batch.columns().iter().map(value).collect()
}

/// The batches in a client's messages. A message that only names the command has none.
fn batches(messages: PeekableFlightDataStream) -> FlightRecordBatchStream {
    FlightRecordBatchStream::new_from_flight_data(whole(messages).map_err(FlightError::from))
}

#[cfg(test)]
mod tests {
    use atoll_sql::arrow::array::{Int64Array, NullArray};

    use super::*;

    fn batch(numbers: Vec<i64>) -> RecordBatch {
        let nulls: ArrayRef = Arc::new(NullArray::new(numbers.len()));
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        RecordBatch::try_from_iter([("1", numbers), ("2", nulls)]).expect("two columns")
    }

    #[test]
    fn a_statement_runs_once_for_each_row() {
        let none = Parameters::default();
        assert_eq!((none.runs(), none.rows().count()), (1, 1));
        let some = Parameters([batch(vec![1, 2]), batch(vec![]), batch(vec![3])].into());
        assert_eq!(some.runs(), 3);
        assert_eq!(some.types(), [Some(DataType::Int64), None]);
        let rows: Vec<_> = some.rows().map(|row| row.expect("values")).collect();
        assert_eq!(rows[2], [ScalarValue::Int64(Some(3)), ScalarValue::Null]);
        let empty = Parameters([batch(vec![])].into());
        assert_eq!((empty.runs(), empty.rows().count()), (0, 0));
    }
}
