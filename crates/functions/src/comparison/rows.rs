//! Comparisons of row values that are built before they are compared: `(f(), b) < (c, d)`, `(a, b) = (SELECT x, y …)`.
//!
//! ```text
//! =            all fields are equal
//! <>           one of them differs
//! <, <=, …     the first fields that differ decide
//! ```
//!
//! A NULL field makes the result NULL, unless another field decides it. That is how SQL compares rows; structs are
//! compared differently, with NULL as a value. A field that is itself a struct is compared as a struct.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_comparator};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::{SortOptions, and_kleene, is_null, nullif, or_kleene};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr_common::datum::apply_cmp;

use crate::common_type::common;
use crate::failure::FunctionFailure;
use crate::temporal::measured;

/// Creates the call that compares two rows, by an operator in the dialect's form: `<`, which differs for other values.
pub(crate) fn compared_rows(op: &str, left: &Expr, right: &Expr) -> Option<Expr> {
    let function = Arc::new(ScalarUDF::new_from_impl(ComparedRows::named(op)?));
    let args = vec![left.clone(), right.clone()];
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ComparedRows {
    name: &'static str,
    op: Operator,
    signature: Signature,
}

impl ComparedRows {
    fn named(op: &str) -> Option<Self> {
        let (name, op) = match op {
            "=" => ("row_equals", Operator::Eq),
            "<>" => ("row_differs", Operator::NotEq),
            "<" => ("row_less", Operator::Lt),
            "<=" => ("row_at_most", Operator::LtEq),
            ">" => ("row_greater", Operator::Gt),
            ">=" => ("row_at_least", Operator::GtEq),
            _ => return None,
        };
        Some(Self { name, op, signature: Signature::user_defined(Volatility::Immutable) })
    }

    /// Computes the results for rows with these fields.
    fn answers(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Result<BooleanArray> {
        let pairs = || left.iter().zip(right);
        let of = |op: Operator| pairs().map(move |(left, right)| of_fields(op, left, right));
        let all = match self.op {
            Operator::Eq => of(self.op).reduce(|all, next| Ok(and_kleene(&all?, &next?)?)),
            Operator::NotEq => of(self.op).reduce(|any, next| Ok(or_kleene(&any?, &next?)?)),
            _ => return self.order(left, right),
        };
        all.unwrap_or_else(|| exec_err!("{} has rows without fields", self.name))
    }

    /// Whether the first differing fields are in order: `a < c OR (a = c AND rest)`, from the last field on.
    fn order(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Result<BooleanArray> {
        let strict = match self.op {
            Operator::Lt | Operator::LtEq => Operator::Lt,
            _ => Operator::Gt,
        };
        let mut pairs = left.iter().zip(right).rev();
        let Some((left, right)) = pairs.next() else {
            return exec_err!("{} has rows without fields", self.name);
        };
        let mut rest = of_fields(self.op, left, right)?;
        for (left, right) in pairs {
            let before = of_fields(strict, left, right)?;
            let same = of_fields(Operator::Eq, left, right)?;
            rest = or_kleene(&before, &and_kleene(&same, &rest)?)?;
        }
        Ok(rest)
    }
}

/// Computes the results for one field.
fn of_fields(op: Operator, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    if left.data_type().is_null() {
        return Ok(BooleanArray::new_null(left.len()));
    }
    let (left, right) = (measured(left)?, measured(right)?);
    if !left.data_type().is_nested() {
        let count = left.len();
        let (left, right) = (ColumnarValue::Array(left), ColumnarValue::Array(right));
        return Ok(apply_cmp(op, &left, &right)?.into_array(count)?.as_boolean().clone());
    }
    // NULL inside a nested value is the largest, as in ORDER BY.
    let options = SortOptions { descending: false, nulls_first: false };
    let compare = make_comparator(&left, &right, options)?;
    let holds = |row: usize| {
        let order = compare(row, row);
        match op {
            Operator::Eq => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }
    };
    let nulls = NullBuffer::union(left.logical_nulls().as_ref(), right.logical_nulls().as_ref());
    Ok(BooleanArray::new(BooleanBuffer::collect_bool(left.len(), holds), nulls))
}

impl ScalarUDFImpl for ComparedRows {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = take_function_args(self.name, given)?;
        let (DataType::Struct(left), DataType::Struct(right)) = (left, right) else {
            let message = "cannot compare a row with a value that is not a row".to_owned();
            return Err(FunctionFailure::error("42883", message));
        };
        if left.len() != right.len() {
            let message = format!(
                "unequal number of entries in row expressions: {} and {}",
                left.len(),
                right.len()
            );
            return Err(FunctionFailure::error("42601", message));
        }
        let types = left.iter().zip(right).map(|(left, right)| {
            let (left, right) = (left.data_type(), right.data_type());
            // Texts next to values of another type are cast to it.
            match (left.is_string(), right.is_string()) {
                (true, false) if !right.is_null() => Ok(right.clone()),
                (false, true) if !left.is_null() => Ok(left.clone()),
                _ => common(left, right),
            }
        });
        let types = types.collect::<Result<Vec<_>>>()?;
        let with_types = |fields: &Fields| {
            let fields = fields.iter().zip(&types);
            let fields = fields.map(|(field, of)| Field::new(field.name(), of.clone(), true));
            DataType::Struct(fields.collect())
        };
        Ok(vec![with_types(left), with_types(right)])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = take_function_args(self.name, args.args)?;
        let is_constant =
            matches!((&left, &right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let mut answers = self.answers(left.as_struct().columns(), right.as_struct().columns())?;
        // A subquery that returned no row.
        for side in [&left, &right] {
            if side.null_count() > 0 {
                answers = nullif(&answers, &is_null(side)?)?.as_boolean().clone();
            }
        }
        let answers: ArrayRef = Arc::new(answers);
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?),
            false => ColumnarValue::Array(answers),
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    fn row(op: &str, left: [Option<i64>; 2], right: [Option<i64>; 2]) -> Option<bool> {
        let field = |of: Option<i64>| Arc::new(Int64Array::from(vec![of])) as ArrayRef;
        let function = ComparedRows::named(op).expect("it is one");
        let answers = function.answers(&left.map(field), &right.map(field)).expect("it compares");
        answers.is_valid(0).then(|| answers.value(0))
    }

    #[test]
    fn rows_are_compared_as_sql_does() {
        let (one, two) = ([Some(1), Some(2)], [Some(1), None]);
        for (op, left, right, answer) in [
            ("=", one, one, Some(true)),
            ("=", one, two, None),
            ("=", [Some(2), None], one, Some(false)),
            ("<>", [Some(2), None], one, Some(true)),
            ("<>", two, two, None),
            ("<", one, [Some(1), Some(3)], Some(true)),
            ("<", one, one, Some(false)),
            ("<=", one, one, Some(true)),
            ("<=", two, two, None),
            ("<", two, [Some(2), None], Some(true)),
            ("<", [None, Some(1)], one, None),
            (">", [None, Some(1)], one, None),
            (">", [Some(3), None], one, Some(true)),
            (">=", [Some(0), None], one, Some(false)),
        ] {
            assert_eq!(row(op, left, right), answer, "{left:?} {op} {right:?}");
        }
    }

    #[test]
    fn texts_next_to_numbers_are_numbers() {
        let row = |types: [DataType; 2]| {
            let fields = types.into_iter().map(|of| Field::new("f", of, true));
            DataType::Struct(fields.collect())
        };
        let function = ComparedRows::named("<").expect("it is one");
        let given =
            [row([DataType::Utf8, DataType::Int32]), row([DataType::Int64, DataType::Null])];
        let wanted = row([DataType::Int64, DataType::Int32]);
        assert_eq!(
            function.coerce_types(&given).expect("they are alike"),
            [wanted.clone(), wanted]
        );
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(of_fields(Operator::Eq, &text, &text).expect("it compares").value(0));
    }
}
