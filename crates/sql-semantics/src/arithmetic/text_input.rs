//! Explicit casts of texts to bytes, lists, structs and maps: `'\x00ff'::BYTEA` is two bytes, as in
//! PostgreSQL, and `'{1,2}'::INT[]` is two numbers, like `'[1, 2]'::INT[]`.
//!
//! In the other direction, `'\x00ff'::BYTEA::VARCHAR` is a text of hexadecimal digits, as in PostgreSQL.
//!
//! Casts added by type coercion, where a function takes bytes and gets a text, return the text's own
//! bytes: `md5('\x')`.

use std::sync::Arc;

use atoll_functions::temporal::StatementClock;
use atoll_functions::{bytes_of_text, sql_name};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use super::cast::{CheckedCast, is_text};
use super::nested_input::nested_values;
use super::nested_text::is_nested;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::logical::map_named;
use atoll_sql_common::pg_type::array_of_enum;
use atoll_sql_common::user_type::enum_within;

/// Replaces these casts before type coercion.
#[derive(Debug, Default)]
pub struct TextInput;

impl AnalyzerRule for TextInput {
    fn name(&self) -> &str {
        "text_input"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            map_named(plan, |expr| {
                expr.transform_up(|expr| {
                    let (value, field, is_try) = match &expr {
                        Expr::Cast(cast) => (&cast.expr, &cast.field, false),
                        Expr::TryCast(cast) => (&cast.expr, &cast.field, true),
                        _ => return Ok(Transformed::no(expr)),
                    };
                    let to = field.data_type();
                    let is_own = |from: DataType| match to.is_string() {
                        true => is_bytes(&from),
                        false => is_text(&from),
                    };
                    let may_be_own = to.is_string() || to.is_binary() || is_nested(to);
                    let is_enum = enum_within(to).is_some();
                    if is_enum || !may_be_own || !value.get_type(&schema).is_ok_and(is_own) {
                        return Ok(Transformed::no(expr));
                    }
                    let function = ScalarUDF::from(CheckedCast::of_text(to, is_try));
                    let call = ScalarFunction::new_udf(Arc::new(function), vec![*value.clone()]);
                    Ok(Transformed::yes(checked(Expr::ScalarFunction(call), field, is_try)))
                })
            })
        })
        .data()
    }
}

/// A value that was read from a text; the cast of an array of an ENUM then checks the labels.
fn checked(value: Expr, field: &FieldRef, is_try: bool) -> Expr {
    match (array_of_enum(field), is_try) {
        (None, _) => value,
        (Some(_), false) => Expr::Cast(Cast::new_from_field(Box::new(value), Arc::clone(field))),
        (Some(_), true) => {
            Expr::TryCast(TryCast { expr: Box::new(value), field: Arc::clone(field) })
        }
    }
}

/// Whether values are bytes, which become hexadecimal digits as text.
pub(super) fn is_bytes(data_type: &DataType) -> bool {
    data_type.is_binary() || matches!(data_type, DataType::FixedSizeBinary(_))
}

/// Parses texts as bytes or nested values; with `is_try`, invalid texts become NULL.
pub(super) fn read_texts(
    texts: &ArrayRef,
    to: &DataType,
    is_try: bool,
    clock: StatementClock<'_>,
) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    match to.is_binary() {
        true => bytes(texts.as_string(), to, is_try),
        false => nested_values(texts.as_string(), to, is_try, clock),
    }
}

fn bytes(texts: &StringArray, to: &DataType, is_try: bool) -> Result<ArrayRef> {
    let mut bytes = BinaryBuilder::with_capacity(texts.len(), texts.value_data().len());
    for text in texts {
        match (text, text.map(bytes_of_text).transpose()) {
            (_, Ok(value)) => bytes.append_option(value),
            (_, Err(_)) if is_try => bytes.append_null(),
            (text, Err(why)) => {
                let (text, to) = (text.unwrap_or_default(), sql_name(to));
                let message = format!("cannot cast '{text}' to {to}: {why}");
                return Err(SqlState::INVALID_TEXT_REPRESENTATION.error(message));
            }
        }
    }
    let bytes: ArrayRef = Arc::new(bytes.finish());
    Ok(cast(&bytes, to)?)
}
