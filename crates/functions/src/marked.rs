//! Fields of expressions, including the JSON and UUID marks that DataFusion loses.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::named_part::without_name;
use crate::scalar::{UUID_MARK, item_mark, list_mark};

/// Returns the field of an expression. For CASE, `coalesce` and similar functions, and a subquery, it is the field of a
/// possible value if that has a mark.
pub fn marked_field(expr: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    let marked =
        |value: &Expr| marked_field(value, schema).filter(|field| !field.metadata().is_empty());
    let of_value = match without_name(expr) {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
            results.chain(case.else_expr.as_deref()).find_map(marked)
        }
        Expr::ScalarFunction(call) => of_call(call, marked),
        Expr::ScalarSubquery(subquery) => subquery.subquery.schema().fields().first().cloned(),
        _ => None,
    };
    of_value.or_else(|| expr.to_field(schema).ok().map(|(_, field)| field))
}

/// Returns the values that an expression may have, if it is a choice among them.
pub fn possible_values(expr: &Expr) -> Vec<&Expr> {
    match without_name(expr) {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
            results.chain(case.else_expr.as_deref()).collect()
        }
        Expr::ScalarFunction(call) if is_choice(call.func.name()) => call.args.iter().collect(),
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            call.args.iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a function returns one of its arguments.
fn is_choice(name: &str) -> bool {
    ["coalesce", "nullif", "greatest", "least", "ifnull", "nvl"].contains(&name)
}

/// The marked field of the result of a function of DataFusion.
fn of_call(call: &ScalarFunction, marked: impl Fn(&Expr) -> Option<FieldRef>) -> Option<FieldRef> {
    let given = || call.args.iter().find_map(&marked);
    match call.func.name() {
        name if is_choice(name) => given(),
        "uuid" if call.args.is_empty() => {
            let field = Field::new("uuid", call.func.return_type(&[]).ok()?, false);
            Some(with_mark(field, UUID_MARK))
        }
        "make_array" => {
            let item = given().filter(|item| !item.data_type().is_nested())?;
            let list = Field::new_list("make_array", item.clone(), true);
            list_mark(&item).map(|(key, mark)| with_mark(list, (key, &mark)))
        }
        "array_element" => {
            let list = marked(call.args.first()?)?;
            let item = Field::new("array_element", item_type(&list)?, true);
            item_mark(&list).map(|mark| with_mark(item, mark))
        }
        "array_append" | "array_concat" | "array_distinct" | "array_except" | "array_intersect"
        | "array_prepend" | "array_remove" | "array_remove_all" | "array_remove_n"
        | "array_replace" | "array_replace_all" | "array_replace_n" | "array_resize"
        | "array_reverse" | "array_slice" | "array_sort" | "array_union" => {
            call.args.iter().filter_map(marked).find(|field| field.data_type().is_nested())
        }
        _ => None,
    }
}

fn item_type(list: &Field) -> Option<datafusion::arrow::datatypes::DataType> {
    use datafusion::arrow::datatypes::DataType::{FixedSizeList, LargeList, List};
    match list.data_type() {
        List(item) | LargeList(item) | FixedSizeList(item, _) => Some(item.data_type().clone()),
        _ => None,
    }
}

fn with_mark(field: Field, (key, mark): (&str, &str)) -> FieldRef {
    Arc::new(field.with_metadata([(key.to_owned(), mark.to_owned())].into()))
}
