//! The operations as functions that replace DataFusion's expressions.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Datum, Int64Array, Scalar};
use datafusion::arrow::compute::binary;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Field, FieldRef, Int64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};

use atoll_functions::FunctionFailure;
use atoll_functions::temporal::{has_endless, set_aside};

use super::{decimal, divide, integer};
use atoll_sql_common::error::ArithmeticOverflow;

/// An arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
    /// `a << b`
    ShiftLeft,
    /// `a >> b`
    ShiftRight,
    /// `- a`
    Negate,
}

impl Operation {
    /// Converts a binary operator; returns None if this module does not replace it.
    pub(super) fn from_operator(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Plus => Self::Add,
            Operator::Minus => Self::Subtract,
            Operator::Multiply => Self::Multiply,
            Operator::Divide => Self::Divide,
            Operator::BitwiseShiftLeft => Self::ShiftLeft,
            Operator::BitwiseShiftRight => Self::ShiftRight,
            _ => return None,
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract | Self::Negate => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        })
    }
}

/// Returns the operands of a sum or a difference, and whether it is a difference; None for other expressions.
pub fn sum_of(expr: &Expr) -> Option<(&Expr, &Expr, bool)> {
    let (operation, left, right) = match expr {
        Expr::BinaryExpr(binary) => {
            (Operation::from_operator(binary.op)?, binary.left.as_ref(), binary.right.as_ref())
        }
        Expr::ScalarFunction(call) => {
            let arithmetic = call.func.inner().downcast_ref::<Arithmetic>()?;
            let [left, right] = &call.args[..] else { return None };
            (arithmetic.operation, left, right)
        }
        _ => return None,
    };
    match operation {
        Operation::Add => Some((left, right, false)),
        Operation::Subtract => Some((left, right, true)),
        _ => None,
    }
}

/// An operation on operands after type coercion, which fails if the result does not fit.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arithmetic {
    operation: Operation,
    result: DataType,
    signature: Signature,
}

impl Arithmetic {
    /// Creates an operation with results of this type.
    pub(super) fn new(operation: Operation, result: DataType) -> Self {
        Self { operation, result, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// Returns the result type.
    pub(super) fn result(&self) -> &DataType {
        &self.result
    }

    /// Whether division by zero fails.
    pub(super) fn divides(&self) -> bool {
        self.operation == Operation::Divide
    }

    /// Computes the result for two constants; None if one is null, or if the operation fails.
    pub(super) fn constant(&self, left: &Expr, right: &Expr) -> Option<Expr> {
        let (Expr::Literal(left, _), Expr::Literal(right, _)) = (left, right) else { return None };
        if left.is_null() || right.is_null() {
            return None;
        }
        let (left, right) = (left.to_array().ok()?, right.to_array().ok()?);
        let value = self.compute(&Scalar::new(left), &Scalar::new(right), 1).ok()?;
        Some(Expr::Literal(ScalarValue::try_from_array(&value, 0).ok()?, None))
    }

    pub(super) fn compute(
        &self,
        left: &dyn Datum,
        right: &dyn Datum,
        rows: usize,
    ) -> Result<ArrayRef, ArrowError> {
        let types = (left.get().0.data_type(), right.get().0.data_type());
        if let Some(result) = integer::compute(self.operation, left, right, rows) {
            return result;
        }
        match (self.operation, types) {
            (Operation::Subtract, (DataType::Date32, DataType::Date32)) => {
                check_finite(left, right, rows)?;
                days(left, right)
            }
            (Operation::Divide, (left_type, _)) if left_type.is_decimal() => {
                divide::divide(left, right, &self.result, rows)
            }
            (operation, (left_type, _)) if left_type.is_decimal() => {
                match decimal::unchecked(operation, left, right, &self.result, rows) {
                    Some(result) => Ok(result),
                    None => within_precision(arrows(operation, left, right)?, &self.result),
                }
            }
            (operation, (moment, DataType::Interval(_) | DataType::Duration(_)))
                if is_moment(moment) =>
            {
                moved(operation, left, right)
            }
            (Operation::Add, (DataType::Interval(_) | DataType::Duration(_), moment))
                if is_moment(moment) =>
            {
                moved(Operation::Add, right, left)
            }
            (Operation::Subtract, (DataType::Timestamp(..), DataType::Timestamp(..))) => {
                check_finite(left, right, rows)?;
                arrows(Operation::Subtract, left, right)
            }
            (operation, _) => arrows(operation, left, right),
        }
    }

    /// Returns the first failing row, as the expression that it would have computed.
    fn blame(&self, left: &dyn Datum, right: &dyn Datum, rows: usize) -> Option<String> {
        let row = (0..rows).find(|row| {
            self.compute(at(left, *row).as_ref(), at(right, *row).as_ref(), 1).is_err()
        })?;
        let (left, right) = (text(left, row)?, text(right, row)?);
        Some(match self.operation {
            Operation::Negate if right.starts_with('-') => format!("-({right})"),
            Operation::Negate => format!("-{right}"),
            operation => format!("{left} {operation} {right}"),
        })
    }

    fn error(
        &self,
        error: ArrowError,
        left: &dyn Datum,
        right: &dyn Datum,
        rows: usize,
    ) -> DataFusionError {
        match error {
            ArrowError::DivideByZero => exec_datafusion_err!("division by zero"),
            ArrowError::ExternalError(stated) => DataFusionError::External(stated),
            error => match self.blame(left, right, rows) {
                Some(expression) => {
                    ArithmeticOverflow::new(expression, &self.result).into_datafusion()
                }
                None => error.into(),
            },
        }
    }

    /// Returns the operands; a negation is a subtraction from zero.
    fn operands(&self, mut arguments: Vec<ColumnarValue>) -> Result<[ColumnarValue; 2]> {
        if self.operation == Operation::Negate {
            arguments.insert(0, ColumnarValue::Scalar(ScalarValue::new_zero(&self.result)?));
        }
        let operation = self.operation;
        <[ColumnarValue; 2]>::try_from(arguments)
            .map_err(|all| exec_datafusion_err!("'{operation}' of {} operands", all.len()))
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "add",
            Operation::Subtract => "subtract",
            Operation::Multiply => "multiply",
            Operation::Divide => "divide",
            Operation::ShiftLeft => "shift_left",
            Operation::ShiftRight => "shift_right",
            Operation::Negate => "negate",
        }
    }

    /// Formats the name as DataFusion does for operators.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        schema_name(self.operation, arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.result.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let [left, right] = self.operands(arguments.args)?;
        if [&left, &right].into_iter().any(is_null) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(&self.result)?));
        }
        let constant = [&left, &right].iter().all(|side| matches!(side, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { rows };
        let (left, right) = (datum(left)?, datum(right)?);
        let (left, right) = (left.as_ref(), right.as_ref());
        let values = self
            .compute(left, right, rows)
            .map_err(|error| self.error(error, left, right, rows))?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(values),
        })
    }
}

/// Returns the name of an operation's column.
pub(super) fn schema_name(operation: Operation, arguments: &[Expr]) -> Result<String> {
    match arguments {
        [value] => Ok(format!("(- {})", value.schema_name())),
        [left, right] => Ok(chain_name(operation, left, right)),
        _ => exec_err!("'{operation}' of {} operands", arguments.len()),
    }
}

/// Builds the name of `a + b + …` once, rather than once for each operator.
fn chain_name(operation: Operation, left: &Expr, right: &Expr) -> String {
    let mut parts = vec![(operation, right)];
    let mut first = left;
    while let Expr::ScalarFunction(call) = first
        && let Some(operation) = call.func.inner().downcast_ref::<Arithmetic>()
        && let [left, right] = &call.args[..]
    {
        parts.push((operation.operation, right));
        first = left;
    }
    let mut name = first.schema_name().to_string();
    for (operation, right) in parts.into_iter().rev() {
        name.push_str(&format!(" {operation} {}", right.schema_name()));
    }
    name
}

fn is_null(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(scalar) if scalar.is_null())
}

fn datum(value: ColumnarValue) -> Result<Box<dyn Datum>> {
    Ok(match value {
        ColumnarValue::Array(array) => Box::new(array),
        ColumnarValue::Scalar(scalar) => Box::new(Scalar::new(scalar.to_array()?)),
    })
}

/// Formats one row of an operand.
fn at(datum: &dyn Datum, row: usize) -> Box<dyn Datum> {
    let (array, constant) = datum.get();
    match constant {
        true => Box::new(Scalar::new(array.slice(0, 1))),
        false => Box::new(array.slice(row, 1)),
    }
}

fn text(datum: &dyn Datum, row: usize) -> Option<String> {
    let (array, constant) = datum.get();
    let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).ok()?;
    let row = if constant { 0 } else { row };
    formatter.value(row).try_to_string().ok()
}

/// Arrow's checked kernels.
fn arrows(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
) -> Result<ArrayRef, ArrowError> {
    match operation {
        Operation::Add => numeric::add(left, right),
        Operation::Subtract => numeric::sub(left, right),
        Operation::Multiply => numeric::mul(left, right),
        Operation::Divide => numeric::div(left, right),
        Operation::ShiftLeft | Operation::ShiftRight | Operation::Negate => {
            Err(ArrowError::InvalidArgumentError(format!("{operation} does not support this type")))
        }
    }
}

/// Arrow checks only the bits of decimals: 128 bits hold more than 38 digits.
fn within_precision(values: ArrayRef, result: &DataType) -> Result<ArrayRef, ArrowError> {
    match result {
        DataType::Decimal128(precision, _) => {
            let typed = values.as_primitive::<Decimal128Type>().clone();
            typed.validate_decimal_precision(*precision)?;
            Ok(Arc::new(typed.with_data_type(result.clone())))
        }
        DataType::Decimal256(precision, _) => {
            let typed = values.as_primitive::<Decimal256Type>().clone();
            typed.validate_decimal_precision(*precision)?;
            Ok(Arc::new(typed.with_data_type(result.clone())))
        }
        _ => Ok(values),
    }
}

fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

/// Adds or subtracts an interval from dates or timestamps; infinite values stay infinite.
fn moved(
    operation: Operation,
    moments: &dyn Datum,
    by: &dyn Datum,
) -> Result<ArrayRef, ArrowError> {
    let (values, is_constant) = moments.get();
    let Some((finite, aside)) = set_aside(values)? else { return arrows(operation, moments, by) };
    let results = match is_constant {
        true => arrows(operation, &Scalar::new(finite), by)?,
        false => arrows(operation, &finite, by)?,
    };
    aside.put_back_beside(&results, by.get().0.logical_nulls().as_ref())
}

/// Rejects a difference of infinite dates or timestamps.
fn check_finite(left: &dyn Datum, right: &dyn Datum, rows: usize) -> Result<(), ArrowError> {
    let sides = [left.get(), right.get()];
    if !sides.iter().any(|(values, _)| has_endless(*values)) {
        return Ok(());
    }
    let of_row =
        |row: usize| sides.map(|(values, is_constant)| (values, row * usize::from(!is_constant)));
    let is_refused = |row: &usize| {
        let all = of_row(*row);
        all.iter().all(|(values, at)| values.is_valid(*at))
            && all.iter().any(|(values, at)| has_endless(&values.slice(*at, 1)))
    };
    if !(0..rows).any(|row| is_refused(&row)) {
        return Ok(());
    }
    let kind = match left.get().0.data_type() {
        DataType::Date32 => "dates",
        _ => "timestamps",
    };
    let message = format!("cannot subtract infinite {kind}");
    Err(ArrowError::ExternalError(Box::new(FunctionFailure { state: "22008", message })))
}

/// Counts the days from one date to another.
fn days(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let between = |l: i32, r: i32| i64::from(l) - i64::from(r);
    let ((l, l_constant), (r, r_constant)) = (left.get(), right.get());
    let (l, r) = (l.as_primitive::<Date32Type>(), r.as_primitive::<Date32Type>());
    let days: Int64Array = match (l_constant, r_constant) {
        (true, false) => r.unary(|r| between(l.value(0), r)),
        (false, true) => l.unary(|l| between(l, r.value(0))),
        _ => binary::<_, _, _, Int64Type>(l, r, between)?,
    };
    Ok(Arc::new(days))
}
