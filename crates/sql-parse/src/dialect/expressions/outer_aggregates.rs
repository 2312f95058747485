//! Aggregates in WHERE, which in a subquery may belong to the outer query.
//!
//! ```text
//! (SELECT max(w) FROM u WHERE w < sum(t.v))      … WHERE w < (SELECT sum(t.v))
//! ```
//!
//! DataFusion refuses them there. The rule `rewrite::OuterAggregates` finds out which query they belong to.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Function, Select, Value};

use crate::dialect::tree;
use crate::syntax::{walk_expressions, walk_own_expressions_mut};
use atoll_sql_common::functions::Functions;

/// Wraps the aggregates in the condition of a SELECT in subqueries.
pub(in crate::dialect) fn rewrite(select: &mut Select, state: &SessionState) {
    if let Some(condition) = &mut select.selection {
        let _: ControlFlow<()> = walk_own_expressions_mut(condition, &mut |expr| {
            if let Expr::Function(function) = expr
                && is_aggregate(function, state)
                && walk_expressions(function, &mut is_column).is_break()
            {
                let aggregate = std::mem::replace(expr, Expr::value(Value::Null));
                *expr = Expr::Subquery(Box::new(tree::query_of(aggregate)));
            }
            ControlFlow::Continue(())
        });
    }
}

/// Whether a call computes an aggregate, over no window.
pub(crate) fn is_aggregate(function: &Function, state: &SessionState) -> bool {
    let [name] = function.name.0.as_slice() else { return false };
    let Some(name) = name.as_ident() else { return false };
    let name = name.value.to_lowercase();
    let functions = Functions::for_session(state);
    function.over.is_none() && functions.aggregate(&name).is_some() && !functions.has_scalar(&name)
}

fn is_column(expr: &Expr) -> ControlFlow<()> {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
