//! Aggregate functions and queries.

use arrow_schema::{DataType, Schema};

use crate::PrimitiveError;

/// An aggregate function. It ignores nulls, as in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Number of rows, `count(*)`; ignores its column.
    CountRows,
    /// Values that are not null.
    Count,
    /// Exact sum of integers and decimals; fails if the result type cannot hold it, whatever the order of the rows.
    /// Floats are added in row order.
    Sum,
    /// Least value; of floats by IEEE 754's total order, in which NaN is the largest.
    Min,
    /// Largest value, in the same order.
    Max,
    /// Mean: for integers, the exact sum as a double; for decimals, a quotient of [`quotient_type`], rounded half away
    /// from zero.
    Avg,
}

/// A function and the position of its column in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// Its column.
    pub column: usize,
}

/// `SELECT keys, aggregates FROM input GROUP BY keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Positions of the key columns; null is a key like any other. Without keys all rows form one group, and an empty
    /// input has none.
    pub keys: Vec<usize>,
    /// The aggregates of each group.
    pub aggregates: Vec<Aggregate>,
}

/// Fractional digits of a quotient of decimals, if there is room: PostgreSQL's minimum of significant digits.
const QUOTIENT_DIGITS: i32 = 16;

/// Minimum of fractional digits that a quotient has beyond its dividend.
const QUOTIENT_DIGITS_MORE: i32 = 4;

/// Digits and scale of the quotient of two decimals, given as digits and scale, where decimals have up
/// to `digits_max` digits. An average is the quotient of a value and a whole number of one digit.
pub fn quotient_type(digits_max: u8, dividend: (u8, i8), divisor: (u8, i8)) -> (u8, i8) {
    let [(digits, scale), (_, divisor_scale)] =
        [dividend, divisor].map(|(digits, scale)| (i32::from(digits), i32::from(scale)));
    let digits_max = i32::from(digits_max);
    let whole = (digits - scale + divisor_scale).max(1);
    let scale = (digits_max - whole)
        .min(QUOTIENT_DIGITS)
        .max(scale + QUOTIENT_DIGITS_MORE)
        .max(divisor_scale)
        .clamp(0, digits_max);
    ((whole + scale).min(digits_max) as u8, scale as i8)
}

/// Digits of the widest decimal of 128 bits.
const DIGITS_MAX: u8 = 38;

impl Aggregate {
    /// Type of the result, as in SQL.
    ///
    /// # Errors
    /// [`PrimitiveError::Type`] if the function does not support the column's type.
    pub fn result_type(&self, schema: &Schema) -> Result<DataType, PrimitiveError> {
        use DataType::{Decimal128, Float32, Float64, Int64, UInt64};
        let of = match self.function {
            Function::CountRows => return Ok(Int64),
            _ => column(schema, self.column)?,
        };
        let result = match (self.function, of) {
            (Function::Count, _) => Some(Int64),
            (Function::Sum, of) if of.is_signed_integer() => Some(Int64),
            (Function::Sum, of) if of.is_unsigned_integer() => Some(UInt64),
            (Function::Sum | Function::Avg, Float32 | Float64) => Some(Float64),
            (Function::Avg, of) if of.is_integer() => Some(Float64),
            (Function::Sum, Decimal128(digits, scale)) => {
                Some(Decimal128((digits + 10).min(DIGITS_MAX), *scale))
            }
            (Function::Avg, Decimal128(digits, scale)) => {
                let (digits, scale) = quotient_type(DIGITS_MAX, (*digits, *scale), (1, 0));
                Some(Decimal128(digits, scale))
            }
            (Function::Min | Function::Max, of) if super::lane::is_fixed(of) => Some(of.clone()),
            _ => None,
        };
        result.ok_or_else(|| PrimitiveError::Type {
            what: self.function.name(),
            data_type: of.clone(),
            supported: "integers, floats, decimals of up to 38 digits; min and max also dates and times",
        })
    }
}

impl Aggregate {
    /// Its name, also of its result column and in overflow errors.
    pub fn name(&self, schema: &Schema) -> String {
        match (self.function, schema.fields().get(self.column)) {
            (Function::CountRows, _) | (_, None) => self.function.name().to_owned(),
            (function, Some(field)) => format!("{}({})", function.name(), field.name()),
        }
    }
}

impl Function {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountRows => "count(*)",
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
        }
    }
}

/// Type of a column.
pub(super) fn column(schema: &Schema, at: usize) -> Result<&DataType, PrimitiveError> {
    let field = schema.fields().get(at).ok_or_else(|| PrimitiveError::Shape {
        what: "position of a column".into(),
        found: at.to_string(),
        expected: format!("less than {}", schema.fields().len()),
    })?;
    Ok(field.data_type())
}
