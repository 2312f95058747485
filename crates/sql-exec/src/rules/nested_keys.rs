//! Joins by lists, structs and maps make no filters for their probe side.
//!
//! The filter of a hash join has bounds of its keys. DataFusion 55.2 finds the bounds of nested values in
//! one order (`ScalarValue::partial_cmp`, which has none for a list of structs, apache/datafusion#24937, and no
//! place for NULL in a struct) and compares with them in another (`compare_op_for_nested`, NULL first), and for maps it
//! finds none and fails. A join that has a filter already makes no other, and one that nothing below
//! it takes is never filled.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use atoll_sql_common::operator::OperatorRule;

/// Removes the filters of joins by nested keys; see the module.
#[derive(Debug)]
pub(crate) struct NestedKeys;

impl OperatorRule for NestedKeys {
    const NAME: &'static str = "NestedKeys";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        if !has_nested_key(join)? {
            return Ok(None);
        }
        let keys = join.on().iter().map(|(_, right)| Arc::clone(right)).collect();
        let taken_by_none = Arc::new(DynamicFilterPhysicalExpr::new(keys, lit(true)));
        let join = join.builder().build()?.with_dynamic_filter_expr(taken_by_none)?;
        Ok(Some(Arc::new(join)))
    }
}

fn has_nested_key(join: &HashJoinExec) -> Result<bool> {
    let schema = join.right().schema();
    for (_, key) in join.on() {
        if key.data_type(&schema)?.is_nested() {
            return Ok(true);
        }
    }
    Ok(false)
}
