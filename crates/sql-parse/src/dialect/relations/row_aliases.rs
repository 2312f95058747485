//! Rows of a list beside an alias that is the name of a column.
//!
//! ```text
//! SELECT unnest(l) AS x, upper(a) AS a FROM t     SELECT "$row0" AS x, "$row1" AS a
//!                                                 FROM (SELECT unnest(l) AS "$row0", upper(a) AS "$row1" FROM t)
//! ```
//!
//! DataFusion computes `upper(a)` under its alias and passes `t.a` on, in one list below the rows; there, both are
//! called `a`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
};

use crate::dialect::columns::names::{column, folded};
use crate::dialect::relations::list_rows;
use crate::dialect::tree::{self, alone, derived, query, quoted};
use crate::syntax::walk_own_expressions;

/// Computes the select lists of a query below others that name their columns.
pub(in crate::dialect) fn rewrite(query: &mut Query) {
    let mut none = Vec::new();
    let keys = match &mut query.order_by {
        None => &mut none,
        Some(order) => match &mut order.kind {
            OrderByKind::Expressions(keys) => keys,
            OrderByKind::All(_) => &mut none,
        },
    };
    rewrite_body(&mut query.body, keys);
}

fn rewrite_body(body: &mut SetExpr, keys: &mut [OrderByExpr]) {
    match body {
        SetExpr::Select(select) => {
            if let Some(items) = clashing(select) {
                nest(select, items, keys);
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            rewrite_body(left, &mut []);
            rewrite_body(right, &mut []);
        }
        _ => {}
    }
}

/// The items of a select list with rows of a list, if the alias of one is the name of a column that the list reads.
fn clashing(select: &Select) -> Option<Vec<(Expr, String)>> {
    let is_plain = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !is_plain || matches!(select.distinct, Some(Distinct::On(_))) {
        return None;
    }
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => items.push((expr.clone(), folded(alias))),
            SelectItem::UnnamedExpr(expr) => items.push((expr.clone(), column(expr)?.0)),
            _ => return None,
        }
    }
    let (mut has_rows, mut read) = (false, HashSet::new());
    for (expr, _) in &items {
        let _: ControlFlow<()> = walk_own_expressions(expr, &mut |part| {
            has_rows |= gives_rows(part);
            read.extend(column(part).map(|(name, _)| name));
            ControlFlow::Continue(())
        });
    }
    let clashes = |(expr, name): &(Expr, String)| {
        read.contains(name) && column(expr).is_none_or(|(column, _)| column != *name)
    };
    (has_rows && items.iter().any(clashes)).then_some(items)
}

fn gives_rows(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let name = &function.name;
    let is_named = |known: &str| name.to_string().eq_ignore_ascii_case(known);
    is_named("unnest")
        || is_named("generate_subscripts")
        || list_rows::is_series(name)
        || list_rows::named(name).is_some()
}

fn nest(select: &mut Select, items: Vec<(Expr, String)>, keys: &mut [OrderByExpr]) {
    let name = |at: usize| format!("$row{at}");
    for key in keys {
        if let Some(at) = items.iter().position(|(expr, _)| *expr == key.expr) {
            key.expr = Expr::Identifier(quoted(&items[at].1));
        }
    }
    let outer = items.iter().enumerate();
    let outer =
        outer.map(|(at, (_, shown))| tree::item(Expr::Identifier(quoted(&name(at))), shown));
    let mut outer = tree::select(outer.collect(), vec![]);
    let inner = items.into_iter().enumerate();
    select.projection = inner.map(|(at, (expr, _))| tree::item(expr, &name(at))).collect();
    outer.distinct = select.distinct.take();
    outer.into = select.into.take();
    std::mem::swap(select, &mut outer);
    select.from = vec![alone(derived(query(SetExpr::Select(Box::new(outer))), None))];
}
