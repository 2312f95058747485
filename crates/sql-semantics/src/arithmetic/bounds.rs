//! Value ranges of integer expressions, derived from their types.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::operation::Arithmetic;

/// Smallest and largest value.
pub(super) type ValueRange = (i128, i128);

/// Returns the range of an integer type.
pub(super) fn range(data_type: &DataType) -> Option<ValueRange> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Maximum depth that is inspected: casts and constants are near, and each node of a deep
/// chain inspects everything below it.
const LEVELS: u32 = 4;

/// Returns the type of an expression. For operations it does not inspect the operands: DataFusion
/// asks for their types and names, recursively, for each operator of a chain.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    let operation = match expr {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<Arithmetic>(),
        _ => None,
    };
    operation.map_or_else(|| expr.get_type(schema), |operation| Ok(operation.result().clone()))
}

/// Whether an integer expression that may wrap around needs a check: the operands' types do not
/// keep its result in range. `CAST(small AS BIGINT) + 1` needs no check.
pub(super) fn may_overflow(expr: &Expr, result: &DataType, schema: &DFSchema) -> bool {
    range(result)
        .zip(exact(expr, schema, LEVELS))
        .is_none_or(|(own, exact)| exact.0 < own.0 || exact.1 > own.1)
}

/// Returns the range of an expression's exact values.
fn exact(expr: &Expr, schema: &DFSchema, levels: u32) -> Option<ValueRange> {
    let levels = levels.checked_sub(1)?;
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            combined(*op, within(left, schema, levels)?, within(right, schema, levels)?)
        }
        Expr::Negative(value) => combined(Operator::Minus, (0, 0), within(value, schema, levels)?),
        _ => None,
    }
}

/// Returns the range of an expression's values, limited by its type.
fn within(expr: &Expr, schema: &DFSchema, levels: u32) -> Option<ValueRange> {
    let data_type = range(&type_of(expr, schema).ok()?)?;
    let known = match expr {
        Expr::Literal(value, _) => constant(value),
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => {
            levels.checked_sub(1).and_then(|levels| within(expr, schema, levels))
        }
        other => exact(other, schema, levels),
    };
    Some(match known {
        Some((least, largest)) if least >= data_type.0 && largest <= data_type.1 => {
            (least, largest)
        }
        _ => data_type,
    })
}

fn constant(value: &ScalarValue) -> Option<ValueRange> {
    let value = match value {
        ScalarValue::Int8(Some(value)) => i128::from(*value),
        ScalarValue::Int16(Some(value)) => i128::from(*value),
        ScalarValue::Int32(Some(value)) => i128::from(*value),
        ScalarValue::Int64(Some(value)) => i128::from(*value),
        ScalarValue::UInt8(Some(value)) => i128::from(*value),
        ScalarValue::UInt16(Some(value)) => i128::from(*value),
        ScalarValue::UInt32(Some(value)) => i128::from(*value),
        ScalarValue::UInt64(Some(value)) => i128::from(*value),
        _ => return None,
    };
    Some((value, value))
}

fn combined(op: Operator, left: ValueRange, right: ValueRange) -> Option<ValueRange> {
    Some(match op {
        Operator::Plus => (left.0.checked_add(right.0)?, left.1.checked_add(right.1)?),
        Operator::Minus => (left.0.checked_sub(right.1)?, left.1.checked_sub(right.0)?),
        Operator::Multiply => {
            let corner = |l: i128, r: i128| l.checked_mul(r);
            let corners = [
                corner(left.0, right.0)?,
                corner(left.0, right.1)?,
                corner(left.1, right.0)?,
                corner(left.1, right.1)?,
            ];
            let least = corners.iter().copied().min()?;
            (least, corners.iter().copied().max()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{cast, col, lit};

    #[test]
    fn casts_and_constants_bound_what_can_be_reached() {
        let schema = Schema::new(vec![
            Field::new("small", DataType::Int16, true),
            Field::new("long", DataType::Int64, true),
        ]);
        let schema = DFSchema::try_from(schema).expect("the names differ");
        let small = || cast(col("small"), DataType::Int64);
        for (expr, expected) in [
            (small() + lit(1_i64), false),
            (small() * small() - lit(1_i64), false),
            (-small(), false),
            (small() * lit(i64::MAX), true),
            (col("long") + lit(0_i64), false),
            (col("long") + lit(1_i64), true),
            (col("long") * lit(-1_i64), true),
            (-col("long"), true),
            (col("small") + col("small"), true),
        ] {
            let result = type_of(&expr, &schema).expect("the types fit");
            assert_eq!(may_overflow(&expr, &result, &schema), expected, "{expr}");
        }
    }
}
