//! `FETCH FIRST n ROWS WITH TIES`: the first rows, and those that are equal to the last of them by ORDER BY.
//!
//! ```text
//! SELECT … ORDER BY a OFFSET m FETCH FIRST n ROWS WITH TIES
//!     SELECT … QUALIFY rank() OVER (ORDER BY a) <= n + m ORDER BY a OFFSET m
//! SELECT DISTINCT … ORDER BY a FETCH …      SELECT * FROM (SELECT DISTINCT …) q QUALIFY …
//! ```

use atoll_sql_common::error::{SqlState, stated_err};
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Value, WindowSpec, WindowType,
};

use crate::dialect::columns::stars::is_same;
use crate::dialect::tree;

/// The name of the subquery for queries that compare whole rows.
const WHOLE: &str = "$rows";

/// Makes such a limit a condition on ranks; `rows` is n.
pub(crate) fn with_ties(query: &mut Query, rows: Expr) -> Result<()> {
    let offset = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, .. }) => offset.as_ref(),
        Some(_) => return plan_err!("LIMIT and FETCH FIRST exclude each other"),
    };
    let rows = match offset {
        Some(offset) => tree::binary(nested(&rows), BinaryOperator::Plus, nested(&offset.value)),
        None => rows,
    };
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind)
    else {
        return stated_err!(SYNTAX_ERROR, "WITH TIES cannot be specified without ORDER BY clause");
    };
    let mut keys = keys.clone();
    if !is_plain(&query.body) {
        let nothing = SetExpr::Select(Box::new(tree::select(vec![], vec![])));
        let body = std::mem::replace(&mut *query.body, nothing);
        name_keys(&mut keys, &body)?;
        let whole = tree::derived(tree::query(body), Some(tree::alias(WHOLE, &[])));
        *query.body = SetExpr::Select(Box::new(tree::all_of(whole)));
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    for key in &mut keys {
        resolve(key, select)?;
    }
    let rank = nested(&rank_by(keys));
    select.qualify = Some(tree::binary(rank, BinaryOperator::LtEq, nested(&rows)));
    Ok(())
}

/// Whether a rank can be computed next to the columns of a query.
fn is_plain(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.distinct.is_none() && select.qualify.is_none(),
        _ => false,
    }
}

/// Names the columns by whose numbers a query is ordered.
fn name_keys(keys: &mut [OrderByExpr], body: &SetExpr) -> Result<()> {
    for key in keys {
        if let Some(number) = number(&key.expr) {
            key.expr = item(output(body), number)?.1;
        }
    }
    Ok(())
}

/// The items that name the columns of a query.
fn output(body: &SetExpr) -> &[SelectItem] {
    match body {
        SetExpr::Select(select) => &select.projection,
        SetExpr::SetOperation { left, .. } => output(left),
        SetExpr::Query(query) => output(&query.body),
        _ => &[],
    }
}

/// Replaces a number or an alias by what it means, as ORDER BY understands it.
fn resolve(key: &mut OrderByExpr, select: &Select) -> Result<()> {
    if let Some(number) = number(&key.expr) {
        key.expr = item(&select.projection, number)?.0;
        return Ok(());
    }
    if let Expr::Identifier(name) = &key.expr {
        let meant = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if is_same(&alias.value, name) => Some(expr),
            _ => None,
        });
        if let Some(meant) = meant {
            key.expr = meant.clone();
        }
    }
    Ok(())
}

fn number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The expression of the item with this number, and its name.
fn item(items: &[SelectItem], number: usize) -> Result<(Expr, Expr)> {
    let upto = items.get(..number).unwrap_or_default();
    let is_one = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    match upto.last().filter(|_| upto.iter().all(is_one)) {
        Some(SelectItem::UnnamedExpr(expr)) => {
            let name = match expr {
                Expr::CompoundIdentifier(parts) => parts.last().cloned().map(Expr::Identifier),
                _ => None,
            };
            Ok((expr.clone(), name.unwrap_or_else(|| expr.clone())))
        }
        Some(SelectItem::ExprWithAlias { expr, alias }) => {
            Ok((expr.clone(), Expr::Identifier(alias.clone())))
        }
        _ => Err(SqlState::FEATURE_NOT_SUPPORTED.error(format!(
            "FETCH … WITH TIES does not know column {number} of ORDER BY; name the column"
        ))),
    }
}

/// `rank() OVER (ORDER BY keys)`
fn rank_by(order_by: Vec<OrderByExpr>) -> Expr {
    let mut rank = tree::call("rank", vec![]);
    if let Expr::Function(function) = &mut rank {
        function.over = Some(WindowType::WindowSpec(WindowSpec {
            window_name: None,
            partition_by: vec![],
            order_by,
            window_frame: None,
        }));
    }
    rank
}

fn nested(expr: &Expr) -> Expr {
    Expr::Nested(Box::new(expr.clone()))
}
