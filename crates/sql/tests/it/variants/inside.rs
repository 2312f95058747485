//! Variants made within a record's query: with additional expressions, keys and calls.
//!
//! Additions come after the columns of the query, whose values must stay the same.

use atoll_sql::datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Statement,
};
use atoll_sql::datafusion::sql::sqlparser::dialect::GenericDialect;
use atoll_sql::datafusion::sql::sqlparser::parser::Parser;

use super::additions::{KINDS, additions};
use super::rows::{Answer, Expected};
use super::walk::{Walk, has_named_columns};

/// An addition to one SELECT of the query.
#[derive(Clone, Debug)]
pub(super) struct Addition {
    /// The number of the SELECT, as [`Walk`] counts.
    pub(super) select: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Item(Expr, Ident, Of),
    /// A column of a set operation: an expression for each SELECT of it.
    Items(Vec<Expr>, Ident, Of),
    GroupKey(Expr),
    OrderKey(Box<OrderByExpr>),
    /// A further condition of HAVING, which holds for all groups.
    Having(Expr),
}

/// The relation of an added column to those of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Nothing that a test could compare.
    Any,
    Cast(usize),
    Same(usize),
}

/// A query and its possible additions.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) kind: &'static str,
    statement: Statement,
    additions: Vec<Addition>,
}

/// All variants within a query that returned this many columns. None if sqlparser cannot parse it.
pub(super) fn variants(query: &str, columns: usize) -> Vec<Inside> {
    let Ok(mut parsed) = Parser::parse_sql(&GenericDialect {}, query) else { return Vec::new() };
    let (Some(statement @ Statement::Query(_)), true) = (parsed.pop(), parsed.is_empty()) else {
        return Vec::new();
    };
    let made = KINDS.iter().map(|kind| Inside {
        kind: kind.name,
        statement: statement.clone(),
        additions: additions(&statement, kind, columns),
    });
    made.filter(|variant| !variant.additions.is_empty()).collect()
}

impl Inside {
    pub(super) fn len(&self) -> usize {
        self.additions.len()
    }

    /// The query with some of the additions.
    pub(super) fn sql(&self, chosen: &[usize]) -> String {
        let mut statement = self.statement.clone();
        let is_within_open = has_named_columns(&statement);
        let Statement::Query(query) = &mut statement else { return String::new() };
        let mut add = |number: usize, query: &mut Query| {
            let here = chosen.iter().map(|&i| &self.additions[i]);
            here.filter(|a| a.select == number).for_each(|addition| addition.what.add_to(query));
        };
        Walk { next: 0, is_within_open, visit: &mut add }.query(query);
        statement.to_string()
    }

    /// The outermost SELECT with only an addition. None for others.
    pub(super) fn alone(&self, addition: usize) -> Option<String> {
        let addition = &self.additions[addition];
        let mut statement = self.statement.clone();
        let Statement::Query(query) = &mut statement else { return None };
        let SetExpr::Select(select) = query.body.as_mut() else { return None };
        if addition.select != 0 {
            return None;
        }
        select.distinct = None;
        select.projection.clear();
        query.order_by = None;
        query.limit_clause = None;
        query.fetch = None;
        let name = Ident::with_quote('"', "alone");
        let item = match &addition.what {
            What::Item(expr, ..) | What::Having(expr) => expr,
            What::OrderKey(key) => &key.expr,
            What::GroupKey(key) => {
                select.having = None;
                select.qualify = None;
                select.group_by = GroupByExpr::Expressions(vec![key.clone()], Vec::new());
                key
            }
            What::Items(..) => return None,
        };
        What::Item(item.clone(), name, Of::Any).add_to(query);
        Some(statement.to_string())
    }

    /// The expected rows with some of the additions.
    pub(super) fn expected(&self, chosen: &[usize], answer: &Answer, is_sorted: bool) -> Expected {
        let Statement::Query(query) = &self.statement else { return Expected::default() };
        let columns = answer.types.len();
        let has_limit = query.limit_clause.is_some() || query.fetch.is_some();
        if has_limit && query.order_by.is_none() {
            // Any rows may be among them.
            let rows = vec![Vec::new(); answer.rows.len()];
            return Expected { rows, ..Expected::default() };
        }
        let items = chosen.iter().filter_map(|&i| match &self.additions[i] {
            Addition { select: 0, what: What::Item(_, _, of) | What::Items(_, _, of) } => Some(*of),
            _ => None,
        });
        let mut expected = Expected {
            known: (0..columns).collect(),
            rows: answer.rows.clone(),
            is_ordered: is_sorted && query.order_by.is_some(),
            ..Expected::default()
        };
        for (i, of) in items.enumerate() {
            match of {
                Of::Any => (),
                Of::Cast(column) => expected.casts.push((columns + i, column)),
                Of::Same(column) => expected.same.push((columns + i, column)),
            }
        }
        expected
    }
}

impl What {
    fn add_to(&self, query: &mut Query) {
        match self {
            Self::Items(exprs, alias, _) => add_to_each(&mut query.body, &mut exprs.iter(), alias),
            Self::OrderKey(key) => {
                if let Some(order) = &mut query.order_by
                    && let OrderByKind::Expressions(keys) = &mut order.kind
                {
                    keys.push(OrderByExpr::clone(key));
                }
            }
            Self::Item(..) | Self::GroupKey(_) | Self::Having(_) => {
                if let SetExpr::Select(select) = query.body.as_mut() {
                    self.add_to_select(select);
                }
            }
        }
    }

    fn add_to_select(&self, select: &mut Select) {
        match self {
            Self::Item(expr, alias, _) => select.projection.push(aliased(expr, alias)),
            Self::GroupKey(key) => {
                if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
                    keys.push(key.clone());
                }
            }
            Self::Having(condition) => {
                select.having = select.having.take().map(|having| Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(having))),
                    op: BinaryOperator::And,
                    right: Box::new(condition.clone()),
                });
            }
            Self::Items(..) | Self::OrderKey(_) => (),
        }
    }
}

fn aliased(expr: &Expr, alias: &Ident) -> SelectItem {
    SelectItem::ExprWithAlias { expr: expr.clone(), alias: alias.clone() }
}

/// Adds one expression to each SELECT of a set operation.
fn add_to_each<'a>(body: &mut SetExpr, exprs: &mut impl Iterator<Item = &'a Expr>, alias: &Ident) {
    match body {
        SetExpr::Select(select) => {
            select.projection.extend(exprs.next().map(|expr| aliased(expr, alias)));
        }
        SetExpr::SetOperation { left, right, .. } => {
            add_to_each(left, exprs, alias);
            add_to_each(right, exprs, alias);
        }
        _ => (),
    }
}
