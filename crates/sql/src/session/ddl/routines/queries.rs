//! Arguments of calls, and the queries that stand for them.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, LimitClause, ObjectName, Query, SelectItem, SetExpr,
    Statement as Ast, TableFactor, Value, Visit, VisitMut, VisitorMut,
};

use crate::session::plan::steps::is_volatile;
use crate::session::statement::parsed_statement::parse;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::dialect::folded;
use atoll_sql_parse::parse::Routine;
use atoll_sql_parse::syntax::{walk_expressions, walk_mut, walk_relations};

/// The arguments of a call in the order of the parameters, with defaults.
pub(in crate::session) fn arguments_of(
    state: &SessionState,
    routine: &Routine,
    args: &[FunctionArg],
) -> Result<Vec<Expr>> {
    let own = routine.own_name();
    let inputs: Vec<_> = routine.inputs().collect();
    let wrong = |why: String| {
        SqlState::UNDEFINED_FUNCTION.error(format!("{} {own}() {why}", routine.kind()))
    };
    let mut values: Vec<Option<Expr>> = vec![None; inputs.len()];
    for (at, arg) in args.iter().enumerate() {
        let (at, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                let name = Some(folded(name));
                (inputs.iter().position(|input| input.name == name), value)
            }
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => match arg {
                FunctionArgExpr::Expr(value) => {
                    let name = Some(folded(name));
                    (inputs.iter().position(|input| input.name == name), value)
                }
                _ => return Err(wrong(format!("takes values, not {arg}"))),
            },
            other => return Err(wrong(format!("takes values, not {other}"))),
        };
        match at.and_then(|at| values.get_mut(at)) {
            Some(place) => *place = Some(value.clone()),
            None => {
                return Err(wrong(format!("has no parameter for {arg}; it has {}", inputs.len())));
            }
        }
    }
    let mut given = Vec::with_capacity(inputs.len());
    for (at, (input, value)) in inputs.iter().zip(values).enumerate() {
        given.push(match (value, &input.default) {
            (Some(value), _) => value,
            (None, Some(default)) => template(state, default)?,
            (None, None) => {
                let name = input.name.clone().unwrap_or_else(|| format!("${}", at + 1));
                return Err(wrong(format!("needs a value of its parameter {name}")));
            }
        });
    }
    Ok(given)
}

/// An expression as the dialect reads it.
pub(in crate::session) fn template(state: &SessionState, text: &str) -> Result<Expr> {
    let query = parsed_query(state, &format!("SELECT {text}"))?;
    match only_expr(&query) {
        Some(expr) => Ok(expr),
        None => stated_err!(SYNTAX_ERROR, "'{text}' is not an expression"),
    }
}

pub(super) fn parsed_query(state: &SessionState, sql: &str) -> Result<Box<Query>> {
    if let Parsed::Statement(ast) = parse(sql, state)?.statement
        && let Ast::Query(query) = *ast
    {
        return Ok(query);
    }
    stated_err!(SYNTAX_ERROR, "'{sql}' is not a query")
}

pub(super) fn parsed_with(
    state: &SessionState,
    sql: &str,
    name: &str,
    value: Expr,
) -> Result<Box<Query>> {
    let mut query = parsed_query(state, sql)?;
    replace_named(query.as_mut(), name, &value);
    Ok(query)
}

/// The expression of a query that is nothing else.
pub(super) fn only_expr(query: &Query) -> Option<Expr> {
    let Query { with: None, order_by: None, limit_clause: None, fetch: None, .. } = query else {
        return None;
    };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_plain = select.from.is_empty()
        && select.selection.is_none()
        && select.having.is_none()
        && select.distinct.is_none()
        && select.qualify.is_none()
        && select.lateral_views.is_empty()
        && matches!(&select.group_by, datafusion::sql::sqlparser::ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] if is_plain => {
            Some(Expr::Nested(Box::new(expr.clone())))
        }
        _ => None,
    }
}

/// The query with its first row alone.
pub(super) fn first_row(mut query: Query) -> Query {
    let is_one = match query.body.as_ref() {
        SetExpr::Select(select) => select.from.is_empty() && query.order_by.is_none(),
        _ => false,
    };
    if query.limit_clause.is_none() && query.fetch.is_none() && !is_one {
        let one = Expr::value(Value::Number("1".to_owned(), false));
        let limit = LimitClause::LimitOffset { limit: Some(one), offset: None, limit_by: vec![] };
        query.limit_clause = Some(limit);
    }
    query
}

/// Puts a query in the place of the relation `$rows`.
pub(super) fn put_rows(outer: &mut Query, inner: Box<Query>) {
    struct Put(Option<Box<Query>>);
    impl VisitorMut for Put {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            if let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor
                && alias.name.value == "$rows"
                && let Some(inner) = self.0.take()
            {
                *subquery = inner;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    let _ = walk_mut(outer, &mut Put(Some(inner)));
}

pub(super) fn with_value(template: Expr, value: Expr) -> Expr {
    with_named(template, "$value", value)
}

pub(super) fn with_named(mut template: Expr, name: &str, value: Expr) -> Expr {
    replace_named(&mut template, name, &value);
    template
}

/// Puts an expression in the place of a name.
pub(in crate::session) fn replace_named(part: &mut impl VisitMut, name: &str, value: &Expr) {
    struct Replace<'a>(&'a str, &'a Expr);
    impl VisitorMut for Replace<'_> {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if matches!(expr, Expr::Identifier(name) if name.value == self.0) {
                *expr = Expr::Nested(Box::new(self.1.clone()));
            }
            ControlFlow::Continue(())
        }
    }
    let _ = walk_mut(part, &mut Replace(name, value));
}

/// Whether one of these is NULL.
pub(super) fn any_null(values: &[Expr]) -> Expr {
    let nulls = values.iter().map(|value| Expr::IsNull(Box::new(value.clone())));
    let or = |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: datafusion::sql::sqlparser::ast::BinaryOperator::Or,
        right: Box::new(right),
    };
    let any = nulls.reduce(or).unwrap_or_else(|| Expr::value(Value::Boolean(false)));
    Expr::Nested(Box::new(any))
}

/// Whether an argument names columns.
pub(in crate::session) fn names_columns(arg: &FunctionArg) -> bool {
    let (FunctionArg::Unnamed(arg)
    | FunctionArg::Named { arg, .. }
    | FunctionArg::ExprNamed { arg, .. }) = arg;
    match arg {
        FunctionArgExpr::Expr(expr) => !column_names(expr).is_empty(),
        _ => true,
    }
}

/// The names in an expression outside of queries in it.
pub(super) fn column_names(expr: &impl Visit) -> Vec<Vec<Ident>> {
    let mut found = Vec::new();
    let _: ControlFlow<()> = atoll_sql_parse::syntax::walk_own_expressions(expr, &mut |expr| {
        match expr {
            Expr::Identifier(name) => found.push(vec![name.clone()]),
            Expr::CompoundIdentifier(names) => found.push(names.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

/// Whether a query calls a function with a name.
pub(in crate::session) fn calls(query: &Query, own: &str) -> bool {
    let is_it = |name: &ObjectName| {
        name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| folded(name) == own)
    };
    let in_expr = walk_expressions(query, &mut |expr| match expr {
        Expr::Function(function) if is_it(&function.name) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let in_from = walk_relations(query, &mut |name| match is_it(name) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    in_expr.is_break() || in_from.is_break()
}

pub(super) fn calls_volatile(state: &SessionState, expr: &Expr) -> bool {
    walk_expressions(expr, &mut |expr| match expr {
        Expr::Function(function)
            if is_volatile(state, &function.name.to_string().to_lowercase()) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}
