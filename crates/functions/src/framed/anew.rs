//! An aggregate that is recomputed for each frame.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::suffixes::Suffixes;

/// Number of frame rows up to which an aggregate is recomputed from the first row. Larger frames are merged from two
/// parts, if the aggregate's states can be merged.
const ROWS_MAX: usize = 1024;

/// Arguments for creating a call's accumulators.
#[derive(Debug)]
pub(super) struct Call {
    function: AggregateUDF,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Call {
    pub(super) fn new(function: &AggregateUDF, args: &AccumulatorArgs) -> Self {
        Self {
            function: function.clone(),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    pub(super) fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// An aggregate that is recomputed for each frame.
#[derive(Debug)]
pub(super) struct Anew {
    call: Call,
    /// The rows of the frame, in order.
    rows: VecDeque<Vec<ArrayRef>>,
    /// Number of rows.
    count: usize,
    /// Whether its states can be merged in any order.
    is_merged: bool,
    /// The states over suffixes of a large frame.
    suffixes: Option<Suffixes>,
}

fn count(rows: &[ArrayRef]) -> usize {
    rows.first().map_or(0, |column| column.len())
}

impl Anew {
    pub(super) fn new(call: Call) -> Self {
        Self { call, rows: VecDeque::new(), count: 0, is_merged: false, suffixes: None }
    }

    /// Creates one whose states can be merged in any order.
    pub(super) fn merged(call: Call) -> Self {
        Self { is_merged: true, ..Self::new(call) }
    }

    /// Concatenates the rows of the frame.
    fn whole(&mut self) -> Result<Option<&Vec<ArrayRef>>> {
        if self.rows.len() > 1 {
            let columns = 0..self.rows[0].len();
            let whole = columns.map(|at| {
                let parts: Vec<&dyn Array> =
                    self.rows.iter().map(|part| part[at].as_ref()).collect();
                concat(&parts)
            });
            let whole = whole.collect::<std::result::Result<Vec<_>, _>>()?;
            self.rows = VecDeque::from([whole]);
        }
        Ok(self.rows.front())
    }

    fn merge(&mut self) -> Result<ScalarValue> {
        if self.suffixes.is_none() {
            self.whole()?;
            let rows = self.rows.front().map_or(&[][..], Vec::as_slice);
            self.suffixes = Some(Suffixes::try_new(&self.call, rows)?);
        }
        match &mut self.suffixes {
            Some(suffixes) => suffixes.evaluate(&self.call),
            None => self.call.accumulator()?.evaluate(),
        }
    }
}

impl Accumulator for Anew {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if count(values) > 0 {
            self.count += count(values);
            self.rows.push_back(values.to_vec());
            if let Some(suffixes) = &mut self.suffixes {
                suffixes.add(values)?;
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut gone = count(values);
        self.count = self.count.saturating_sub(gone);
        self.suffixes = self.suffixes.take().and_then(|suffixes| suffixes.without(gone));
        while gone > 0 {
            let Some(first) = self.rows.front_mut() else { break };
            let there = count(first);
            if there <= gone {
                gone -= there;
                self.rows.pop_front();
            } else {
                for column in first {
                    *column = column.slice(gone, there - gone);
                }
                gone = 0;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_merged && self.count > ROWS_MAX {
            return self.merge();
        }
        let mut accumulator = self.call.accumulator()?;
        if let Some(whole) = self.whole()? {
            accumulator.update_batch(whole)?;
        }
        accumulator.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.rows.iter().flatten();
        let bytes = columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
        let suffixes = self.suffixes.as_ref().map_or(0, Suffixes::size);
        size_of_val(self) + bytes.sum::<usize>() + suffixes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        datafusion::common::internal_err!("a window frame has no state to exchange")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("window frames are not merged")
    }
}
