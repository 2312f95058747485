//! The primitives' errors as DataFusion's.

use atoll_primitives::PrimitiveError;
use datafusion::error::DataFusionError;

use atoll_functions::SumOverflow;

/// Lack of memory can be answered by another plan; an overflow tells what to cast; all others read as
/// they are, without a word of where they came from.
pub(super) fn to_datafusion(error: PrimitiveError) -> DataFusionError {
    match error {
        PrimitiveError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        PrimitiveError::Overflow { what, data_type } => {
            SumOverflow::new(&what, &data_type).into_datafusion()
        }
        PrimitiveError::Cancelled(_) => DataFusionError::Execution("cancelled".to_owned()),
        other => DataFusionError::Execution(other.to_string()),
    }
}
