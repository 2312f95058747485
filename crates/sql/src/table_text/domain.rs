//! The CHECK constraint of a column of a domain: `domain_valid(a, 16777216)`, with the OID of the domain.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use atoll_sql_parse::syntax::parsed_expr;

/// The function in the constraint. It is never called: it stands for the constraints that the domain has when rows are
/// written.
pub(crate) const DOMAIN_VALID: &str = "domain_valid";

/// Returns the column and the OID of the domain in a call of the function; `None` for other expressions.
pub(crate) fn domain_call(expr: &Expr) -> Option<(&Expr, u32)> {
    let Expr::Function(call) = expr else { return None };
    if call.name.to_string() != DOMAIN_VALID {
        return None;
    }
    match arguments(call)[..] {
        [column, Expr::Value(oid)] => match &oid.value {
            Value::Number(oid, _) => Some((column, oid.to_string().parse().ok()?)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the name of the column and the OID of its domain in a CHECK constraint; `None` for other constraints.
pub(crate) fn checked_domain(sql: &str) -> Option<(String, u32)> {
    if !sql.starts_with(DOMAIN_VALID) {
        return None;
    }
    match domain_call(&parsed_expr(sql).ok()?)? {
        (Expr::Identifier(column), oid) => Some(match column.quote_style {
            Some(_) => (column.value.clone(), oid),
            None => (column.value.to_lowercase(), oid),
        }),
        _ => None,
    }
}

/// Whether a CHECK constraint belongs to the type of its column, and has no name for users.
pub(crate) fn belongs_to_type(check: &Expr) -> bool {
    let Expr::Function(call) = check else { return false };
    [DOMAIN_VALID, "varchar_valid", "char_valid"].contains(&call.name.to_string().as_str())
}

fn arguments(call: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &call.args else { return Vec::new() };
    let value = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref value)) => Some(value),
        _ => None,
    };
    list.args.iter().filter_map(value).collect()
}
