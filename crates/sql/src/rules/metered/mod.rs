//! Memory that operators keep without reserving it, or reserve too much of.
//!
//! DataFusion's window operator for frames that look ahead keeps all rows of its input, joins them to
//! one batch, and reserves none of that: what it is given is reserved on its behalf. A batch of texts
//! (`Utf8View`) that a sort puts together from all of its runs holds on to the buffers of all of them, and
//! is charged as much by whatever merges it with other partitions: its texts are copied where that is a
//! good part of the limit. What waits elsewhere without a reservation came from a source of rows: Atoll's
//! scans ask the `Gauge` at every batch, and so do those of files and of functions such as
//! `generate_series` here.

mod exec;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::WindowAggExec;

use crate::scan::ScanExec;
use exec::{Duty, MeteredExec};

/// Has rows pass through a [`MeteredExec`] where they need it; see the module.
#[derive(Debug)]
pub(crate) struct Metered;

impl PhysicalOptimizerRule for Metered {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if plan.is::<WindowAggExec>() {
                let kept = |input: &Arc<dyn ExecutionPlan>| metered(Arc::clone(input), Duty::Kept);
                let inputs = plan.children().into_iter().map(kept).collect();
                return replace_children_if_necessary(plan, inputs).map(Transformed::yes);
            }
            Ok(if is_source(&plan) {
                Transformed::yes(metered(plan, Duty::Source))
            } else if sorts_texts(&plan) {
                Transformed::yes(metered(plan, Duty::Sorted))
            } else {
                Transformed::no(plan)
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "Metered"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn metered(plan: Arc<dyn ExecutionPlan>, duty: Duty) -> Arc<dyn ExecutionPlan> {
    Arc::new(MeteredExec::new(plan, duty))
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
