//! From totals to the results of `sum` and `avg`.

use std::fmt::Debug;

use datafusion::arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;

use crate::exact_sum::groups::Emitted;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::target::TotalTarget;
use crate::exact_sum::total::ExactTotal;

/// How an aggregate computes results from totals, whose accumulation is the same for all.
pub(crate) trait Finish<T: ArrowPrimitiveType<Native: Summand>>:
    Debug + Send + Sync + 'static
{
    /// Whether results depend on the number of values. That number is then the first
    /// column of the state.
    const COUNTS: bool;

    /// The type of the totals' low parts in states.
    fn total_type(&self) -> &DataType;

    /// The type and the range of the results.
    fn target(&self) -> &TotalTarget<T::Native>;

    /// Returns the result of a total of `count` values; null if there are none.
    fn finish(&self, total: ExactTotal<T::Native>, count: u64) -> Result<Option<T::Native>>;

    /// Returns the results of many groups; there are no counts if the aggregate needs none.
    fn finish_all(&self, totals: Emitted<T::Native>, counts: &[u64]) -> Result<PrimitiveArray<T>>;
}
