//! The error of an operation whose result its type cannot hold.

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::error::DataFusionError;

use atoll_functions::sql_name;

/// An operation whose result for some row does not fit the result type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expression} overflows {result_type}{advice}")]
pub struct ArithmeticOverflow {
    /// The operation with the values of the row, such as `127 + 1`.
    expression: String,
    /// The SQL name of the type that is too narrow.
    result_type: String,
    /// The advice, with its separator; empty if there is none.
    advice: String,
}

impl ArithmeticOverflow {
    /// The overflow of `expression`, whose result has type `data_type`.
    pub fn new(expression: String, data_type: &DataType) -> Self {
        let wider = wider(data_type).map(|wider| format!("; cast an operand to {wider}"));
        Self { expression, result_type: sql_name(data_type), advice: wider.unwrap_or_default() }
    }

    /// Converts it to a DataFusionError.
    pub fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

/// Returns the next wider type, which holds all values of this one.
fn wider(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => sql_name(&DataType::Int16),
        DataType::Int16 | DataType::UInt16 => sql_name(&DataType::Int32),
        DataType::Int32 | DataType::UInt32 => sql_name(&DataType::Int64),
        DataType::Int64 | DataType::UInt64 => format!("DECIMAL({DECIMAL128_MAX_PRECISION},0)"),
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
            format!("DECIMAL({DECIMAL128_MAX_PRECISION},{scale})")
        }
        DataType::Decimal128(_, scale) => format!("DECIMAL({DECIMAL256_MAX_PRECISION},{scale})"),
        DataType::Decimal256(..) => sql_name(&DataType::Float64),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_values_the_type_and_the_cast() {
        let message = |data_type| ArithmeticOverflow::new("a + b".into(), &data_type).to_string();
        assert_eq!(message(DataType::Int8), "a + b overflows TINYINT; cast an operand to SMALLINT");
        assert_eq!(
            message(DataType::Decimal128(38, 2)),
            "a + b overflows DECIMAL(38,2); cast an operand to DECIMAL(76,2)"
        );
        assert_eq!(message(DataType::Date32), "a + b overflows DATE");
    }
}
