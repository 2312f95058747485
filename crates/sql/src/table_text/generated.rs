//! Generated columns: computed from the others whenever a row is written.
//!
//! ```text
//! b INT GENERATED ALWAYS AS (a * 2)      the default of b is "$generated"(a * 2)
//! ```
//!
//! Such a default has no value at first: without a given value the column is NULL until
//! [`WriteRules::complete`](crate::table::WriteRules::complete) computes it.

use atoll_sql_parse::syntax::walk_expressions;
use std::ops::ControlFlow;

use atoll_store::table::{IdentityKind, TableDefinition};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};

use atoll_sql_parse::dialect::call;
use atoll_sql_parse::syntax::parsed_expr;

/// The function that a generated column's default is a call of.
const GENERATED: &str = "$generated";

/// The words between GENERATED and AS IDENTITY.
pub(crate) fn identity_words(kind: IdentityKind) -> &'static str {
    match kind {
        IdentityKind::Always => "ALWAYS",
        IdentityKind::ByDefault | IdentityKind::Serial => "BY DEFAULT",
    }
}

/// The default of a generated column.
pub(crate) fn as_default(expr: Expr) -> Expr {
    let mut default = call(GENERATED, vec![expr]);
    if let Expr::Function(function) = &mut default {
        function.name = ObjectName::from(vec![Ident::with_quote('"', GENERATED)]);
    }
    default
}

/// The expression of a generated column's default; `None` for other defaults.
pub(crate) fn computed(default: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = default else { return None };
    let [name] = function.name.0.as_slice() else { return None };
    if name.as_ident()?.value != GENERATED {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
        _ => None,
    }
}

/// Whether the text of a default is that of a generated column.
pub(crate) fn is_generated(default: &str) -> bool {
    default.strip_prefix('"').is_some_and(|rest| rest.starts_with(GENERATED))
}

/// The expression of a generated column's default, as text; `None` for other defaults.
pub(crate) fn generated_sql(default: &str) -> Option<String> {
    let default = Some(default).filter(|default| is_generated(default))?;
    Some(computed(&parsed_expr(default).ok()?)?.to_string())
}

/// The generated columns of a table, and their expressions.
pub(crate) fn generated_columns(definition: &TableDefinition) -> Result<Vec<(usize, Expr)>> {
    let mut columns = Vec::new();
    for (at, default) in definition.defaults.iter().enumerate() {
        let Some(default) = default.as_deref().filter(|default| is_generated(default)) else {
            continue;
        };
        if let Some(expr) = computed(&parsed_expr(default)?) {
            columns.push((at, expr.clone()));
        }
    }
    for (at, expr) in &columns {
        for (other, _) in &columns {
            let name = definition.columns.field(*other).name();
            if reads(expr, name) {
                return plan_err!(
                    "generated column '{}' reads the generated column '{name}'; write the expression of that in its \
                     place",
                    definition.columns.field(*at).name()
                );
            }
        }
    }
    Ok(columns)
}

/// Numbers of the columns named in an expression's text.
pub(crate) fn columns_named(sql: &str, columns: &Schema) -> Vec<usize> {
    let Ok(expr) = parsed_expr(sql) else { return Vec::new() };
    let fields = columns.fields().iter().enumerate();
    fields.filter(|(_, field)| reads(&expr, field.name())).map(|(at, _)| at).collect()
}

/// Whether an expression names a column.
pub(crate) fn reads(expr: &Expr, column: &str) -> bool {
    let is_it = |name: &Ident| match name.quote_style {
        Some(_) => name.value == column,
        None => name.value.to_lowercase() == column,
    };
    let visited = walk_expressions(expr, &mut |expr| {
        let named = match expr {
            Expr::Identifier(name) => is_it(name),
            Expr::CompoundIdentifier(parts) => parts.last().is_some_and(is_it),
            _ => false,
        };
        if named { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    visited.is_break()
}
