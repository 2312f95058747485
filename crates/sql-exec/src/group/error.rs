//! Converts errors of the primitives to DataFusion's.

use atoll_primitives::PrimitiveError;
use datafusion::error::DataFusionError;

use atoll_functions::SumOverflow;

/// Out of memory stays a resource error, so that the query can be planned again; an overflow names the
/// cast to write; all others keep their text, without a prefix.
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
