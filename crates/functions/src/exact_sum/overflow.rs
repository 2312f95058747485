//! The error of a sum that does not fit its type.

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::error::DataFusionError;

use crate::type_name::sql_name;

/// A sum or average whose result, or whose sum before the division, does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{aggregate} overflows {result_type}; {advice}")]
pub struct SumOverflow {
    /// The aggregate as written in the query, such as `sum(lineitem.l_quantity)`.
    pub aggregate: String,
    /// The SQL name of the type that is too narrow.
    pub result_type: String,
    /// The advice.
    pub advice: String,
}

impl SumOverflow {
    /// The overflow of `aggregate`, whose result has type `data_type`.
    pub fn new(aggregate: &str, data_type: &DataType) -> Self {
        Self {
            aggregate: aggregate.to_owned(),
            result_type: sql_name(data_type),
            advice: advice(data_type),
        }
    }

    /// Converts it to a DataFusionError.
    pub fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

/// Returns the next wider type with the same scale.
fn advice(data_type: &DataType) -> String {
    let wider = match data_type {
        DataType::Int64 | DataType::UInt64 => format!("DECIMAL({DECIMAL128_MAX_PRECISION},0)"),
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
            format!("DECIMAL({DECIMAL128_MAX_PRECISION},{scale})")
        }
        DataType::Decimal128(_, scale) => format!("DECIMAL({DECIMAL256_MAX_PRECISION},{scale})"),
        DataType::Decimal256(..) => "DOUBLE".to_owned(),
        _ => return "sum fewer rows at a time".to_owned(),
    };
    format!("cast the argument to {wider}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_aggregate_the_type_and_the_cast() {
        let overflow = SumOverflow::new("sum(l_quantity)", &DataType::Int64);
        assert_eq!(
            overflow.to_string(),
            "sum(l_quantity) overflows BIGINT; cast the argument to DECIMAL(38,0)"
        );
    }

    #[test]
    fn the_advice_for_a_decimal_is_the_next_wider_one_of_the_same_scale() {
        let advice_of = |data_type| SumOverflow::new("sum(x)", &data_type).advice;
        assert_eq!(advice_of(DataType::Decimal128(38, 4)), "cast the argument to DECIMAL(76,4)");
        assert_eq!(advice_of(DataType::Decimal64(18, 2)), "cast the argument to DECIMAL(38,2)");
        assert_eq!(advice_of(DataType::Decimal256(76, 2)), "cast the argument to DOUBLE");
    }
}
