//! Rows of a list beside an alias that is the name of a column, and in sort keys.
//!
//! ```text
//! SELECT unnest(l) AS x, upper(a) AS a FROM t     SELECT "$row0" AS x, "$row1" AS a
//!                                                 FROM (SELECT unnest(l) AS "$row0", upper(a) AS "$row1" FROM t)
//! SELECT a FROM t ORDER BY unnest(l) + 1          SELECT "$row0" AS a
//!                                                 FROM (SELECT a AS "$row0", unnest(l) + 1 AS "$row1" FROM t) ORDER BY "$row1"
//! ```
//!
//! DataFusion computes `upper(a)` under its alias and passes `t.a` on, in one list below the rows; there, both are
//! called `a`. Sort keys it computes above the rows, where `t.l` is gone.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
};

use crate::dialect::columns::names::{column, folded};
use crate::dialect::relations::list_rows::has_rows;
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
            let nested = items_of(select).filter(|items| {
                keys.iter().any(|key| has_rows(&key.expr)) && select.distinct.is_none()
                    || is_clashing(items)
            });
            if let Some(items) = nested {
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

/// The expressions of a select list without groups, with their names.
fn items_of(select: &Select) -> Option<Vec<(Expr, String)>> {
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
    Some(items)
}

/// Whether a select list has rows of a list, and the alias of one of its items is the name of a column that it reads.
fn is_clashing(items: &[(Expr, String)]) -> bool {
    let mut read = HashSet::new();
    for (expr, _) in items {
        let _: ControlFlow<()> = walk_own_expressions(expr, &mut |part| {
            read.extend(column(part).map(|(name, _)| name));
            ControlFlow::Continue(())
        });
    }
    let clashes = |(expr, name): &(Expr, String)| {
        read.contains(name) && column(expr).is_none_or(|(column, _)| column != *name)
    };
    items.iter().any(|(expr, _)| has_rows(expr)) && items.iter().any(clashes)
}

/// Whether a sort key is the number or the name of an item.
fn is_output(key: &Expr, items: &[(Expr, String)]) -> bool {
    match key {
        Expr::Value(_) => true,
        Expr::Identifier(name) => items.iter().any(|(_, shown)| *shown == folded(name)),
        _ => false,
    }
}

fn nest(select: &mut Select, mut items: Vec<(Expr, String)>, keys: &mut [OrderByExpr]) {
    let name = |at: usize| format!("$row{at}");
    let shown = items.len();
    for key in keys {
        if let Some(at) = items.iter().position(|(expr, _)| *expr == key.expr) {
            let name = if at < shown { items[at].1.clone() } else { name(at) };
            key.expr = Expr::Identifier(quoted(&name));
        } else if !is_output(&key.expr, &items[..shown]) {
            let computed = name(items.len());
            let key = std::mem::replace(&mut key.expr, Expr::Identifier(quoted(&computed)));
            items.push((key, computed));
        }
    }
    let outer = items.iter().take(shown).enumerate();
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
