//! Additions to the SELECTs of a query.

use atoll_sql::datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    SetOperator, SetQuantifier, Statement, Value,
};

use super::calls::{calls_over_casts, cast, counts_of_casts, over_more_keys, regrouped};
use super::inside::{Addition, Of, What};
use super::names::Names;
use super::walk::{Walk, has_named_columns};

/// The kind of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Casts,
    Repeats,
    Calls,
    Windows,
    Parentheses,
    GroupKeys,
    OrderKeys,
    Having,
}

/// The SELECTs that a variant changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Outermost,
    /// Those of derived tables and CTEs.
    Within,
}

/// A kind of variants.
pub(super) struct Kind {
    pub(super) name: &'static str,
    sorts: &'static [Sort],
    place: Where,
}

const fn outermost(name: &'static str, sorts: &'static [Sort]) -> Kind {
    Kind { name, sorts, place: Where::Outermost }
}

const fn within(name: &'static str, sorts: &'static [Sort]) -> Kind {
    Kind { name, sorts, place: Where::Within }
}

pub(super) const KINDS: [Kind; 11] = [
    outermost("expressions beside their casts", &[Sort::Casts]),
    outermost("expressions twice", &[Sort::Repeats]),
    outermost("calls over casts", &[Sort::Calls]),
    outermost("windows over casts", &[Sort::Windows]),
    outermost("other parentheses", &[Sort::Parentheses]),
    outermost("keys beside their casts", &[Sort::GroupKeys]),
    outermost("sort keys beside their casts", &[Sort::OrderKeys]),
    outermost("HAVING over casts", &[Sort::Having]),
    outermost(
        "all of these",
        &[
            Sort::Casts,
            Sort::Repeats,
            Sort::Calls,
            Sort::Windows,
            Sort::Parentheses,
            Sort::GroupKeys,
            Sort::OrderKeys,
            Sort::Having,
        ],
    ),
    within("casts within subqueries", &[Sort::Casts, Sort::Repeats]),
    within("calls and keys within subqueries", &[Sort::Calls, Sort::Windows, Sort::GroupKeys]),
];

/// All additions of a kind to a query that returned this many columns.
pub(super) fn additions(statement: &Statement, kind: &Kind, columns: usize) -> Vec<Addition> {
    let mut names = Names::from_statement(statement);
    let mut made = Vec::new();
    let mut collect = |number: usize, query: &mut Query| {
        let is_outermost = number == 0;
        if is_outermost == (kind.place == Where::Outermost) {
            let wanted = Wanted { sorts: kind.sorts, columns: is_outermost.then_some(columns) };
            let whats = wanted.of_query(query, &mut names);
            made.extend(whats.into_iter().map(|what| Addition { select: number, what }));
        }
    };
    let is_within_open = kind.place == Where::Within && has_named_columns(statement);
    let mut copy = statement.clone();
    if let Statement::Query(query) = &mut copy {
        Walk { next: 0, is_within_open, visit: &mut collect }.query(query);
    }
    made
}

/// The additions wanted for one SELECT, and its number of columns if it is known.
struct Wanted<'a> {
    sorts: &'a [Sort],
    columns: Option<usize>,
}

impl Wanted<'_> {
    fn has(&self, sort: Sort) -> bool {
        self.sorts.contains(&sort)
    }

    fn of_query(&self, query: &Query, names: &mut Names) -> Vec<What> {
        let select = match query.body.as_ref() {
            SetExpr::Select(select) => select,
            SetExpr::SetOperation { .. } => return self.of_set_operation(query, names),
            _ => return Vec::new(),
        };
        if select.into.is_some() || !select.lateral_views.is_empty() {
            return Vec::new();
        }
        names.start(query, select, self.columns.is_some());
        let mut made = self.items(select, names);
        if self.has(Sort::GroupKeys) && !names.has_intervals() {
            made.extend(group_keys(select, names));
        }
        if self.has(Sort::OrderKeys) {
            made.extend(order_keys(query, select));
        }
        if self.has(Sort::Having) {
            made.extend(select.having.iter().flat_map(counts_of_casts).map(What::Having));
        }
        made
    }

    fn items(&self, select: &Select, names: &mut Names) -> Vec<What> {
        // Rows that differ in an added column would be separate rows.
        let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
        let is_fixed = is_distinct || matches!(select.group_by, GroupByExpr::All(_));
        let has_positions = self.has_a_column_for_each(select);
        let mut made = Vec::new();
        for (i, item) in select.projection.iter().enumerate() {
            let Some(expr) = expression(item) else { continue };
            let of = |of: Of| if has_positions { of } else { Of::Any };
            if self.has(Sort::Casts) && !(is_fixed && names.has_intervals()) {
                made.push(What::Item(cast(expr), names.for_cast(expr), of(Of::Cast(i))));
            }
            if self.has(Sort::Repeats) {
                made.push(What::Item(expr.clone(), names.for_repeat(expr), of(Of::Same(i))));
            }
            let mut add = |expr: Expr, of: Of| {
                let name = names.for_repeat(&expr);
                made.push(What::Item(expr, name, of));
            };
            if self.has(Sort::Windows)
                && !is_distinct
                && let Some((call, is_same)) = over_more_keys(expr)
            {
                add(call, if is_same { of(Of::Same(i)) } else { Of::Any });
            }
            if self.has(Sort::Calls) && !is_fixed {
                calls_over_casts(expr).into_iter().for_each(|call| add(call, Of::Any));
            }
            if self.has(Sort::Parentheses) && !is_fixed {
                regrouped(expr).into_iter().for_each(|other| add(other, Of::Any));
            }
        }
        made
    }

    /// Whether each item is one column.
    fn has_a_column_for_each(&self, select: &Select) -> bool {
        self.columns == Some(select.projection.len())
            && select.projection.iter().all(|item| expression(item).is_some())
    }

    /// Columns of a set operation once more; their casts where no rows are compared, as one type of all may have
    /// another text.
    fn of_set_operation(&self, query: &Query, names: &mut Names) -> Vec<What> {
        let Some((selects, is_union_all)) = selects_of(&query.body) else { return Vec::new() };
        let (first, rest) = (selects[0], &selects[1..]);
        let items = |select: &Select| -> Option<Vec<Expr>> {
            select.projection.iter().map(|item| expression(item).cloned()).collect()
        };
        let Some(columns) = items(first) else { return Vec::new() };
        let rest: Option<Vec<Vec<Expr>>> = rest.iter().map(|select| items(select)).collect();
        let Some(rest) = rest.filter(|rest| rest.iter().all(|r| r.len() == columns.len())) else {
            return Vec::new();
        };
        names.start(query, first, false);
        let mut made = Vec::new();
        for (i, expr) in columns.iter().enumerate() {
            let of_all: Vec<Expr> =
                std::iter::once(expr.clone()).chain(rest.iter().map(|r| r[i].clone())).collect();
            if self.has(Sort::Casts) && is_union_all {
                let casts = of_all.iter().map(cast).collect();
                made.push(What::Items(casts, names.for_cast(expr), Of::Any));
            }
            if self.has(Sort::Repeats) {
                let of = if self.columns.is_some() { Of::Same(i) } else { Of::Any };
                made.push(What::Items(of_all, names.for_repeat(expr), of));
            }
        }
        made
    }
}

/// The SELECTs of a set operation by position, and whether it is UNION ALL throughout.
fn selects_of(body: &SetExpr) -> Option<(Vec<&Select>, bool)> {
    match body {
        SetExpr::Select(select) => Some((vec![select], true)),
        SetExpr::SetOperation { left, op, right, set_quantifier } => {
            let (mut selects, is_left_all) = selects_of(left)?;
            let (others, is_right_all) = selects_of(right)?;
            selects.extend(others);
            let is_all = match set_quantifier {
                SetQuantifier::All => *op == SetOperator::Union,
                SetQuantifier::Distinct | SetQuantifier::None => false,
                _ => return None,
            };
            Some((selects, is_left_all && is_right_all && is_all))
        }
        _ => None,
    }
}

fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(Expr::Wildcard(_) | Expr::QualifiedWildcard(..)) => None,
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The expression of a key; None if the name is an alias of something else, which may or may not be a column too.
fn meant<'a>(key: &'a Expr, select: &'a Select) -> Option<&'a Expr> {
    match key {
        Expr::Value(value) => {
            let Value::Number(text, _) = &value.value else { return None };
            let position: usize = text.parse().ok()?;
            expression(select.projection.get(position.checked_sub(1)?)?)
        }
        Expr::Identifier(name) => {
            let aliased = select.projection.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => {
                    Some(expr)
                }
                _ => None,
            });
            aliased.is_none_or(|expr| expr == key).then_some(key)
        }
        _ => Some(key),
    }
}

/// The casts of the keys of GROUP BY, as keys and as columns.
fn group_keys(select: &Select, names: &mut Names) -> Vec<What> {
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else { return Vec::new() };
    let is_plain = |key: &Expr| {
        !matches!(key, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_))
    };
    if !modifiers.is_empty() || !keys.iter().all(is_plain) {
        return Vec::new();
    }
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    let both = |key: &Expr| {
        let item = What::Item(cast(key), names.for_cast(key), Of::Any);
        let key = What::GroupKey(cast(key));
        // Under DISTINCT a key that is not a column would make separate rows.
        if is_distinct { vec![key] } else { vec![key, item] }
    };
    keys.iter().filter_map(|key| meant(key, select)).flat_map(both).collect()
}

fn order_keys(query: &Query, select: &Select) -> Vec<What> {
    let Some(order) = &query.order_by else { return Vec::new() };
    let OrderByKind::Expressions(keys) = &order.kind else { return Vec::new() };
    if select.distinct.is_some() {
        return Vec::new();
    }
    let further = |key: &OrderByExpr| {
        let expr = cast(meant(&key.expr, select)?);
        Some(What::OrderKey(Box::new(OrderByExpr { expr, ..key.clone() })))
    };
    keys.iter().filter_map(further).collect()
}
