//! Columns of the outer query whose table has the same name as a column of the subquery.
//!
//! ```text
//! SELECT * FROM region WHERE EXISTS (SELECT 1 FROM nation WHERE nation.region = region.id)
//! ```
//!
//! DataFusion 55.2 takes `region.id` for a field of the column `region`. If that has no fields, the planner returns
//! an outer column of unknown type ([`UNKNOWN`]). This rule looks the name up in the outer queries.

use std::sync::Arc;

use atoll_functions::UNKNOWN;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, field_not_found};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery};
use datafusion::optimizer::AnalyzerRule;

/// Resolves such columns; see the module.
#[derive(Debug, Default)]
pub struct OuterNames;

impl AnalyzerRule for OuterNames {
    fn name(&self) -> &str {
        "outer_names"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut has_any = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                has_any = has_any || expr.exists(|expr| Ok(is_unknown(expr)))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(if has_any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if has_any { known(plan, &[]) } else { Ok(plan) }
    }
}

fn is_unknown(expr: &Expr) -> bool {
    matches!(expr, Expr::OuterReferenceColumn(field, _) if field.name() == UNKNOWN)
}

/// Resolves outer columns in a plan; the last of the outer queries is the innermost.
fn known(plan: LogicalPlan, around: &[Arc<DFSchema>]) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Join(join) if is_lateral(&join.right) => {
            let left = known(Arc::unwrap_or_clone(join.left), around)?;
            let beside = [around, &[Arc::clone(left.schema())]].concat();
            let right = known(Arc::unwrap_or_clone(join.right), &beside)?;
            LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right), ..join })
        }
        plan => plan.map_children(|child| known(child, around).map(Transformed::yes)).data()?,
    };
    let mut own = DFSchema::empty();
    plan.inputs().into_iter().for_each(|input| own.merge(input.schema()));
    let own = Arc::new(own);
    let within = [around, &[Arc::clone(&own)]].concat();
    let plan = plan.map_expressions(|expr| {
        expr.transform_up(|expr| {
            if is_unknown(&expr) {
                return found(expr, around, &own).map(Transformed::yes);
            }
            with_subquery(expr, |plan| known(plan, &within))
        })
    });
    plan.data()?.recompute_schema()
}

/// Whether a side of a join is a LATERAL subquery.
pub(super) fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// Returns the column in the innermost outer query that has it.
fn found(expr: Expr, around: &[Arc<DFSchema>], own: &DFSchema) -> Result<Expr> {
    let Expr::OuterReferenceColumn(_, column) = expr else { return Ok(expr) };
    for schema in around.iter().rev() {
        if schema.has_column(&column) {
            let (table, field) = schema.qualified_field_from_column(&column)?;
            let column = Column::new(table.cloned(), field.name());
            return Ok(Expr::OuterReferenceColumn(Arc::clone(field), column));
        }
    }
    Err(field_not_found(column.relation, &column.name, own))
}

/// Replaces the plan of a subquery expression.
pub(super) fn with_subquery(
    expr: Expr,
    rewrite: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Transformed<Expr>> {
    let of = |subquery: Subquery| {
        let plan = rewrite(Arc::unwrap_or_clone(subquery.subquery))?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok::<_, datafusion::error::DataFusionError>(Subquery {
            subquery: Arc::new(plan),
            outer_ref_columns,
            spans: subquery.spans,
        })
    };
    Ok(Transformed::yes(match expr {
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(of(subquery)?),
        Expr::Exists(Exists { subquery, negated }) => {
            Expr::Exists(Exists { subquery: of(subquery)?, negated })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Expr::InSubquery(InSubquery { expr, subquery: of(subquery)?, negated })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let subquery = of(subquery)?;
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
        }
        other => return Ok(Transformed::no(other)),
    }))
}
