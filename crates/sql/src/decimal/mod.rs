//! Decimal `+`, `-` and `*` at the speed of the bits that the values have.
//!
//! DataFusion computes them on 128 bits with an overflow check for each row. Here each batch's
//! widest value is found first, by OR over all values; where the operands' bits show that no result
//! can overflow, the rows are computed without checks, by a 64-bit multiplication where both sides
//! fit. Results, types and errors are those of Arrow's kernels, which take over in all other cases.

mod kernel;
mod rule;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Datum, Scalar};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use kernel::Operand;
pub(crate) use rule::NarrowDecimals;

/// One of the operations, as a function that takes a binary expression's place.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DecimalOperation {
    op: Operator,
    result: DataType,
    signature: Signature,
}

impl DecimalOperation {
    /// The operation `op`, whose result has this type; none for other operators.
    pub(crate) fn new(op: Operator, result: DataType) -> Option<Self> {
        let signature = Signature::any(2, Volatility::Immutable);
        matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply).then_some(Self {
            op,
            result,
            signature,
        })
    }

    fn compute(&self, left: &dyn Datum, right: &dyn Datum, rows: usize) -> Result<ArrayRef> {
        if let Some(result) = self.unchecked(left, right, rows) {
            return Ok(result);
        }
        Ok(match self.op {
            Operator::Plus => numeric::add(left, right)?,
            Operator::Minus => numeric::sub(left, right)?,
            _ => numeric::mul(left, right)?,
        })
    }

    /// The result where the operands' bits exclude an overflow.
    fn unchecked(&self, left: &dyn Datum, right: &dyn Datum, rows: usize) -> Option<ArrayRef> {
        let DataType::Decimal128(_, scale) = self.result else { return None };
        let (left, right) = (Operand::new(left)?, Operand::new(right)?);
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        let values = match self.op {
            Operator::Multiply => kernel::multiply(&left, &right, rows)?,
            Operator::Plus => kernel::add(&left.scaled_to(scale)?, &right.scaled_to(scale)?, rows)?,
            _ => kernel::subtract(&left.scaled_to(scale)?, &right.scaled_to(scale)?, rows)?,
        };
        Some(kernel::finish(values, nulls, &self.result))
    }
}

impl ScalarUDFImpl for DecimalOperation {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "decimal_add",
            Operator::Minus => "decimal_subtract",
            _ => "decimal_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &arguments.args[..] else {
            return exec_err!("{} takes two arguments", self.name());
        };
        let rows = arguments.number_rows;
        let datum = |value: &ColumnarValue| -> Result<Box<dyn Datum>> {
            Ok(match value {
                ColumnarValue::Array(array) => Box::new(Arc::clone(array)),
                ColumnarValue::Scalar(scalar) => Box::new(Scalar::new(scalar.to_array()?)),
            })
        };
        let both_constant =
            matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if both_constant { 1 } else { rows };
        let result = self.compute(datum(left)?.as_ref(), datum(right)?.as_ref(), rows)?;
        let typed = result.as_primitive::<Decimal128Type>().clone();
        let typed: ArrayRef = Arc::new(typed.with_data_type(self.result.clone()));
        Ok(match both_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&typed, 0)?),
            false => ColumnarValue::Array(typed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, Decimal128Array};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn random(
        rng: &mut StdRng,
        rows: usize,
        bits: u32,
        precision: u8,
        scale: i8,
    ) -> Decimal128Array {
        let limit = (1_i128 << bits) - 1;
        let limit = limit.min(10_i128.pow(u32::from(precision)) - 1);
        (0..rows)
            .map(|_| (!rng.random_bool(0.1)).then(|| rng.random_range(-limit..=limit)))
            .collect::<Decimal128Array>()
            .with_precision_and_scale(precision, scale)
            .expect("the values fit")
    }

    fn check(op: Operator, left: &dyn Datum, right: &dyn Datum, rows: usize) {
        let expected = match op {
            Operator::Plus => numeric::add(left, right),
            Operator::Minus => numeric::sub(left, right),
            _ => numeric::mul(left, right),
        };
        let result = expected
            .as_ref()
            .map_or(DataType::Decimal128(38, 4), |array| array.data_type().clone());
        let operation = DecimalOperation::new(op, result).expect("the operator is covered");
        match (expected, operation.compute(left, right, rows)) {
            (Ok(expected), Ok(found)) => assert_eq!(&expected, &found, "{op}"),
            (Err(_), Err(_)) => {}
            (expected, found) => panic!("{op}: {expected:?} is not {found:?}"),
        }
    }

    #[test]
    fn results_are_arrows_whatever_the_width_of_the_values() {
        let mut rng = StdRng::seed_from_u64(7);
        for op in [Operator::Plus, Operator::Minus, Operator::Multiply] {
            for (left_bits, right_bits) in
                [(1, 1), (20, 40), (62, 62), (63, 64), (64, 62), (100, 30)]
            {
                for rows in [0, 1, 1000] {
                    let left = random(&mut rng, rows, left_bits, 34, 2);
                    let right = random(&mut rng, rows, right_bits, 25, 4);
                    check(op, &left, &right, rows);
                    let one = random(&mut rng, 1, right_bits, 20, 0);
                    check(op, &left, &Scalar::new(one.clone()), rows);
                    check(op, &Scalar::new(one), &left, rows);
                }
            }
        }
    }

    #[test]
    fn an_overflow_is_arrows_error() {
        let most = Decimal128Array::from(vec![10_i128.pow(37)])
            .with_precision_and_scale(38, 0)
            .expect("the value fits");
        let hundred = Decimal128Array::from(vec![100_000_i128])
            .with_precision_and_scale(38, 0)
            .expect("the value fits");
        check(Operator::Multiply, &most, &hundred, 1);
        let lowest = Decimal128Array::from(vec![i128::MIN, i128::MAX]);
        check(Operator::Plus, &lowest, &lowest, 2);
        check(Operator::Minus, &lowest, &lowest, 2);
    }
}
