//! IN lists in a form that DataFusion combines correctly.
//!
//! ```text
//! x NOT IN (1, NULL)             x NOT IN (1) AND NULL
//! x IN (1, NULL)                 x IN (1) OR NULL
//! x IN (1, 2) AND x IN (3, 4)    x IN (1, 2) AND same(x) IN (3, 4), where x may be NULL
//! ```
//!
//! DataFusion 55.2 merges two lists over one column that AND or OR connect (`simplify_expressions`,
//! `inlist_intersection` and `inlist_except`, apache/datafusion#24246) without regard to NULL: the last one becomes
//! false if x is NULL, and `x IN (0) AND x NOT IN (1, NULL)` true if x is 0.

use std::sync::{Arc, LazyLock};

use atoll_functions::UnnamedFunction;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF, binary_expr, lit,
};
use datafusion::optimizer::OptimizerConfig;

use atoll_sql_common::logical::map_named;

/// Returns its argument; DataFusion takes the call for another column.
static SAME: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| UnnamedFunction::make("same", Arc::clone, Ok));

/// Rewrites lists; see the module.
pub(super) fn in_lists(
    plan: LogicalPlan,
    _: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut has_list = false;
    plan.apply_expressions(|expr| {
        has_list = has_list || expr.exists(|expr| Ok(matches!(expr, Expr::InList(_))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_list {
        return Ok(Transformed::no(plan));
    }
    let schema = merge_schema(&plan.inputs());
    map_named(plan, |expr| {
        expr.transform_up(|expr| {
            Ok(match expr {
                Expr::InList(list) => without_null(list),
                Expr::BinaryExpr(pair) => kept_apart(pair, &schema),
                other => Transformed::no(other),
            })
        })
    })
}

/// Returns a list without its NULLs, and the result that these NULLs give for a value that is not in the list.
fn without_null(mut list: InList) -> Transformed<Expr> {
    let length = list.list.len();
    list.list.retain(|item| !is_null(item));
    if list.list.len() == length {
        return Transformed::no(Expr::InList(list));
    }
    let unknown = lit(ScalarValue::Boolean(None));
    Transformed::yes(match (list.list.is_empty(), list.negated) {
        (true, _) => unknown,
        (false, true) => binary_expr(Expr::InList(list), Operator::And, unknown),
        (false, false) => binary_expr(Expr::InList(list), Operator::Or, unknown),
    })
}

/// Makes two lists over a nullable column, connected by AND or OR, look like lists over two columns.
fn kept_apart(mut pair: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let is_combined = matches!(pair.op, Operator::And | Operator::Or);
    if let (true, Expr::InList(left), Expr::InList(right)) =
        (is_combined, pair.left.as_ref(), pair.right.as_mut())
        && let Expr::Column(column) = left.expr.as_ref()
        && left.expr == right.expr
        && left.list != right.list
        && schema.nullable(column).unwrap_or(true)
    {
        *right.expr = UnnamedFunction::call(&SAME, std::mem::take(right.expr.as_mut()));
        return Transformed::yes(Expr::BinaryExpr(pair));
    }
    Transformed::no(Expr::BinaryExpr(pair))
}

/// Whether an expression is NULL, possibly cast.
fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::TryCast(cast) => is_null(&cast.expr),
        _ => false,
    }
}
