//! `x >= ALL (SELECT …)` and `x = ANY (SELECT …)` over a table that the query around reads too.
//!
//! DataFusion 55.2 writes them as EXISTS with the comparison as its condition. When that becomes a join,
//! columns are told apart by table and name alone, and a column of the query around that has both in
//! common with one of the sub-query is taken for it: it is compared with itself. Here the sub-query's
//! column gets a name of its own.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::SetComparison;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Subquery};
use datafusion::optimizer::AnalyzerRule;

/// The name of the sub-query's column.
const NAME: &str = "__quantified";

/// Names the columns of the sub-queries of ANY and ALL; see the module.
#[derive(Debug, Default)]
pub(crate) struct NamedQuantified;

impl AnalyzerRule for NamedQuantified {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let is_projection = matches!(plan, LogicalPlan::Projection(_));
            plan.map_expressions(|expr| {
                let named = expr.transform_up(named)?;
                match named.transformed && is_projection {
                    // What it is rewritten to has another name, and would change the query's.
                    true => named.map_data(|expr| {
                        let (relation, name) = expr.qualified_name();
                        Ok(expr.unalias().alias_qualified(relation, name))
                    }),
                    false => Ok(named),
                }
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "named_quantified"
    }
}

fn named(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::SetComparison(comparison) = expr else { return Ok(Transformed::no(expr)) };
    let SetComparison { expr, subquery, op, quantifier } = comparison;
    let columns = subquery.subquery.schema().columns().into_iter();
    let columns = columns.map(|column| Expr::Column(column).alias(NAME)).collect();
    let projection = Projection::try_new(columns, Arc::clone(&subquery.subquery))?;
    let plan = Arc::new(LogicalPlan::Projection(projection));
    let subquery = Subquery { subquery: plan, ..subquery };
    Ok(Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })))
}
