//! Casts of texts to bytes and lists that a statement asks for, as PostgreSQL reads them: `'\x00ff'::BYTEA` is two bytes,
//! `'{1,2}'::INT[]` two numbers.
//!
//! The casts that the coercion of types adds, where a function takes bytes and gets a text, are of the bytes that the
//! text has: `md5('\x')`. A text that does not begin with a brace is the one element of a list.

use std::sync::Arc;

use atoll_functions::{bytes_of_text, sql_name};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, ListBuilder, StringArray, StringBuilder,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::dialect::array_items;
use crate::error::SqlState;

/// Replaces these casts; before the types are settled.
#[derive(Debug, Default)]
pub(crate) struct TextInput;

impl AnalyzerRule for TextInput {
    fn name(&self) -> &str {
        "text_input"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let (schema, names) = (merge_schema(&plan.inputs()), NamePreserver::new(&plan));
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|expr| {
                    let (value, to, is_try) = match &expr {
                        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
                        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
                        _ => return Ok(Transformed::no(expr)),
                    };
                    let is_text = || value.get_type(&schema).is_ok_and(|from| from.is_string());
                    if !(to.is_binary() || is_list(to)) || !is_text() {
                        return Ok(Transformed::no(expr));
                    }
                    let function = ScalarUDF::from(TextCast::new(to, is_try));
                    let call = ScalarFunction::new_udf(Arc::new(function), vec![*value.clone()]);
                    Ok(Transformed::yes(Expr::ScalarFunction(call)))
                })?;
                Ok(match replaced.transformed {
                    true => replaced.update_data(|expr| name.restore(expr)),
                    false => replaced,
                })
            })
        })
        .data()
    }
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextCast {
    to: DataType,
    /// Whether what cannot be read becomes null.
    is_try: bool,
    signature: Signature,
}

impl TextCast {
    fn new(to: &DataType, is_try: bool) -> Self {
        Self { to: to.clone(), is_try, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn read(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::Utf8)?;
        match self.to.is_binary() {
            true => self.bytes(texts.as_string()),
            false => self.lists(texts.as_string()),
        }
    }

    fn bytes(&self, texts: &StringArray) -> Result<ArrayRef> {
        let mut bytes = BinaryBuilder::with_capacity(texts.len(), texts.value_data().len());
        for text in texts {
            match text.map(bytes_of_text).transpose() {
                Ok(value) => bytes.append_option(value),
                Err(_) if self.is_try => bytes.append_null(),
                Err(why) => return self.refused(text, &why),
            }
        }
        let bytes: ArrayRef = Arc::new(bytes.finish());
        Ok(cast(&bytes, &self.to)?)
    }

    fn lists(&self, texts: &StringArray) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for text in texts {
            let is_literal = text.is_some_and(|text| text.trim_start().starts_with('{'));
            match text {
                None => lists.append_null(),
                Some(text) if is_literal => match array_items(text) {
                    Some(items) => {
                        items.into_iter().for_each(|item| lists.values().append_option(item));
                        lists.append(true);
                    }
                    None if self.is_try => lists.append_null(),
                    None => return self.refused(Some(text), "braces within braces, or no list"),
                },
                Some(text) => {
                    lists.values().append_value(text);
                    lists.append(true);
                }
            }
        }
        let options = CastOptions { safe: self.is_try, ..CastOptions::default() };
        Ok(cast_with_options(&lists.finish(), &self.to, &options)?)
    }

    fn refused<T>(&self, text: Option<&str>, why: &str) -> Result<T> {
        let (text, to) = (text.unwrap_or_default(), sql_name(&self.to));
        let message = format!("cannot cast '{text}' to {to}: {why}");
        Err(SqlState::INVALID_TEXT_REPRESENTATION.error(message))
    }
}

impl ScalarUDFImpl for TextCast {
    fn name(&self) -> &str {
        "text_input"
    }

    /// Casts do not show in the names of columns.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value] => Ok(value.schema_name().to_string()),
            _ => internal_err!("a cast of {} values", arguments.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.is_try || arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(texts)] => ColumnarValue::Array(self.read(texts)?),
            [ColumnarValue::Scalar(text)] => {
                let read = self.read(&text.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&read, 0)?)
            }
            other => return internal_err!("a cast of {} values", other.len()),
        })
    }
}
