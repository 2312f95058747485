//! `ORDER BY … LIMIT` of many rows: sorted as a whole, which spills, instead of kept in memory.
//!
//! DataFusion keeps the rows of a limit, those of its OFFSET included, in a heap that cannot spill. A
//! few rows are found faster so; where a partition's heap might take a good part of the memory limit,
//! an external sort takes its place, cut off after as many rows.
//!
//! So it does for keys that are lists, structs or maps: the heaps of all partitions drop rows beyond the last one by
//! `<`, to which NULL inside of a value is the smallest element, while it sorts as the largest.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use atoll_sql_common::operator::OperatorRule;

/// All heaps of a query may take this share of the limit together.
const LIMIT_SHARE: usize = 4;

/// Bytes of a row in the heap besides its values: its key once more, and its position.
const ROW_BYTES: usize = 96;

/// The assumed size of a value without a fixed width.
const TEXT_BYTES: usize = 48;

/// Replaces heaps by sorts; see the module.
#[derive(Debug)]
pub(crate) struct LargeLimit {
    limit: usize,
}

impl LargeLimit {
    /// Creates the rule for a memory limit in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit }
    }

    fn fits(&self, sort: &SortExec, rows: usize) -> bool {
        let partitions = sort.properties().partitioning.partition_count();
        let bytes = rows.saturating_mul(row_bytes(&sort.schema())).saturating_mul(partitions);
        bytes <= self.limit / LIMIT_SHARE
    }
}

impl OperatorRule for LargeLimit {
    const NAME: &'static str = "LargeLimit";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(None) };
        let is_sorted = |rows: &usize| has_nested_key(sort) || !self.fits(sort, *rows);
        let Some(rows) = sort.fetch().filter(is_sorted) else { return Ok(None) };
        let sorted = Arc::new(sort.with_fetch(None));
        Ok(Some(Arc::new(LocalLimitExec::new(sorted, rows))))
    }
}

fn has_nested_key(sort: &SortExec) -> bool {
    let schema = sort.input().schema();
    let is_nested = |key: &PhysicalSortExpr| {
        key.expr.data_type(&schema).is_ok_and(|data_type| data_type.is_nested())
    };
    sort.expr().iter().any(is_nested)
}

fn row_bytes(schema: &SchemaRef) -> usize {
    let width = |data_type: &DataType| data_type.primitive_width().unwrap_or(TEXT_BYTES);
    ROW_BYTES + schema.fields().iter().map(|field| width(field.data_type())).sum::<usize>()
}
