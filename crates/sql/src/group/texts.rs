//! Strings as keys: which are many.
//!
//! The primitives copy the bytes of every string key that is longer than a word, DataFusion's operator
//! keeps views of where they are. Few strings cost neither anything; many are for DataFusion's.

use std::sync::Arc;

use atoll_store::table::is_text;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::ScanExec;

/// Whether one of the keys is a column of many strings. A column is found by its name in what the plan
/// reads, for statistics of strings do not pass joins: a namesake can mislead, which costs time, never a
/// wrong result. Computed strings count as few.
pub(super) fn has_many<'a>(
    mut keys: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
    input: &Arc<dyn ExecutionPlan>,
) -> bool {
    keys.any(|key| {
        let name = key.downcast_ref::<Column>().map(Column::name);
        name.is_some_and(|name| is_many(name, input))
    })
}

fn is_many(name: &str, plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.has_many_strings(name);
    }
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().any(|child| is_many(name, child));
    }
    // Nothing is known of strings in files.
    let schema = plan.schema();
    schema.field_with_name(name).is_ok_and(|field| is_text(field.data_type()))
}
