//! The states of an aggregate over the parts of a large frame, from which rows leave without being taken out.
//!
//! ```text
//! rows of the frame      a  b  c  d │ e  f
//! states                 abcd bcd cd d │ ef
//! ```
//!
//! When the states are made, there is one for each row: of it and those behind it. Rows that come later are added to one
//! more. The frame is the first of the former and the latter; when its first row leaves, so does its state.

use std::mem::size_of;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::anew::Call;

/// The states of a frame.
#[derive(Debug)]
pub(super) struct Suffixes {
    /// Of each row and those behind it; that of the first row is the last.
    states: Vec<Vec<ScalarValue>>,
    /// Of the rows that came later.
    later: Box<dyn Accumulator>,
}

impl Suffixes {
    /// The states of these rows.
    pub(super) fn of(call: &Call, rows: &[ArrayRef]) -> Result<Self> {
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

    /// Without so many rows at the begin; none where no state is left, of which rows could leave one by one.
    pub(super) fn without(mut self, gone: usize) -> Option<Self> {
        let left = self.states.len().checked_sub(gone).filter(|left| *left > 0)?;
        self.states.truncate(left);
        Some(self)
    }

    /// The aggregate over the frame.
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
