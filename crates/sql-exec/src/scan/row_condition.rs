//! Expressions of DataFusion in the forms that the store checks and computes itself: the conditions and keys of indexes.

use std::sync::Arc;

use atoll_store::table::{ComparisonOperator, KeyFunction, RowCodec, RowCondition, TextFunction};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, IsNotNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::condition::{ColumnCondition, ConditionKind, column_of};
use atoll_sql_common::error::table_error;

/// The condition that an expression over the rows of a table is; `None` if the store does not check such ones.
pub fn row_condition(
    codec: &RowCodec,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<Option<RowCondition>> {
    if let Some(either) = expr.downcast_ref::<BinaryExpr>()
        && matches!(either.op(), Operator::And | Operator::Or)
    {
        let sides = (row_condition(codec, either.left())?, row_condition(codec, either.right())?);
        let (Some(left), Some(right)) = sides else { return Ok(None) };
        return Ok(Some(joined(*either.op(), left, right)));
    }
    if let Some(is) = expr.downcast_ref::<BinaryExpr>()
        && matches!(is.op(), Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
    {
        let (column, value) = (column_of(is.left()), is.right().downcast_ref::<Literal>());
        let Some((column, value)) = column.zip(value.map(Literal::value)) else { return Ok(None) };
        // `active IS TRUE` is never unknown.
        let has_value = RowCondition::Not(Box::new(RowCondition::IsNull(column)));
        let same = compared(codec, column, Operator::Eq, value)?
            .map(|equal| RowCondition::And(vec![has_value, equal]));
        let is_same = *is.op() == Operator::IsNotDistinctFrom;
        return Ok(if is_same { same } else { same.map(negated) });
    }
    if let Some(constant) = expr.downcast_ref::<Literal>() {
        return Ok(match constant.value() {
            ScalarValue::Boolean(Some(true)) => Some(RowCondition::And(Vec::new())),
            ScalarValue::Boolean(Some(false)) => Some(RowCondition::Or(Vec::new())),
            _ => None,
        });
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return Ok(row_condition(codec, not.arg())?.map(negated));
    }
    if let Some(column) = expr.downcast_ref::<Column>() {
        return compared(codec, column.index(), Operator::Eq, &ScalarValue::from(true));
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        return Ok(like_condition(codec, like));
    }
    if let Some(condition) = columns_compared(codec, expr) {
        return Ok(Some(condition));
    }
    let Some(ColumnCondition { column, kind }) = ColumnCondition::from_physical(expr) else {
        return Ok(None);
    };
    match kind {
        ConditionKind::Null(wanted) => {
            let is_null = RowCondition::IsNull(column);
            Ok(Some(if wanted { is_null } else { negated(is_null) }))
        }
        ConditionKind::Compare(operator, value) => compared(codec, column, operator, value),
        ConditionKind::In { values, negated: is_negated } => {
            let each = values.into_iter();
            let each = each.map(|value| compared(codec, column, Operator::Eq, value));
            let each = each.collect::<Result<Option<Vec<_>>>>()?;
            let any = each.map(RowCondition::Or);
            Ok(if is_negated { any.map(negated) } else { any })
        }
        ConditionKind::Like(_) => Ok(None),
    }
}

/// `column LIKE pattern`, and NOT LIKE.
fn like_condition(codec: &RowCodec, like: &LikeExpr) -> Option<RowCondition> {
    let column = column_of(like.expr())?;
    let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
    let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
    // A pattern that ends in an escape is an error for each row.
    let is_kept = codec.schema().field(column).data_type().is_string() && escapes % 2 == 0;
    if !is_kept || like.case_insensitive() {
        return None;
    }
    let condition = RowCondition::Like { column, pattern: pattern.into() };
    Some(if like.negated() { negated(condition) } else { condition })
}

/// A comparison of two columns of one type.
fn columns_compared(codec: &RowCodec, expr: &Arc<dyn PhysicalExpr>) -> Option<RowCondition> {
    let comparison = expr.downcast_ref::<BinaryExpr>()?;
    let (column, other) = (column_of(comparison.left())?, column_of(comparison.right())?);
    let [of, of_other] = [column, other].map(|at| codec.schema().field(at).data_type());
    let operator = comparison_operator(*comparison.op())?;
    (of == of_other && RowCondition::compares(of)).then_some(RowCondition::CompareColumns {
        column,
        operator,
        other,
    })
}

/// The conditions that conjuncts are, as far as the store checks such ones.
pub(super) fn row_conditions(
    codec: &RowCodec,
    conjuncts: &[Arc<dyn PhysicalExpr>],
) -> Result<Vec<RowCondition>> {
    conjuncts.iter().filter_map(|it| row_condition(codec, it).transpose()).collect()
}

fn joined(operator: Operator, left: RowCondition, right: RowCondition) -> RowCondition {
    let is_and = operator == Operator::And;
    let mut parts = Vec::new();
    for side in [left, right] {
        match side {
            RowCondition::And(inner) if is_and => parts.extend(inner),
            RowCondition::Or(inner) if !is_and => parts.extend(inner),
            side => parts.push(side),
        }
    }
    if is_and { RowCondition::And(parts) } else { RowCondition::Or(parts) }
}

/// The opposite condition; that of a boolean column has one form.
fn negated(condition: RowCondition) -> RowCondition {
    match condition {
        RowCondition::Not(inner) => *inner,
        RowCondition::Compare { column, operator: ComparisonOperator::Equal, value }
            if matches!(*value, [0 | 1]) =>
        {
            let value = [1 - value[0]].into();
            RowCondition::Compare { column, operator: ComparisonOperator::Equal, value }
        }
        other => RowCondition::Not(Box::new(other)),
    }
}

fn compared(
    codec: &RowCodec,
    column: usize,
    operator: Operator,
    value: &ScalarValue,
) -> Result<Option<RowCondition>> {
    let Some(operator) = comparison_operator(operator) else { return Ok(None) };
    if !RowCondition::compares(codec.schema().field(column).data_type()) {
        return Ok(None);
    }
    Ok(encoded(codec, column, value)?.map(|value| RowCondition::Compare {
        column,
        operator,
        value,
    }))
}

fn comparison_operator(operator: Operator) -> Option<ComparisonOperator> {
    Some(match operator {
        Operator::Eq => ComparisonOperator::Equal,
        Operator::NotEq => ComparisonOperator::NotEqual,
        Operator::Lt => ComparisonOperator::Less,
        Operator::LtEq => ComparisonOperator::LessOrEqual,
        Operator::Gt => ComparisonOperator::Greater,
        Operator::GtEq => ComparisonOperator::GreaterOrEqual,
        _ => return None,
    })
}

/// A value as in a key of a column; `None` if it is NULL or of another type.
fn encoded(codec: &RowCodec, column: usize, value: &ScalarValue) -> Result<Option<Box<[u8]>>> {
    let (own, given) = (codec.schema().field(column).data_type(), value.data_type());
    if value.is_null() || !(*own == given || (own.is_string() && given.is_string())) {
        return Ok(None);
    }
    let keys = codec.keys_of_values(&[column], &[value.to_array()?]).map_err(table_error)?;
    Ok(keys.into_iter().flatten().next().map(|key| key.as_bytes().into()))
}

/// The function of a column that an expression is; `None` if the store does not compute such ones.
pub fn key_function(
    codec: &RowCodec,
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<Option<(usize, KeyFunction)>> {
    let expr = without_text_cast(codec, expr);
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        return coalesced(codec, case);
    }
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return Ok(None) };
    if let ("coalesce", [first, other]) = (call.fun().name(), call.args()) {
        return match column_of(without_text_cast(codec, first)) {
            Some(column) => coalesce(codec, column, other),
            None => Ok(None),
        };
    }
    let mut functions = Vec::new();
    let column = text_functions(codec, expr, &mut functions);
    let function = KeyFunction::of_text_functions(functions);
    Ok(column.zip(function))
}

/// The column of texts of which an expression is these functions, the innermost first.
fn text_functions(
    codec: &RowCodec,
    expr: &Arc<dyn PhysicalExpr>,
    functions: &mut Vec<TextFunction>,
) -> Option<usize> {
    let expr = without_text_cast(codec, expr);
    if let Some(column) = column_of(expr) {
        return codec.schema().field(column).data_type().is_string().then_some(column);
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function = text_function(call.fun().name(), call.args())?;
    let column = text_functions(codec, call.args().first()?, functions)?;
    functions.push(function);
    Some(column)
}

fn text_function(name: &str, arguments: &[Arc<dyn PhysicalExpr>]) -> Option<TextFunction> {
    Some(match (name, arguments) {
        ("lower", [_]) => TextFunction::Lower,
        ("upper", [_]) => TextFunction::Upper,
        ("btrim", [_]) => TextFunction::Trim { start: true, end: true },
        ("ltrim", [_]) => TextFunction::Trim { start: true, end: false },
        ("rtrim", [_]) => TextFunction::Trim { start: false, end: true },
        ("md5", [_]) => TextFunction::Md5,
        ("left", [_, count]) => TextFunction::Substring { start: 1, count: Some(constant(count)?) },
        ("substr", [_, start]) => TextFunction::Substring { start: constant(start)?, count: None },
        ("substr", [_, start, count]) => {
            TextFunction::Substring { start: constant(start)?, count: Some(constant(count)?) }
        }
        _ => return None,
    })
    .filter(|function| !matches!(function, TextFunction::Substring { start: 0, .. }))
}

/// A constant that is not negative.
fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<u64> {
    let value = expr.downcast_ref::<Literal>()?.value();
    match value.cast_to(&DataType::UInt64).ok()? {
        ScalarValue::UInt64(number) => number,
        _ => None,
    }
}

/// `CASE WHEN column IS NOT NULL THEN column ELSE value END`, which `coalesce` is rewritten to.
fn coalesced(codec: &RowCodec, case: &CaseExpr) -> Result<Option<(usize, KeyFunction)>> {
    let ([(when, then)], None, Some(other)) =
        (case.when_then_expr(), case.expr(), case.else_expr())
    else {
        return Ok(None);
    };
    let tested = when.downcast_ref::<IsNotNullExpr>().and_then(|it| column_of(it.arg()));
    match column_of(then).filter(|column| tested == Some(*column)) {
        Some(column) => coalesce(codec, column, other),
        None => Ok(None),
    }
}

fn coalesce(
    codec: &RowCodec,
    column: usize,
    other: &Arc<dyn PhysicalExpr>,
) -> Result<Option<(usize, KeyFunction)>> {
    let Some(value) = other.downcast_ref::<Literal>() else { return Ok(None) };
    let value = encoded(codec, column, value.value())?;
    Ok(value.map(|value| (column, KeyFunction::Coalesce(value))))
}

/// The argument of a cast from one form of text to another, or to its bytes.
fn without_text_cast<'e>(
    codec: &RowCodec,
    expr: &'e Arc<dyn PhysicalExpr>,
) -> &'e Arc<dyn PhysicalExpr> {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else { return expr };
    let from = cast.expr().data_type(codec.schema());
    let to = cast.cast_type();
    let is_same = to.is_string()
        || matches!(to, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    match is_same && from.is_ok_and(|from| from.is_string()) {
        true => cast.expr(),
        false => expr,
    }
}
