//! What `sum` and `avg` make of totals.

use std::fmt::Debug;

use datafusion::arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;

use crate::exact_sum::groups::Emitted;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::target::TotalTarget;
use crate::exact_sum::total::ExactTotal;

/// How an aggregate ends: from totals, whose accumulation is the same for all, to its results.
pub(crate) trait Finish<T: ArrowPrimitiveType<Native: Summand>>:
    Debug + Send + Sync + 'static
{
    /// Whether results depend on how many values are in a total. Their number then travels as the first
    /// column of the state.
    const COUNTS: bool;

    /// The type of the totals' low parts where they travel.
    fn total_type(&self) -> &DataType;

    /// The type and the range of the results.
    fn target(&self) -> &TotalTarget<T::Native>;

    /// The result of a total of `count` values; null if there are none.
    fn finish(&self, total: ExactTotal<T::Native>, count: u64) -> Result<Option<T::Native>>;

    /// The results of many groups; there are no counts where the aggregate needs none.
    fn finish_all(&self, totals: Emitted<T::Native>, counts: &[u64]) -> Result<PrimitiveArray<T>>;
}
