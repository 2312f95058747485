//! `a JOIN b USING (k)` and NATURAL joins: resolves `k` and `*`.
//!
//! ```text
//! SELECT * FROM b LEFT JOIN a USING (k)         SELECT b.k, b.x, a.y FROM b LEFT JOIN a USING (k)
//! SELECT k FROM a FULL JOIN b USING (k)         SELECT coalesce(a.k, b.k) AS k FROM a FULL JOIN b ON a.k = b.k
//! SELECT k FROM a JOIN b USING (k) WHERE k = 1           SELECT a.k FROM a JOIN b USING (k) WHERE a.k = 1
//! SELECT k FROM a JOIN b USING (k) JOIN c USING (k)      SELECT a.k FROM a JOIN b USING (k) JOIN c ON a.k = c.k
//! ```
//!
//! DataFusion 55.2 takes the left column whatever the join keeps (apache/datafusion#22881), the first by the names of
//! the tables for `*`, and none if three tables have it. The session supplies the columns: see `needs`. Tables that
//! cannot be distinguished here, such as those without a name, are left to DataFusion.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::{DFSchema, Result};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, OrderBy, OrderByKind,
    Select, SelectItem, TableFactor, TableWithJoins, Value,
};

use crate::dialect::columns::columns_call::{self, Named};
use crate::dialect::columns::reused;
use crate::dialect::columns::stars::{self, is_same};
use crate::dialect::tree;
use crate::syntax::walk_expressions;

/// The meaning of names that several tables share, in lower case.
pub(in crate::dialect) type SharedNames = HashMap<String, Expr>;

/// The side whose rows a join keeps without a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The left side's, or neither's.
    Left,
    Right,
    Both,
}

/// A column that a FROM shows.
struct Shown {
    column: Named,
    /// The number of tables that share it.
    tables: usize,
}

/// Whether names of a SELECT depend on shared columns that DataFusion resolves otherwise.
pub(in crate::dialect) fn is_in(select: &Select) -> bool {
    let joins = || select.from.iter().flat_map(|from| &from.joins);
    if !joins().all(|join| constraint(&join.join_operator).is_some()) {
        return false;
    }
    let shares = joins().filter_map(|join| constraint(&join.join_operator)).filter(is_shared);
    let kept: Vec<Kept> = shares.map(|(kept, _)| kept).collect();
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let has_all = select.projection.iter().any(is_star) || columns_call::are_of(select);
    !kept.is_empty()
        && (has_all || kept.len() > 1 || kept[0] != Kept::Left || has_shared_condition(select))
}

/// Whether WHERE, or the condition of a join, has a name that tables may share: DataFusion (55.2) resolves it only
/// elsewhere.
fn has_shared_condition(select: &Select) -> bool {
    let joins = || select.from.iter().flat_map(|from| &from.joins);
    let constraints = || joins().filter_map(|join| constraint(&join.join_operator));
    let is_shared = |name: &Ident| {
        constraints().any(|(_, on)| match on {
            JoinConstraint::Natural => true,
            JoinConstraint::Using(names) => {
                let mut names = names.iter().filter_map(|it| it.0.last()?.as_ident());
                names.any(|it| is_same(&it.value, name))
            }
            _ => false,
        })
    };
    let conditions = constraints().filter_map(|(_, on)| match on {
        JoinConstraint::On(condition) => Some(condition),
        _ => None,
    });
    select.selection.iter().chain(conditions).any(|condition| {
        let found = walk_expressions(condition, &mut |expr| match expr {
            Expr::Identifier(name) if is_shared(name) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    })
}

fn is_shared((_, constraint): &(Kept, &JoinConstraint)) -> bool {
    matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
}

fn constraint(operator: &JoinOperator) -> Option<(Kept, &JoinConstraint)> {
    use JoinOperator as O;
    Some(match operator {
        O::Join(on) | O::Inner(on) | O::CrossJoin(on) | O::Left(on) | O::LeftOuter(on) => {
            (Kept::Left, on)
        }
        O::Right(on) | O::RightOuter(on) => (Kept::Right, on),
        O::FullOuter(on) => (Kept::Both, on),
        _ => return None,
    })
}

fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as O;
    match operator {
        O::Join(on) | O::Inner(on) | O::CrossJoin(on) | O::Left(on) | O::LeftOuter(on) => Some(on),
        O::Right(on) | O::RightOuter(on) | O::FullOuter(on) => Some(on),
        _ => None,
    }
}

/// The same tables as a cross join, to look up their columns.
pub(in crate::dialect) fn side_by_side(from: &[TableWithJoins]) -> Vec<TableWithJoins> {
    let mut from = from.to_vec();
    for join in from.iter_mut().flat_map(|from| &mut from.joins) {
        match &mut join.join_operator {
            JoinOperator::CrossJoin(on) => *on = JoinConstraint::None,
            other => {
                if let Some(on) = constraint_mut(other) {
                    *on = JoinConstraint::On(Expr::value(Value::Boolean(true)));
                }
            }
        }
    }
    from
}

/// Resolves the names of a SELECT and returns their meaning, if the tables can be distinguished.
pub(in crate::dialect) fn write_out(select: &mut Select, tables: &DFSchema) -> Result<SharedNames> {
    let mut from = select.from.clone();
    let mut shown = Vec::new();
    for from in &mut from {
        match joined(from, tables)? {
            Some(columns) => shown.extend(columns),
            None => return Ok(SharedNames::new()),
        }
    }
    select.from = from;
    let names = shared_names(&shown);
    let shown: Vec<Named> = shown.into_iter().map(|shown| shown.column).collect();
    columns_call::write_out(select, &shown)?;
    stars::write_all_out(select, &shown)?;
    resolve(select, &names)?;
    Ok(names)
}

/// The columns of joined tables; `None` if the tables cannot be distinguished.
fn joined(from: &mut TableWithJoins, tables: &DFSchema) -> Result<Option<Vec<Shown>>> {
    let Some(mut shown) = columns_of(&from.relation, tables) else { return Ok(None) };
    for join in &mut from.joins {
        let Some(right) = columns_of(&join.relation, tables) else { return Ok(None) };
        if let Some(JoinConstraint::On(on)) = constraint_mut(&mut join.join_operator) {
            reused::replace(on, &shared_names(&shown))?;
        }
        match beside(join, shown, right) {
            Some(both) => shown = both,
            None => return Ok(None),
        }
    }
    Ok(Some(shown))
}

/// The columns of two sides that are joined: first those that they share.
fn beside(join: &mut Join, mut left: Vec<Shown>, mut right: Vec<Shown>) -> Option<Vec<Shown>> {
    let (kept, on) = constraint(&join.join_operator)?;
    let mut names: Vec<Ident> = Vec::new();
    match on {
        JoinConstraint::Using(list) => {
            for name in list {
                names.push(name.0.last()?.as_ident()?.clone());
            }
        }
        JoinConstraint::Natural => {
            let is_right = |name: &str| right.iter().any(|other| other.column.name == name);
            let common = left.iter().map(|shown| shown.column.name.as_str());
            names.extend(common.filter(|name| is_right(name)).map(tree::quoted));
        }
        _ => {}
    }
    let (mut shared, mut equal, mut is_plain) = (Vec::new(), Vec::new(), kept == Kept::Left);
    for name in &names {
        let (one, other) = (taken(&mut left, name)?, taken(&mut right, name)?);
        is_plain &= one.tables == 1;
        let (left, right) = (one.column.expr, other.column.expr);
        equal.push(tree::equal(left.clone(), right.clone()));
        let expr = match kept {
            Kept::Left => left,
            Kept::Right => right,
            Kept::Both => tree::call("coalesce", vec![left, right]),
        };
        let column = Named { expr, name: one.column.name, table: None };
        shared.push(Shown { column, tables: one.tables + other.tables });
    }
    // Two tables that share a column whose left one counts are DataFusion's, names in subqueries included.
    if !is_plain && let Some(condition) = equal.into_iter().reduce(tree::and) {
        *constraint_mut(&mut join.join_operator)? = JoinConstraint::On(condition);
    }
    Some(shared.into_iter().chain(left).chain(right).collect())
}

/// Takes out the only column of a name.
fn taken(shown: &mut Vec<Shown>, name: &Ident) -> Option<Shown> {
    let is_named = |shown: &Shown| is_same(&shown.column.name, name);
    let at = shown.iter().position(is_named)?;
    (shown.iter().filter(|shown| is_named(shown)).count() == 1).then(|| shown.remove(at))
}

/// The columns of a table by its name; `None` if it has no name.
fn columns_of(factor: &TableFactor, tables: &DFSchema) -> Option<Vec<Shown>> {
    let name = match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => &alias.name,
        TableFactor::Table { name, alias: None, args: None, .. } => name.0.last()?.as_ident()?,
        _ => return None,
    };
    let of = tables.iter().filter_map(|(table, field)| {
        let table = table.filter(|table| is_same(table.table(), name))?;
        let table = tree::quoted(table.table());
        let expr = columns_call::column(Some(table.clone()), field.name());
        let column = Named { expr, name: field.name().clone(), table: Some(table) };
        Some(Shown { column, tables: 1 })
    });
    let of: Vec<Shown> = of.collect();
    (!of.is_empty()).then_some(of)
}

/// The meaning of shared names that no other column has.
fn shared_names(shown: &[Shown]) -> SharedNames {
    let is_only = |name: &str| {
        shown.iter().filter(|shown| shown.column.name.eq_ignore_ascii_case(name)).count() == 1
    };
    let shared = shown.iter().filter(|shown| shown.tables > 1 && is_only(&shown.column.name));
    shared.map(|shown| (shown.column.name.to_lowercase(), shown.column.expr.clone())).collect()
}

/// Replaces names by their meaning.
fn resolve(select: &mut Select, names: &SharedNames) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                if let Some(expr) = names.get(&name.value.to_lowercase()) {
                    *item = stars::item_named(expr.clone(), &name.value.clone());
                }
            }
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                reused::replace(expr, names)?;
            }
            _ => {}
        }
    }
    let Select { selection, having, qualify, group_by, distinct, named_window, .. } = select;
    for expr in [selection, having, qualify].into_iter().flatten() {
        reused::replace(expr, names)?;
    }
    if let GroupByExpr::Expressions(exprs, _) = group_by {
        exprs.iter_mut().try_for_each(|expr| reused::replace(expr, names))?;
    }
    if let Some(Distinct::On(exprs)) = distinct {
        exprs.iter_mut().try_for_each(|expr| reused::replace(expr, names))?;
    }
    named_window.iter_mut().try_for_each(|window| reused::replace(window, names))
}

/// The same in the ORDER BY of a SELECT, except for names of its result columns.
pub(in crate::dialect) fn resolve_order(
    order: &mut OrderBy,
    select: &Select,
    names: &SharedNames,
) -> Result<()> {
    let OrderByKind::Expressions(exprs) = &mut order.kind else { return Ok(()) };
    let is_output = |name: &Ident| {
        select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                alias.value.eq_ignore_ascii_case(&name.value)
            }
            SelectItem::UnnamedExpr(Expr::Identifier(own)) => own.value == name.value,
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(own)) => {
                own.last().is_some_and(|own| is_same(&own.value, name))
            }
            _ => false,
        })
    };
    for order in exprs {
        match &order.expr {
            Expr::Identifier(name) if is_output(name) => {}
            _ => reused::replace(&mut order.expr, names)?,
        }
    }
    Ok(())
}
