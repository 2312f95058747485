//! Memory that operators keep without reserving it, or reserve too much of.
//!
//! DataFusion's window operator for frames that look ahead keeps all rows of its input, joins them to
//! one batch, and reserves none of that (apache/datafusion#23207): its input is reserved on its behalf. A batch
//! of texts (`Utf8View`) that a sort puts together from all of its runs holds on to the buffers of all of them, and
//! is charged as much by whatever merges it with other partitions; and whatever joins such batches joins their lists of
//! buffers each time. So its texts are copied where they lie in many buffers or are a good part of the limit. Rows that wait elsewhere without a reservation came from a source: Atoll's
//! scans ask the `Gauge` at every batch, and so do those of files and of functions such as
//! `generate_series` here.

mod exec;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::WindowAggExec;

use crate::scan::ScanExec;
use atoll_sql_common::operator::OperatorRule;
use exec::Duty;
pub use exec::MeteredExec;

/// Adds a [`MeteredExec`] where rows need it; see the module.
#[derive(Debug)]
pub(crate) struct Metered;

impl OperatorRule for Metered {
    const NAME: &'static str = "Metered";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if plan.is::<WindowAggExec>() {
            let inputs =
                plan.children().into_iter().map(|input| MeteredExec::plan(input, Duty::Kept));
            let inputs = inputs.collect();
            return replace_children_if_necessary(Arc::clone(plan), inputs).map(Some);
        }
        Ok(if is_source(plan) {
            Some(MeteredExec::plan(plan, Duty::Source))
        } else if sorts_texts(plan) {
            Some(MeteredExec::plan(plan, Duty::Sorted))
        } else {
            None
        })
    }
}

/// Whether any number of rows comes from this plan, other than from Atoll's own scans.
fn is_source(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.children().is_empty()
        && !plan.is::<ScanExec>()
        && !plan.is::<PlaceholderRowExec>()
        && !plan.is::<EmptyExec>()
}

fn sorts_texts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_view =
        |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    plan.downcast_ref::<SortExec>().is_some_and(|sort| {
        sort.fetch().is_none()
            && sort.schema().fields().iter().any(|field| is_view(field.data_type()))
    })
}
