//! ORDER BY … LIMIT reads the first rows of an index.
//!
//! The index finds the rows that come first by the first key of the sort, with all that may be equal to the last of
//! them; the sort stays above.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::scan::ScanExec;
use atoll_sql_common::operator::OperatorRule;

/// Replaces the scan below a sort with a limit; see the module.
#[derive(Debug)]
pub(crate) struct IndexedOrder;

impl OperatorRule for IndexedOrder {
    const NAME: &'static str = "IndexedOrder";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(None) };
        let (Some(fetch), first) = (sort.fetch(), sort.expr().first()) else { return Ok(None) };
        let input = sort.input();
        let projection = input.downcast_ref::<ProjectionExec>();
        let scan = projection.map_or(input, |projection| projection.input());
        let Some(scan) = scan.downcast_ref::<ScanExec>() else { return Ok(None) };
        let key = match projection {
            Some(projection) => {
                column(&first.expr).and_then(|at| column(&projection.expr().get(at)?.expr))
            }
            None => column(&first.expr),
        };
        let Some(key) = key else { return Ok(None) };
        let Some(lookup) = scan.first_rows(key, first.options, fetch)? else { return Ok(None) };
        let mut rows: Arc<dyn ExecutionPlan> = Arc::new(lookup);
        if projection.is_some() {
            rows = replace_children_if_necessary(Arc::clone(input), vec![rows])?;
        }
        replace_children_if_necessary(Arc::clone(plan), vec![rows]).map(Some)
    }
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
