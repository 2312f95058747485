//! INTERSECT ALL and EXCEPT ALL by the number of copies.
//!
//! For a row that occurs m times on the left and n times on the right, INTERSECT ALL returns min(m, n) copies
//! and EXCEPT ALL max(m − n, 0). DataFusion 55.2 plans a semi or anti join that returns all m copies or none
//! (`LogicalPlanBuilder::intersect_or_except`; apache/datafusion#12955, apache/datafusion#12956). Here the copies on
//! each side are numbered, and the number is an additional join key. After analysis, the only semi and
//! anti joins in which NULL equals NULL are those of set operations, and without ALL their left side is DISTINCT.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, ident,
};
use datafusion::optimizer::AnalyzerRule;

/// The number of a copy among equal rows of its side.
const LEFT_COPY: &str = "__left_copy";
const RIGHT_COPY: &str = "__right_copy";

/// Counts copies; see the module.
#[derive(Debug, Default)]
pub struct CountedCopies;

impl AnalyzerRule for CountedCopies {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if keeps_copies(&join) => {
                with_numbers(join).map(Transformed::yes)
            }
            plan => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "counted_copies"
    }
}

fn keeps_copies(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(*join.left, LogicalPlan::Distinct(_))
        && join.left.schema().field_with_unqualified_name(LEFT_COPY).is_err()
}

fn with_numbers(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left_keys, right_keys) = join.on.iter().cloned().unzip();
    let left = numbered(join.left, left_keys, LEFT_COPY)?;
    let right = numbered(join.right, right_keys, RIGHT_COPY)?;
    let mut on = join.on;
    on.push((ident(LEFT_COPY), ident(RIGHT_COPY)));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join))
        .project(columns.into_iter().map(Expr::from))?
        .build()
}

/// The input with one more column: the number of each row among those with equal keys.
fn numbered(input: Arc<LogicalPlan>, keys: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let number = row_number().partition_by(keys).build()?;
    let numbers = Expr::Column(Column::from_name(number.schema_name().to_string()));
    let columns = input.schema().columns().into_iter().map(Expr::from);
    let columns = columns.chain([numbers.alias(name)]).collect::<Vec<_>>();
    LogicalPlanBuilder::from(input).window(vec![number])?.project(columns)?.build()
}
