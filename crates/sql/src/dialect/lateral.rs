//! LATERAL where it is left out, and `unnest` in FROM over columns of what stands before it.
//!
//! ```text
//! FROM t, (SELECT t.a + 1) u(b)          FROM t, LATERAL (SELECT t.a + 1) u(b)
//! FROM t, unnest(t.list) u(x)            FROM t, LATERAL (SELECT unnest(t.list) AS unnest) u(x)
//! FROM t, generate_series(1, t.a) s       FROM t, LATERAL (SELECT unnest(generate_series(1, t.a))) s(s)
//! FROM unnest(l) WITH ORDINALITY         … unnest(l) AS unnest, unnest(generate_series(1, array_length(l))) AS ordinality
//! ```

use crate::parse::walk;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, JoinOperator, ObjectName, Select,
    SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value, Visitor,
};

use super::tree;

/// Puts subqueries in the place of such calls.
pub(super) fn rewrite(select: &mut Select) {
    name_series(select);
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
        TableFactor::Table { name, args: Some(args), alias, .. } if is_series(name) => {
            // DataFusion's function takes constants alone.
            if args.args.iter().any(|arg| walk(arg, &mut NamesOrArrays).is_break()) {
                *factor = series(name, &args.args, alias.take(), is_first);
            }
            return;
        }
        TableFactor::Table { name, args: Some(args), alias, .. } if gives_value(name) => {
            *factor = one_row(name, &args.args, alias.take(), is_first);
            return;
        }
        TableFactor::Derived { lateral, .. } => {
            *lateral |= !is_first;
            return;
        }
        _ => return,
    };
    let names_columns = exprs.iter().any(|expr| walk(expr, &mut Names).is_break());
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

/// Gives the column of a series the name of its table, where the SELECT calls it so: `SELECT a FROM range(3) AS a`.
fn name_series(select: &mut Select) {
    let mut from = std::mem::take(&mut select.from);
    for table in &mut from {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut table.relation).chain(joined) {
            let alias = match factor {
                TableFactor::Table { name, args: Some(_), alias: Some(alias), .. }
                    if is_series(name) =>
                {
                    alias
                }
                TableFactor::UNNEST { alias: Some(alias), array_exprs, .. }
                    if array_exprs.len() == 1 =>
                {
                    alias
                }
                _ => continue,
            };
            let mut named = Named(&alias.name.value);
            if alias.columns.is_empty() && walk(&*select, &mut named).is_break() {
                let column = TableAliasColumnDef { name: alias.name.clone(), data_type: None };
                alias.columns.push(column);
            }
        }
    }
    select.from = from;
}

/// Stops at a column of this name.
struct Named<'a>(&'a str);

impl Visitor for Named<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) if name.value.eq_ignore_ascii_case(self.0) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is_series(name: &ObjectName) -> bool {
    let name = name.to_string();
    ["generate_series", "range"].iter().any(|series| name.eq_ignore_ascii_case(series))
}

/// The numbers of a series whose bounds are columns.
fn series(
    name: &ObjectName,
    args: &[FunctionArg],
    alias: Option<TableAlias>,
    is_first: bool,
) -> TableFactor {
    let numbers = tree::call("unnest", vec![call_of(name, args)]);
    selected(&name.to_string(), numbers, alias, is_first)
}

/// Functions that give one value, which PostgreSQL's clients read as a table of one row.
fn gives_value(name: &ObjectName) -> bool {
    const NAMES: [&str; 4] =
        ["string_to_array", "current_schemas", "current_setting", "current_database"];
    let name = name.to_string();
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn one_row(
    name: &ObjectName,
    args: &[FunctionArg],
    alias: Option<TableAlias>,
    is_first: bool,
) -> TableFactor {
    selected(&name.to_string(), call_of(name, args), alias, is_first)
}

fn call_of(name: &ObjectName, args: &[FunctionArg]) -> Expr {
    let mut call = tree::call(&name.to_string(), vec![]);
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args = args.to_vec();
    }
    call
}

/// `LATERAL (SELECT value) AS alias`, whose one column has the name of the table if it has no other.
fn selected(name: &str, value: Expr, alias: Option<TableAlias>, is_first: bool) -> TableFactor {
    let mut alias = alias.unwrap_or_else(|| tree::alias(name, &[]));
    if alias.columns.is_empty() {
        let column = TableAliasColumnDef { name: alias.name.clone(), data_type: None };
        alias.columns.push(column);
    }
    let value = tree::item(value, name);
    let query = tree::query(SetExpr::Select(Box::new(tree::select(vec![value], vec![]))));
    let (subquery, alias) = (Box::new(query), Some(alias));
    TableFactor::Derived { lateral: !is_first, subquery, alias, sample: None }
}

fn is_unnest(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("unnest")
}

/// Stops at the name of a column, and at a function of an array.
struct NamesOrArrays;

impl Visitor for NamesOrArrays {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if function.name.to_string().starts_with("array_") => {
                ControlFlow::Break(())
            }
            other => Names.pre_visit_expr(other),
        }
    }
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
