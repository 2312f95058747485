//! The keys of GROUP BY.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, GroupByWithModifier};

use super::refuse;

/// The most columns of a CUBE with lists: it becomes a set for each choice of them.
const CUBE_LISTS_MAX: usize = 12;

/// `GROUP BY ()` is one group, even of no rows; next to other keys the empty list means nothing.
/// `GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP (a, b)`, and a list of keys is its keys.
pub(super) fn check(group_by: &mut GroupByExpr) -> Result<()> {
    let (exprs, modifiers) = match group_by {
        GroupByExpr::Expressions(exprs, modifiers) => {
            let given = !exprs.is_empty();
            *exprs = std::mem::take(exprs).into_iter().flat_map(keys).map(sets).collect();
            exprs.retain(|expr| !matches!(expr, Expr::Tuple(list) if list.is_empty()));
            if given && exprs.is_empty() {
                exprs.push(Expr::GroupingSets(vec![vec![]]));
            }
            (Some(exprs), modifiers)
        }
        GroupByExpr::All(modifiers) => (None, modifiers),
    };
    let each = |exprs: &mut Vec<Expr>| exprs.drain(..).map(|expr| vec![expr]).collect();
    match (exprs, modifiers.as_slice()) {
        (_, []) => Ok(()),
        (Some(exprs), [GroupByWithModifier::Rollup]) if !exprs.is_empty() => {
            *exprs = vec![Expr::Rollup(each(exprs))];
            modifiers.clear();
            Ok(())
        }
        (Some(exprs), [GroupByWithModifier::Cube]) if !exprs.is_empty() => {
            *exprs = vec![Expr::Cube(each(exprs))];
            modifiers.clear();
            Ok(())
        }
        (_, [first, ..]) => refuse(
            true,
            &format!("GROUP BY … {first}"),
            "write ROLLUP (…), CUBE (…) or GROUPING SETS (…) after GROUP BY",
        ),
    }
}

/// The keys of a list: `(a, b)` is two keys. The planner makes a struct of it, so that
/// `GROUPING SETS (a), (a, b)` would group by `a` and leave `b` null. Anything else is unchanged, the empty
/// list included.
fn keys(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Tuple(list) if !list.is_empty() => all_keys(list),
        Expr::Nested(inner) if matches!(*inner, Expr::Tuple(_) | Expr::Nested(_)) => keys(*inner),
        other => vec![other],
    }
}

fn all_keys(exprs: Vec<Expr>) -> Vec<Expr> {
    exprs.into_iter().flat_map(keys).collect()
}

/// Sets of keys. The planner does not support lists in ROLLUP and CUBE, whose keys come and go together: these
/// become the sets that they mean.
fn sets(expr: Expr) -> Expr {
    match expr {
        Expr::GroupingSets(sets) => Expr::GroupingSets(sets.into_iter().map(all_keys).collect()),
        Expr::Rollup(lists) if has_list(&lists) => {
            let first = |count: usize| all_keys(lists[..count].concat());
            Expr::GroupingSets((0..=lists.len()).rev().map(first).collect())
        }
        Expr::Cube(lists) if has_list(&lists) && lists.len() <= CUBE_LISTS_MAX => {
            let chosen = |set: u32| {
                let lists = lists.iter().enumerate();
                let lists = lists.filter(|(at, _)| set >> at & 1 == 1);
                all_keys(lists.flat_map(|(_, list)| list.clone()).collect())
            };
            Expr::GroupingSets((0..1 << lists.len()).rev().map(chosen).collect())
        }
        other => other,
    }
}

fn has_list(lists: &[Vec<Expr>]) -> bool {
    lists.iter().any(|list| list.len() != 1)
}
