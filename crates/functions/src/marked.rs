//! Fields of expressions, including the JSON and UUID marks that DataFusion loses.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::named_part::without_name;

/// Returns the field of an expression. For CASE, `coalesce`, `nullif` and a subquery, it is the field of a possible
/// value if that has a mark.
pub fn marked_field(expr: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    let marked =
        |value: &Expr| marked_field(value, schema).filter(|field| !field.metadata().is_empty());
    let of_value = match without_name(expr) {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
            results.chain(case.else_expr.as_deref()).find_map(marked)
        }
        Expr::ScalarFunction(call) if ["coalesce", "nullif"].contains(&call.func.name()) => {
            call.args.iter().find_map(marked)
        }
        Expr::ScalarSubquery(subquery) => subquery.subquery.schema().fields().first().cloned(),
        _ => None,
    };
    of_value.or_else(|| expr.to_field(schema).ok().map(|(_, field)| field))
}
