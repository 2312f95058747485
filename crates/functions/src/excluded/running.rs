//! An aggregate that follows the frames of a partition: it adds rows that enter, retracts rows that leave, and
//! retracts the rows that EXCLUDE removes while it evaluates a frame.

use std::ops::Range;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, AggregateUDF};

/// Aggregates whose accumulators can retract any row, in any order.
const GIVE_BACK: [&str; 3] = ["avg", "count", "sum"];

/// Whether an aggregate over these arguments can follow the frames: retracting floats would round differently from
/// summing the remaining rows only.
pub(super) fn goes_along<'a>(
    function: &AggregateUDF,
    is_distinct: bool,
    arguments: impl IntoIterator<Item = &'a DataType>,
) -> bool {
    let mut arguments = arguments.into_iter();
    !is_distinct
        && GIVE_BACK.contains(&function.name())
        && arguments.all(|of| !of.is_floating() || function.name() == "count")
}

/// The rows of a partition: the arguments, and whether they pass the FILTER.
pub(super) struct PartitionRows<'a> {
    pub(super) arguments: &'a [ArrayRef],
    pub(super) filter: Option<&'a ArrayRef>,
}

impl PartitionRows<'_> {
    /// Returns the arguments of the rows in a range that pass the filter.
    fn filtered_arguments(&self, range: &Range<usize>) -> Result<Vec<ArrayRef>> {
        let (from, length) = (range.start, range.end.saturating_sub(range.start));
        let passes = self.filter.map(|passes| passes.slice(from, length));
        let columns = self.arguments.iter().map(|column| {
            let column = column.slice(from, length);
            Ok(match &passes {
                Some(passes) => filter(&column, passes.as_boolean())?,
                None => column,
            })
        });
        columns.collect()
    }
}

/// The aggregate over the rows of a frame.
#[derive(Debug)]
pub(super) struct Running {
    accumulator: Box<dyn Accumulator>,
    frame: Range<usize>,
}

impl Running {
    /// Starts without rows.
    pub(super) fn new(accumulator: Box<dyn Accumulator>) -> Self {
        Self { accumulator, frame: 0..0 }
    }

    /// Whether it can advance to a frame: neither end moves backwards.
    pub(super) fn reaches(&self, frame: &Range<usize>) -> bool {
        frame.start >= self.frame.start && frame.end >= self.frame.end
    }

    /// Advances to a frame.
    pub(super) fn move_to(&mut self, rows: &PartitionRows<'_>, frame: &Range<usize>) -> Result<()> {
        let before = self.frame.clone();
        self.take_out(rows, &(before.start..frame.start.min(before.end)))?;
        self.add(rows, &(before.end.max(frame.start)..frame.end))?;
        self.frame = frame.clone();
        Ok(())
    }

    /// Evaluates the frame without these rows.
    pub(super) fn without(
        &mut self,
        rows: &PartitionRows<'_>,
        left_out: &[Range<usize>],
    ) -> Result<ScalarValue> {
        for range in left_out {
            self.take_out(rows, range)?;
        }
        let result = self.accumulator.evaluate();
        for range in left_out {
            self.add(rows, range)?;
        }
        result
    }

    fn add(&mut self, rows: &PartitionRows<'_>, range: &Range<usize>) -> Result<()> {
        if range.is_empty() {
            Ok(())
        } else {
            self.accumulator.update_batch(&rows.filtered_arguments(range)?)
        }
    }

    fn take_out(&mut self, rows: &PartitionRows<'_>, range: &Range<usize>) -> Result<()> {
        if range.is_empty() {
            Ok(())
        } else {
            self.accumulator.retract_batch(&rows.filtered_arguments(range)?)
        }
    }
}
