//! VALUES whose rows call functions that wait: DataFusion (55.2) computes rows of VALUES without waiting.
//!
//! ```text
//! VALUES (pg_sleep(1)), (pg_sleep(2))     SELECT pg_sleep(1) AS column1 UNION ALL SELECT pg_sleep(2) AS column1
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier,
};

use crate::dialect::tree;
use crate::syntax::walk_expressions;

/// The functions that wait.
const WAITING: [&str; 5] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_sleep",
];

/// Rewrites a query.
pub(in crate::dialect) fn rewrite(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_ref() else { return };
    let mut all = values.rows.iter().flat_map(|row| &row.content);
    if !all.clone().any(waits) || all.any(is_default) {
        return;
    }
    let rows = values.rows.iter().map(|row| {
        let items = row.content.iter().enumerate().map(|(at, expr)| SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::new(format!("column{}", at + 1)),
        });
        SetExpr::Select(Box::new(tree::select(items.collect(), vec![])))
    });
    let united = rows.reduce(|left, right| SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(left),
        right: Box::new(right),
    });
    if let Some(body) = united {
        *query.body = body;
    }
}

fn waits(value: &Expr) -> bool {
    let found = walk_expressions(value, &mut |expr| match expr {
        Expr::Function(call)
            if WAITING.iter().any(|name| call.name.to_string().eq_ignore_ascii_case(name)) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}
