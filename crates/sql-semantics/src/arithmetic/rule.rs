//! The rule that replaces operations that wrap around or truncate by operations that fail.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, ScalarUDF, ScalarUDFImpl};
use datafusion::optimizer::AnalyzerRule;

use super::bounds::{may_overflow, type_of};
use super::cast::CheckedCast;
use super::float_text::float_of_literal;
use super::guard::{guard, guard_filter, order_filters};
use super::intervals::{by_length, compared};
use super::operation::{Arithmetic, Operation};
use super::text_input::is_bytes;
use crate::enums;
use crate::timezone::local_time;
use atoll_functions::temporal::is_temporal;
use atoll_sql_common::logical::{BottomUp, map_named};
use atoll_sql_common::user_type::UserTypes;

/// Replaces arithmetic and casts.
///
/// It runs twice. First after type coercion, before DataFusion folds constants and simplifies
/// comparisons, so that DataFusion evaluates these functions itself. And last among the
/// logical rules, for arithmetic that other rules added.
#[derive(Debug, Default)]
pub struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let pass = Pass::First(UserTypes::in_options(options));
        plan.transform_up_with_subqueries(|plan| rewrite(plan, pass)).map(|plan| plan.data)
    }
}

impl CheckedArithmetic {
    /// Returns the rule as it runs in the optimizer.
    pub fn last() -> BottomUp {
        BottomUp { name: "checked_arithmetic", rewrite: |plan, _| rewrite(plan, Pass::Last) }
    }
}

/// When the rule runs.
#[derive(Clone, Copy)]
enum Pass<'a> {
    /// After type coercion; with the types that users created.
    First(Option<&'a UserTypes>),
    /// During optimization. Casts that appear in between are casts that a query requested as
    /// Arrow's (`arrow_cast`).
    Last,
}

impl Pass<'_> {
    fn is_first(self) -> bool {
        matches!(self, Self::First(_))
    }
}

/// Replaces a node's expressions.
fn rewrite(plan: LogicalPlan, pass: Pass<'_>) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        let source = scan.source.schema();
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &source)?);
    }
    let filters = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let plan = match pass {
        Pass::First(_) => plan,
        Pass::Last => order_filters(plan, &schema),
    };
    let checked = map_named(plan, |expr| {
        let replaced = expr.transform_up(|expr| replace(expr, &schema, pass))?;
        replaced.transform_data(|expr| match pass {
            Pass::First(_) => Ok(Transformed::no(expr)),
            Pass::Last if filters => guard_filter(expr, &schema),
            Pass::Last => guard(expr, &schema),
        })
    })?;
    checked.transform_data(|plan| match (plan, pass) {
        (plan, Pass::First(_)) => by_length(plan),
        (LogicalPlan::Join(join), Pass::Last) => {
            Ok(with_named_keys(join).update_data(LogicalPlan::Join))
        }
        (plan, Pass::Last) => Ok(Transformed::no(plan)),
    })
}

/// Moves computed join keys into projections under names of their own. There they are columns next to those of
/// the input, and a checked cast has the name of its operand, like DataFusion's casts, which alone
/// are renamed there.
fn with_named_keys(mut join: Join) -> Transformed<Join> {
    let mut named = false;
    for (left, right) in &mut join.on {
        for key in [left, right] {
            if matches!(key, Expr::ScalarFunction(_)) {
                let name = key.to_string();
                *key = std::mem::take(key).alias(name);
                named = true;
            }
        }
    }
    if named { Transformed::yes(join) } else { Transformed::no(join) }
}

fn replace(expr: Expr, schema: &DFSchema, pass: Pass<'_>) -> Result<Transformed<Expr>> {
    Ok(match replacement(&expr, schema, pass)? {
        Some(replacement) => Transformed::yes(replacement),
        None => Transformed::no(expr),
    })
}

fn replacement(expr: &Expr, schema: &DFSchema, pass: Pass<'_>) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let Some(operation) = Operation::from_operator(*op) else {
                return if pass.is_first() { compared(expr, schema) } else { Ok(None) };
            };
            let types = (type_of(left, schema)?, type_of(right, schema)?);
            if !is_covered(operation, &types.0, &types.1) {
                return Ok(None);
            }
            let result = BinaryTypeCoercer::new(&types.0, op, &types.1).get_result_type()?;
            let function = Arithmetic::new(operation, result.clone());
            // All rules in between would recurse deeply into chains of constants.
            match function.constant(left, right) {
                Some(constant) => Some(constant),
                None if is_safe(operation, expr, &result, schema) => None,
                None => Some(call(function, vec![left.as_ref().clone(), right.as_ref().clone()])),
            }
        }
        Expr::Negative(value) => {
            let data_type = type_of(value, schema)?;
            let negated = data_type.is_signed_integer();
            (negated && may_overflow(expr, &data_type, schema)).then(|| {
                let function = Arithmetic::new(Operation::Negate, data_type);
                call(function, vec![value.as_ref().clone()])
            })
        }
        other => match pass {
            Pass::First(types) => first(other, schema, types)?,
            Pass::Last => None,
        },
    })
}

/// Replaces an expression of other kinds than operators, after type coercion.
fn first(expr: &Expr, schema: &DFSchema, types: Option<&UserTypes>) -> Result<Option<Expr>> {
    let cast = |value: &Expr, field: &FieldRef, is_try| {
        if let Some(array) = enums::cast_to_array(value, field, is_try, types)? {
            return Ok(Some(array));
        }
        let (from, to) = (type_of(value, schema)?, field.data_type());
        let of_enum = enums::cast(value, &from, to, is_try, types)?;
        Ok(of_enum.or_else(|| cast(value, &from, to, is_try)))
    };
    match expr {
        Expr::Cast(Cast { expr, field }) => cast(expr, field, false),
        Expr::TryCast(TryCast { expr, field }) => cast(expr, field, true),
        Expr::ScalarFunction(joined) if joined.func.name() == "array_to_string" => {
            with_texts(joined, schema)
        }
        Expr::ScalarFunction(call) => match enums::with_labels(call, schema, types)? {
            Some(call) => Ok(Some(call)),
            None => compared(expr, schema),
        },
        other => compared(other, schema),
    }
}

/// Joins a list of dates, times, intervals or bytes as texts; None for other lists.
fn with_texts(joined: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(list) = joined.args.first() else { return Ok(None) };
    let from = type_of(list, schema)?;
    let to = DataType::new_list(DataType::Utf8, true);
    let is_known = matches!(&from, DataType::List(item) if is_temporal(item.data_type()) || is_bytes(item.data_type()));
    let texts = CheckedCast::new(&from, &to, false).filter(|_| is_known);
    Ok(texts.map(|texts| {
        let mut args = joined.args.clone();
        args[0] = call(texts, vec![list.clone()]);
        Expr::ScalarFunction(ScalarFunction { func: Arc::clone(&joined.func), args })
    }))
}

fn cast(value: &Expr, from: &DataType, to: &DataType, is_try: bool) -> Option<Expr> {
    local_time(value, from, to).or_else(|| float_of_literal(value, to)).or_else(|| {
        CheckedCast::new(from, to, is_try)
            .or_else(|| CheckedCast::of_constant(value, from, to))
            .map(|cast| call(cast, vec![value.clone()]))
    })
}

/// Whether DataFusion's operation on these operands may wrap around, truncate, or fail without naming
/// the values.
fn is_covered(operation: Operation, left: &DataType, right: &DataType) -> bool {
    use DataType::{Date32, Duration, Interval, Timestamp};
    let sum = matches!(operation, Operation::Add | Operation::Subtract);
    match (left, right) {
        (left, right) if left.is_integer() && right.is_integer() => left == right,
        (left, right) if left.is_decimal() && right.is_decimal() => true,
        (Date32 | Timestamp(..) | Duration(_) | Interval(_), Interval(_) | Duration(_)) => sum,
        (Interval(_) | Duration(_), Date32 | Timestamp(..)) => operation == Operation::Add,
        (Timestamp(..), Timestamp(..)) | (Date32, Date32) => operation == Operation::Subtract,
        _ => false,
    }
}

/// Whether the integer types exclude an overflow, so that DataFusion's own expression can stay,
/// about which its rules know more.
fn is_safe(operation: Operation, expr: &Expr, result: &DataType, schema: &DFSchema) -> bool {
    let wraps = matches!(operation, Operation::Add | Operation::Subtract | Operation::Multiply);
    wraps && !may_overflow(expr, result, schema)
}

fn call(function: impl ScalarUDFImpl + 'static, arguments: Vec<Expr>) -> Expr {
    let function = Arc::new(ScalarUDF::from(function));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))
}
