//! LATERAL where it is left out, and `unnest` in FROM over columns of what stands before it.
//!
//! ```text
//! FROM t, (SELECT t.a + 1) u(b)          FROM t, LATERAL (SELECT t.a + 1) u(b)
//! FROM t, unnest(t.list) u(x)            FROM t, LATERAL (SELECT unnest(t.list) AS unnest) u(x)
//! FROM unnest(l) WITH ORDINALITY         … unnest(l) AS unnest, unnest(generate_series(1, array_length(l))) AS ordinality
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, JoinOperator, ObjectName, Select, SetExpr, TableFactor,
    Value, Visit, Visitor,
};

use super::tree;

/// Puts subqueries in the place of such calls.
pub(super) fn rewrite(select: &mut Select) {
    let mut is_first = true;
    for table in &mut select.from {
        rewrite_factor(&mut table.relation, is_first);
        for join in &mut table.joins {
            let may_be_lateral = !matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            );
            rewrite_factor(&mut join.relation, !may_be_lateral);
        }
        is_first = false;
    }
}

fn rewrite_factor(factor: &mut TableFactor, is_first: bool) {
    let (exprs, with_numbers, alias) = match factor {
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            (array_exprs.clone(), *with_ordinality, alias.take())
        }
        TableFactor::Function { lateral: true, name, args, with_ordinality, alias }
            if is_unnest(name) =>
        {
            let exprs = args.iter().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            (exprs.collect(), *with_ordinality, alias.take())
        }
        TableFactor::Derived { lateral, .. } => {
            *lateral |= !is_first;
            return;
        }
        _ => return,
    };
    let names_columns = exprs.iter().any(|expr| expr.visit(&mut Names).is_break());
    if !names_columns && !with_numbers {
        // DataFusion plans it, but for LATERAL, which means nothing here.
        *factor = TableFactor::UNNEST {
            alias,
            array_exprs: exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
        return;
    }
    let mut items = Vec::new();
    for expr in &exprs {
        items.push(tree::item(tree::call("unnest", vec![expr.clone()]), "unnest"));
    }
    if let (true, Some(first)) = (with_numbers, exprs.into_iter().next()) {
        let one = Expr::Value(Value::Number("1".to_owned(), false).into());
        let numbers = vec![one, tree::call("array_length", vec![first])];
        let numbers = tree::call("generate_series", numbers);
        items.push(tree::item(tree::call("unnest", vec![numbers]), "ordinality"));
    }
    let query = tree::query(SetExpr::Select(Box::new(tree::select(items, vec![]))));
    *factor =
        TableFactor::Derived { lateral: !is_first, subquery: Box::new(query), alias, sample: None };
}

fn is_unnest(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("unnest")
}

/// Stops at the name of a column.
struct Names;

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
