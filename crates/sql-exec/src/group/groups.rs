//! Estimates the number of groups on samples of the tables.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::ScanExec;

/// The most groups of keys over the rows of a plan: the product of the distinct values of the keys. An
/// expression has as many values as the columns that it reads. `None` if nothing is known about a key.
///
/// A column is found by name in the scans of the plan, because statistics do not pass all operators: a namesake can
/// mislead, which costs time, never a wrong result.
pub(super) fn expected<'a>(
    mut keys: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<usize> {
    keys.try_fold(1, |groups: usize, key| {
        let columns = collect_columns(key);
        let mut values = columns.iter().map(|column| distinct_values(column.name(), input));
        let of_key = values.try_fold(1, |all: usize, of| Some(all.saturating_mul(of?)))?;
        (!columns.is_empty()).then(|| groups.saturating_mul(of_key))
    })
}

fn distinct_values(name: &str, plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    match plan.downcast_ref::<ScanExec>() {
        Some(scan) => scan.distinct_values(name),
        None => plan.children().into_iter().find_map(|child| distinct_values(name, child)),
    }
}
