//! Aggregate states over the suffixes of a large frame, so that rows can leave without being retracted.
//!
//! ```text
//! rows of the frame      a  b  c  d │ e  f
//! states                 abcd bcd cd d │ ef
//! ```
//!
//! When the states are built, there is one for each row: over the row and its successors. Later rows are added to one
//! more state. The frame is the first suffix plus the later rows; when its first row leaves, so does its state.

use std::mem::size_of;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::anew::Call;

/// The states of a frame.
#[derive(Debug)]
pub(super) struct Suffixes {
    /// Over each row and its successors; the first row's state is last.
    states: Vec<Vec<ScalarValue>>,
    /// Over the later rows.
    later: Box<dyn Accumulator>,
}

impl Suffixes {
    /// Builds the states for these rows.
    pub(super) fn try_new(call: &Call, rows: &[ArrayRef]) -> Result<Self> {
        let count = rows.first().map_or(0, |column| column.len());
        let mut suffix = call.accumulator()?;
        let mut states = Vec::with_capacity(count);
        for row in (0..count).rev() {
            let row: Vec<ArrayRef> = rows.iter().map(|column| column.slice(row, 1)).collect();
            suffix.update_batch(&row)?;
            states.push(suffix.state()?);
        }
        Ok(Self { states, later: call.accumulator()? })
    }

    /// Adds rows at the end.
    pub(super) fn add(&mut self, rows: &[ArrayRef]) -> Result<()> {
        self.later.update_batch(rows)
    }

    /// Drops this many rows from the start; None if no states are left to drop rows one by one.
    pub(super) fn without(mut self, gone: usize) -> Option<Self> {
        let left = self.states.len().checked_sub(gone).filter(|left| *left > 0)?;
        self.states.truncate(left);
        Some(self)
    }

    /// Evaluates the aggregate over the frame.
    pub(super) fn evaluate(&mut self, call: &Call) -> Result<ScalarValue> {
        let mut whole = call.accumulator()?;
        if let Some(state) = self.states.last() {
            whole.merge_batch(&arrays(state)?)?;
        }
        whole.merge_batch(&arrays(&self.later.state()?)?)?;
        whole.evaluate()
    }

    pub(super) fn size(&self) -> usize {
        let one = self.states.first().map_or(0, |state| state.len() * size_of::<ScalarValue>());
        self.states.capacity() * size_of::<Vec<ScalarValue>>()
            + self.states.len() * one
            + self.later.size()
    }
}

fn arrays(state: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    state.iter().map(ScalarValue::to_array).collect()
}
