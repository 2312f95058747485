//! Filters that contradict themselves return no rows, and filters without columns stay above aggregates without keys.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{EmptyRelation, Expr, Filter, GroupingSet, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::simplify_expressions::simplify_predicates;
use datafusion::scalar::ScalarValue;

use super::around::Rule;

/// DataFusion's rule that pushes filters down, applied only to satisfiable filters that may be pushed down.
///
/// An aggregate without keys returns one row whatever its input, and so does the empty grouping set. DataFusion
/// 55.2 pushes a filter that references no column below it (`push_down_filter.rs`): `(SELECT …) > 100`, or `'a' = 'b'`
/// over a constant column. Such a filter stays above.
///
/// During pushdown, `s = 16 AND s = 19` becomes `false`, which references no column and so is pushed below an
/// aggregate without keys as well, which still returns its row (DataFusion 55.2,
/// `push_down_filter.rs`). Such a filter and its input become an empty relation instead.
pub(super) fn rewrite(
    sinking: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Filter(filter) if contradicts_itself(filter)? => {
            let schema = Arc::clone(plan.schema());
            let empty = EmptyRelation { produce_one_row: false, schema };
            Ok(Transformed::yes(LogicalPlan::EmptyRelation(empty)))
        }
        LogicalPlan::Filter(filter) if sinks_wrongly(filter) => Ok(Transformed::no(plan)),
        _ => sinking.rewrite(plan, config),
    }
}

/// Whether no row passes this filter and those directly below it, which are pushed down together.
fn contradicts_itself(filter: &Filter) -> Result<bool> {
    let mut predicates = split_conjunction_owned(filter.predicate.clone());
    let mut input = &filter.input;
    while let LogicalPlan::Filter(below) = input.as_ref() {
        predicates.extend(split_conjunction_owned(below.predicate.clone()));
        input = &below.input;
    }
    Ok(simplify_predicates(predicates)?.iter().any(is_never_true))
}

/// Whether a conjunct of a filter references no column, above an aggregate that always returns a row.
fn sinks_wrongly(filter: &Filter) -> bool {
    let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref() else { return false };
    let has_empty_set = |key: &Expr| match key {
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
        Expr::GroupingSet(_) => true,
        _ => false,
    };
    let gives_a_row =
        aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(has_empty_set);
    let parts = split_conjunction(&filter.predicate);
    gives_a_row && parts.into_iter().any(|part| part.column_refs().is_empty())
}

fn is_never_true(predicate: &Expr) -> bool {
    matches!(
        predicate,
        Expr::Literal(ScalarValue::Boolean(Some(false) | None) | ScalarValue::Null, _)
    )
}
