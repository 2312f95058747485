//! LATERAL where it is left out, and `unnest` in FROM over columns of what stands before it; names of what such
//! functions give.
//!
//! ```text
//! FROM t, (SELECT t.a + 1) u(b)          FROM t, LATERAL (SELECT t.a + 1) u(b)
//! FROM t, unnest(t.list) u(x)            FROM t, LATERAL (SELECT unnest(t.list) AS unnest) u(x)
//! FROM t, generate_series(1, t.a) s       FROM t, LATERAL (SELECT unnest(generate_series(1, t.a))) s(s)
//! FROM range(3), unnest(l) u              FROM range(3) range(range), unnest(l) u(u)
//! FROM unnest(l) WITH ORDINALITY         … unnest(l) AS unnest, unnest(generate_series(1, array_length(l))) AS ordinality
//! ```

use crate::parse::walk;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinOperator, ObjectName,
    OrderBy, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Visitor,
};

use super::{list_rows, times, tree};

/// Puts subqueries in the place of such calls.
pub(super) fn rewrite(select: &mut Select) {
    name_series(select, None);
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
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. }
            if is_series(name) =>
        {
            if *with_ordinality {
                let (function, series) = (name.to_string(), call_of(name, &args.args));
                *factor = numbered(&function.to_lowercase(), series, alias.take(), is_first);
                return;
            }
            if let Some(moments) = times::series(name, &args.args) {
                let moments = tree::call("unnest", vec![moments]);
                *factor = selected(&name.to_string(), moments, alias.take(), is_first);
                return;
            }
            // DataFusion's function takes constants alone.
            if args.args.iter().any(|arg| walk(arg, &mut NamesOrArrays).is_break()) {
                *factor = series(name, &args.args, alias.take(), is_first);
            }
            return;
        }
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. }
            if list_rows::list_of(name).is_some() =>
        {
            let function = name.to_string().to_lowercase();
            let Some(list) = list_rows::list_of(name) else { return };
            let list = call_of(&Ident::new(list).into(), &args.args);
            *factor = match *with_ordinality {
                true => numbered(&function, list, alias.take(), is_first),
                false => {
                    let rows = tree::call("unnest", vec![list]);
                    selected(&function, rows, alias.take(), is_first)
                }
            };
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
    let mut items: Vec<SelectItem> = exprs
        .iter()
        .enumerate()
        .map(|(at, expr)| tree::item(tree::call("unnest", vec![expr.clone()]), &name_of_list(at)))
        .collect();
    if with_numbers {
        items.push(numbers_of(exprs));
    }
    let query = tree::query(SetExpr::Select(Box::new(tree::select(items, vec![]))));
    *factor =
        TableFactor::Derived { lateral: !is_first, subquery: Box::new(query), alias, sample: None };
}

/// Names the columns of series and lists in the FROM of a query, which its ORDER BY may name too.
pub(super) fn name_columns(query: &mut Query) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        name_series(select, query.order_by.as_ref());
    }
}

/// Gives the column of a series, or of a list, the name of its table: `SELECT a FROM range(3) AS a`. Where the query
/// names the column `value`, it keeps that name, which it has in DataFusion.
fn name_series(select: &mut Select, order: Option<&OrderBy>) {
    if !factors(select).any(|factor| unnamed(factor).is_some()) {
        return;
    }
    let whole = select.clone();
    let names = |table: &str, column: &str| {
        let mut named = Named { table, column };
        walk(&whole, &mut named).is_break()
            || order.is_some_and(|order| walk(order, &mut named).is_break())
    };
    let mut tables = Vec::new();
    for factor in factors(select) {
        let Some((function, lists, alias)) = unnamed(factor) else { continue };
        let own = match alias {
            Some(alias) => alias.name.clone(),
            None => Ident::new(&function),
        };
        if alias.is_none() && tables.contains(&own.value) {
            continue;
        }
        tables.push(own.value.clone());
        let columns = match lists {
            0 if !names(&own.value, &own.value) && names(&own.value, "value") => {
                tree::alias("", &["value"]).columns
            }
            0 | 1 => vec![TableAliasColumnDef { name: own, data_type: None }],
            lists => names_of_lists(lists),
        };
        alias.get_or_insert_with(|| tree::alias(&function, &[])).columns = columns;
    }
}

fn factors(select: &mut Select) -> impl Iterator<Item = &mut TableFactor> {
    select.from.iter_mut().flat_map(|table| {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        std::iter::once(&mut table.relation).chain(joined)
    })
}

/// The name of a function in FROM whose columns have no names, of how many lists it is (a series is none), and its
/// alias.
fn unnamed(factor: &mut TableFactor) -> Option<(String, usize, &mut Option<TableAlias>)> {
    let (name, lists, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, with_ordinality: false, .. }
            if is_series(name) =>
        {
            (name.to_string().to_lowercase(), 0, alias)
        }
        TableFactor::UNNEST { alias, array_exprs, with_ordinality: false, .. }
            if !array_exprs.iter().any(|of| matches!(of, Expr::Dictionary(_))) =>
        {
            ("unnest".to_owned(), array_exprs.len(), alias)
        }
        TableFactor::Function { lateral: true, name, args, with_ordinality: false, alias }
            if is_unnest(name) =>
        {
            ("unnest".to_owned(), args.len(), alias)
        }
        _ => return None,
    };
    let is_named = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    (!is_named).then_some((name, lists, alias))
}

/// `unnest, unnest_1, …`
fn names_of_lists(lists: usize) -> Vec<TableAliasColumnDef> {
    let names: Vec<String> = (0..lists).map(name_of_list).collect();
    tree::alias("", &names.iter().map(String::as_str).collect::<Vec<_>>()).columns
}

fn name_of_list(at: usize) -> String {
    match at {
        0 => "unnest".to_owned(),
        at => format!("unnest_{at}"),
    }
}

/// Stops at a column of this name, by itself or with its table.
struct Named<'a> {
    table: &'a str,
    column: &'a str,
}

impl Visitor for Named<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_named = match expr {
            Expr::Identifier(name) => name.value.eq_ignore_ascii_case(self.column),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, column] => {
                    table.value.eq_ignore_ascii_case(self.table)
                        && column.value.eq_ignore_ascii_case(self.column)
                }
                _ => false,
            },
            _ => false,
        };
        if is_named { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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

/// `generate_series(…) WITH ORDINALITY`: the elements of a list, and their numbers.
fn numbered(function: &str, list: Expr, alias: Option<TableAlias>, is_first: bool) -> TableFactor {
    let mut alias = alias.unwrap_or_else(|| tree::alias(function, &[]));
    if alias.columns.is_empty() {
        alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
    }
    if alias.columns.len() == 1 {
        alias.columns.extend(tree::alias("", &["ordinality"]).columns);
    }
    let value = tree::item(tree::call("unnest", vec![list.clone()]), function);
    let items = vec![value, numbers_of(vec![list])];
    let query = tree::query(SetExpr::Select(Box::new(tree::select(items, vec![]))));
    let (subquery, alias) = (Box::new(query), Some(alias));
    TableFactor::Derived { lateral: !is_first, subquery, alias, sample: None }
}

/// Numbers beside the elements of lists, up to the end of the longest.
fn numbers_of(lists: Vec<Expr>) -> SelectItem {
    let mut lengths: Vec<Expr> =
        lists.into_iter().map(|list| tree::call("array_length", vec![list])).collect();
    let length = match lengths.len() {
        1 => lengths.swap_remove(0),
        _ => tree::call("greatest", lengths),
    };
    let one = Expr::Value(Value::Number("1".to_owned(), false).into());
    let numbers = tree::call("generate_series", vec![one, length]);
    tree::item(tree::call("unnest", vec![numbers]), "ordinality")
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
