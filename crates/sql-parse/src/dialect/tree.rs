//! Pieces of syntax trees.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, ObjectName, OrderBy, OrderByExpr,
    OrderByKind, OrderByOptions, Parens, Query, Select, SelectFlavor, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value, Values,
};

/// A name, taken verbatim.
pub fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// A query that is only a body.
pub fn query(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}

/// `VALUES (…), (…)`
pub(super) fn values(rows: Vec<Vec<Expr>>) -> Query {
    let rows = rows.into_iter().map(Parens::with_empty_span).collect();
    query(SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows }))
}

/// `SELECT projection FROM from`
pub(super) fn select(projection: Vec<SelectItem>, from: Vec<TableWithJoins>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: vec![],
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: vec![],
        prewhere: None,
        selection: None,
        connect_by: vec![],
        group_by: GroupByExpr::Expressions(vec![], vec![]),
        cluster_by: vec![],
        distribute_by: vec![],
        sort_by: vec![],
        having: None,
        named_window: vec![],
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// `SELECT * FROM factor`
pub(super) fn all_of(factor: TableFactor) -> Select {
    select(vec![SelectItem::Wildcard(Default::default())], vec![alone(factor)])
}

pub(super) fn alone(relation: TableFactor) -> TableWithJoins {
    TableWithJoins { relation, joins: vec![] }
}

/// `table`
pub(super) fn table(name: ObjectName) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}

/// `(query) AS alias`
pub(super) fn derived(subquery: Query, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(subquery), alias, sample: None }
}

/// A relation of queries that [`Relations`](super::Relations) plans.
pub(super) fn relation_of(name: &str, queries: Vec<Query>) -> TableFactor {
    let args = queries.into_iter().map(|query| argument(Expr::Subquery(Box::new(query))));
    TableFactor::Function {
        lateral: false,
        name: Ident::new(name).into(),
        args: args.collect(),
        with_ordinality: false,
        alias: None,
    }
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// A call of a function.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.into_iter().map(argument).collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// A call of a function with these argument nodes.
pub(super) fn call_of(name: &str, args: &[FunctionArg]) -> Expr {
    let mut call = call(name, vec![]);
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args = args.to_vec();
    }
    call
}

/// Whether an expression is NULL.
pub fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// Whether an expression is a parameter.
pub fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        Expr::Nested(inner) => is_parameter(inner),
        _ => false,
    }
}

/// `*`
pub(super) fn everything() -> Vec<SelectItem> {
    vec![SelectItem::Wildcard(Default::default())]
}

/// `expr AS name`
pub(super) fn item(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(name) }
}

/// `AS name (columns)`
pub(super) fn alias(name: &str, columns: &[&str]) -> TableAlias {
    let columns =
        columns.iter().map(|column| TableAliasColumnDef { name: quoted(column), data_type: None });
    TableAlias { explicit: true, name: quoted(name), columns: columns.collect(), at: None }
}

/// A token without a position.
pub fn no_token() -> AttachedToken {
    AttachedToken::empty()
}

/// A literal.
pub(super) fn text(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

pub(super) fn order_by(expr: Expr) -> OrderBy {
    let options = OrderByOptions { asc: None, nulls_first: None };
    let kind = OrderByKind::Expressions(vec![OrderByExpr { expr, options, with_fill: None }]);
    OrderBy { kind, interpolate: None }
}

/// An operator between two expressions.
pub fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(super) fn and(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::And, right)
}

pub(super) fn equal(left: Expr, right: Expr) -> Expr {
    binary(Expr::Nested(Box::new(left)), BinaryOperator::Eq, right)
}

/// `expr::data_type`
pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// `count(*)`
pub(super) fn count_all() -> Expr {
    let mut call = call("count", vec![]);
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    }
    call
}

/// `SELECT value`
pub fn query_of(value: Expr) -> Query {
    query(SetExpr::Select(Box::new(select(vec![item(value, "value")], vec![]))))
}
