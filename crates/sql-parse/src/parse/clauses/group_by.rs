//! The keys of GROUP BY.

use std::collections::HashSet;

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

/// Sets of keys. The planner does not support lists in ROLLUP and CUBE, whose keys come and go together, nor a key
/// twice: these become the sets that they mean.
fn sets(expr: Expr) -> Expr {
    match expr {
        Expr::GroupingSets(sets) => Expr::GroupingSets(sets.into_iter().map(set).collect()),
        Expr::Rollup(lists) if !are_distinct_keys(&lists) => {
            let first = |count: usize| set(lists[..count].concat());
            Expr::GroupingSets((0..=lists.len()).rev().map(first).collect())
        }
        Expr::Cube(lists) if !are_distinct_keys(&lists) && lists.len() <= CUBE_LISTS_MAX => {
            let chosen = |choice: u32| {
                let lists = lists.iter().enumerate();
                let lists = lists.filter(|(at, _)| choice >> at & 1 == 1);
                set(lists.flat_map(|(_, list)| list.clone()).collect())
            };
            Expr::GroupingSets((0..1 << lists.len()).rev().map(chosen).collect())
        }
        other => other,
    }
}

/// The keys of a set, each once.
fn set(exprs: Vec<Expr>) -> Vec<Expr> {
    let mut seen = HashSet::new();
    all_keys(exprs).into_iter().filter(|key| seen.insert(key.clone())).collect()
}

/// Whether each list is one key, and no key is there twice.
fn are_distinct_keys(lists: &[Vec<Expr>]) -> bool {
    let mut seen = HashSet::new();
    lists.iter().all(|list| matches!(list.as_slice(), [key] if seen.insert(key)))
}
