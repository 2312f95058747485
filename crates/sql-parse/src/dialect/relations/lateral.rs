//! Adds LATERAL where it is left out, and for `unnest` in FROM over columns of earlier relations; names the columns of
//! such functions.
//!
//! ```text
//! FROM t, (SELECT t.a + 1) u(b)          FROM t, LATERAL (SELECT t.a + 1) u(b)
//! FROM t, unnest(t.list) u(x)            FROM t, LATERAL (SELECT unnest(t.list) AS unnest) u(x)
//! FROM t, generate_series(1, t.a) s       FROM t, LATERAL (SELECT unnest(generate_series(1, t.a))) s(s)
//! FROM t, LATERAL lower(t.a)              FROM t, LATERAL (SELECT lower(t.a) AS lower) lower(lower)
//! FROM current_date d                     FROM (SELECT current_date) d(d)
//! FROM range(3), unnest(l) u              FROM range(3) range(range), unnest(l) u(u)
//! FROM unnest(l) WITH ORDINALITY         … unnest(l) AS unnest, unnest(generate_series(1, array_length(l))) AS ordinality
//! ```

use crate::syntax::walk;
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinOperator, ObjectName,
    OrderBy, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableFunctionArgs, Value, Visitor,
};

use crate::dialect::expressions::{catalog, times};
use crate::dialect::relations::list_rows;
use crate::dialect::tree;
use crate::syntax::is_file_function;
use atoll_sql_common::functions::Functions;

/// PostgreSQL's function for the keys of constraints and indexes.
const EXPANDED_ARRAY: &str = "_pg_expandarray";

/// Replaces such calls by subqueries.
pub(in crate::dialect) fn rewrite(select: &mut Select, state: &SessionState) {
    name_series(select, None);
    let mut is_first = true;
    for table in &mut select.from {
        rewrite_factor(&mut table.relation, is_first, state);
        for join in &mut table.joins {
            let may_be_lateral = !matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            );
            rewrite_factor(&mut join.relation, !may_be_lateral, state);
        }
        is_first = false;
    }
}

fn rewrite_factor(factor: &mut TableFactor, is_first: bool, state: &SessionState) {
    let rewritten = match factor {
        TableFactor::UNNEST { with_offset: false, .. }
        | TableFactor::Function { lateral: true, .. } => unnested(factor, is_first),
        TableFactor::Table { name, args: Some(args), alias, .. } if is_expanded_array(name) => {
            expanded_array(&args.args, alias.take(), is_first)
        }
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            called(name, &args.args, alias, *with_ordinality, state)
                .map(|rows| rows.derived(is_first))
        }
        TableFactor::Table { name, args: None, alias, .. } if is_session_value(name) => {
            let mut value = tree::call(&name.to_string(), vec![]);
            if let Expr::Function(function) = &mut value {
                function.args = FunctionArguments::None;
            }
            Some(Called::new(name, value, alias).derived(is_first))
        }
        TableFactor::Derived { lateral, .. } => {
            *lateral |= !is_first;
            None
        }
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *factor = rewritten;
    }
}

fn is_expanded_array(name: &ObjectName) -> bool {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|name| name.value.eq_ignore_ascii_case(EXPANDED_ARRAY))
}

/// The items of a list as `x`, and their numbers as `n`.
fn expanded_array(
    args: &[FunctionArg],
    alias: Option<TableAlias>,
    is_first: bool,
) -> Option<TableFactor> {
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = args else { return None };
    let mut numbers = numbers_of(vec![list.clone()]);
    if let SelectItem::ExprWithAlias { alias, .. } = &mut numbers {
        *alias = Ident::new("n");
    }
    let items = vec![tree::item(tree::call("unnest", vec![list.clone()]), "x"), numbers];
    let query = tree::query(SetExpr::Select(Box::new(tree::select(items, vec![]))));
    let alias = Some(alias.unwrap_or_else(|| tree::alias(EXPANDED_ARRAY, &[])));
    Some(TableFactor::Derived {
        lateral: !is_first,
        subquery: Box::new(query),
        alias,
        sample: None,
    })
}

/// A call in FROM as one column, and the numbers of its rows.
struct Called {
    function: String,
    value: Expr,
    numbers: Option<SelectItem>,
    alias: Option<TableAlias>,
}

impl Called {
    fn new(name: &ObjectName, value: Expr, alias: &mut Option<TableAlias>) -> Self {
        let function = name.to_string().to_lowercase();
        Self { function, value, numbers: None, alias: alias.take() }
    }

    fn numbered(self, numbers: Option<SelectItem>) -> Self {
        Self { numbers, ..self }
    }

    /// `LATERAL (SELECT value, numbers) AS alias`, whose first column has the name of the table if it has no other.
    fn derived(self, is_first: bool) -> TableFactor {
        let mut alias = self.alias.unwrap_or_else(|| tree::alias(&self.function, &[]));
        if alias.columns.is_empty() {
            alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
        }
        if alias.columns.len() == 1 && self.numbers.is_some() {
            alias.columns.extend(tree::alias("", &["ordinality"]).columns);
        }
        let mut items = vec![tree::item(self.value, &self.function)];
        items.extend(self.numbers);
        let query = tree::query(SetExpr::Select(Box::new(tree::select(items, vec![]))));
        let (subquery, alias) = (Box::new(query), Some(alias));
        TableFactor::Derived { lateral: !is_first, subquery, alias, sample: None }
    }
}

/// A call of a function over values or lists; `None` for DataFusion's table functions and others.
fn called(
    name: &ObjectName,
    args: &[FunctionArg],
    alias: &mut Option<TableAlias>,
    with_ordinality: bool,
    state: &SessionState,
) -> Option<Called> {
    let numbers = |list: &Expr| with_ordinality.then(|| numbers_of(vec![list.clone()]));
    if is_series(name) {
        if let Some(rows) = list_rows::decimals(name, args).filter(|_| !with_ordinality) {
            return Some(Called::new(name, rows, alias));
        }
        // DataFusion's function takes only constants.
        let is_constant =
            || !args.iter().any(|arg| walk(arg, &mut NotConstant { state }).is_break());
        let is_planned = || times::series(name, args).is_none() && !times::are_moments(args);
        if is_planned() && !with_ordinality && is_constant() {
            return None;
        }
        let list = list_rows::series(name, args);
        let numbers = numbers(&list);
        return Some(Called::new(name, tree::call("unnest", vec![list]), alias).numbered(numbers));
    }
    if let Some(known) = list_rows::named(name) {
        let list = known.list(args);
        let numbers = numbers(&list);
        return Some(Called::new(name, known.rows(list), alias).numbered(numbers));
    }
    let call = tree::call_of(&name.to_string(), args);
    if let Expr::Function(function) = &call
        && let Some(numbers) = catalog::subscripts(function).filter(|_| !with_ordinality)
    {
        return Some(Called::new(name, numbers, alias));
    }
    if !gives_value(name, state) {
        return None;
    }
    let one = Expr::Value(Value::Number("1".to_owned(), false).into());
    let number = with_ordinality.then(|| tree::item(one, "ordinality"));
    Some(Called::new(name, call, alias).numbered(number))
}

/// `unnest(…)`, of one or more lists.
fn unnested(factor: &mut TableFactor, is_first: bool) -> Option<TableFactor> {
    let (exprs, with_numbers, alias) = match factor {
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
            (array_exprs.clone(), *with_ordinality, alias.take())
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. } if is_unnest(name) => {
            let exprs = args.iter().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            (exprs.collect(), *with_ordinality, alias.take())
        }
        _ => return None,
    };
    let names_columns = exprs.iter().any(|expr| walk(expr, &mut Names).is_break());
    if !names_columns && !with_numbers {
        // DataFusion plans it, except for LATERAL, which means nothing here.
        return Some(TableFactor::UNNEST {
            alias,
            array_exprs: exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        });
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
    let subquery = Box::new(query);
    Some(TableFactor::Derived { lateral: !is_first, subquery, alias, sample: None })
}

/// Names the columns of series and lists in the FROM of a query, which its ORDER BY may name too.
pub(crate) fn name_columns(query: &mut Query) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        name_series(select, query.order_by.as_ref());
    }
}

/// Gives the column of a series, or of a list, the name of its table: `SELECT a FROM range(3) AS a`. Where the query
/// names the column `value`, it keeps that name, which it has in DataFusion.
///
/// The items of JSON lists have PostgreSQL's name `value`, unless the query names the column by the table.
fn name_series(select: &mut Select, order: Option<&OrderBy>) {
    factors(select).for_each(without_lateral);
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
        let Some((function, of, alias)) = unnamed(factor) else { continue };
        let own = match alias {
            Some(alias) => alias.name.clone(),
            None => Ident::new(&function),
        };
        if alias.is_none() && tables.contains(&own.value) {
            continue;
        }
        tables.push(own.value.clone());
        let is_own = || names(&own.value, &own.value);
        let is_value = || names(&own.value, "value");
        let columns = match of {
            Columns::Series if !is_own() && is_value() => tree::alias("", &["value"]).columns,
            Columns::Items if is_value() || !is_own() => tree::alias("", &["value"]).columns,
            Columns::Lists(lists @ 2..) => names_of_lists(lists),
            _ => vec![TableAliasColumnDef { name: own, data_type: None }],
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

/// Calls a function without LATERAL, which is implied for functions.
fn without_lateral(factor: &mut TableFactor) {
    let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = factor else {
        return;
    };
    if is_unnest(name) {
        return;
    }
    let args = TableFunctionArgs { args: std::mem::take(args), settings: None };
    let (with_numbers, alias_of) = (*with_ordinality, alias.take());
    *factor = tree::table(name.clone());
    if let TableFactor::Table { args: of, with_ordinality, alias, .. } = factor {
        (*of, *with_ordinality, *alias) = (Some(args), with_numbers, alias_of);
    }
}

/// The columns of a function in FROM whose columns have no names.
enum Columns {
    Series,
    /// Items of JSON.
    Items,
    /// One for each of this many lists.
    Lists(usize),
}

/// The name of a function in FROM whose columns have no names, these, and its alias.
fn unnamed(factor: &mut TableFactor) -> Option<(String, Columns, &mut Option<TableAlias>)> {
    let (name, columns, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, with_ordinality, .. } => {
            let gives_items = || list_rows::named(name).is_some_and(|known| known.gives_value);
            let columns = match is_series(name) && !*with_ordinality {
                true => Columns::Series,
                false if gives_items() => Columns::Items,
                false => return None,
            };
            (name.to_string().to_lowercase(), columns, alias)
        }
        TableFactor::UNNEST { alias, array_exprs, with_ordinality: false, .. }
            if !array_exprs.iter().any(|of| matches!(of, Expr::Dictionary(_))) =>
        {
            ("unnest".to_owned(), Columns::Lists(array_exprs.len()), alias)
        }
        TableFactor::Function { lateral: true, name, args, with_ordinality: false, alias }
            if is_unnest(name) =>
        {
            ("unnest".to_owned(), Columns::Lists(args.len()), alias)
        }
        _ => return None,
    };
    let is_named = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    (!is_named).then_some((name, columns, alias))
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

/// Stops at a column of this name, with or without its table.
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

/// Numbers next to the elements of lists, up to the end of the longest.
pub(in crate::dialect) fn numbers_of(lists: Vec<Expr>) -> SelectItem {
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

/// Whether a function returns one value, which is a table of one row in FROM.
fn gives_value(name: &ObjectName, state: &SessionState) -> bool {
    let name = name.to_string().to_lowercase();
    let is_of_rows = state.table_functions().contains_key(&name) || is_file_function(&name);
    Functions::for_session(state).has_scalar(&name) && !is_of_rows
}

/// Whether a name in FROM is reserved for a value of the session.
fn is_session_value(name: &ObjectName) -> bool {
    const NAMES: [&str; 10] = [
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
    ];
    let name = name.to_string();
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn is_unnest(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("unnest")
}

/// Stops at what the planner cannot compute: columns, parameters, queries, functions of arrays and those whose results
/// depend on the session.
struct NotConstant<'a> {
    state: &'a SessionState,
}

impl Visitor for NotConstant<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                let name = function.name.to_string().to_lowercase();
                let known = Functions::for_session(self.state).scalar(&name);
                let is_fixed =
                    known.is_none_or(|known| known.signature().volatility == Volatility::Immutable);
                match is_fixed && !name.starts_with("array_") {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            }
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
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
