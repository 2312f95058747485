//! The rule that replaces DataFusion's window operators.

use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{Distribution, ExecutionPlan, ExecutionPlanProperties};

use super::exec::WindowExec;
use super::fallback::Completes;
use super::plan::WindowPlan;
use super::top::TopRows;
use atoll_sql_common::settings::{AtollOptions, WindowMethod};

/// Replaces window operators with a [`WindowExec`].
///
/// DataFusion's stay where they compute other functions, where rows come in the order that they need, and
/// below a LIMIT, for which they read and sort fewer rows.
#[derive(Debug)]
pub(crate) struct WindowsAtOnce {
    runtime: Runtime,
    completes: Completes,
}

/// A LIMIT above an operator, through which DataFusion may push it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitAbove {
    None,
    /// Of a sort.
    Sorted,
    Any,
}

impl WindowsAtOnce {
    /// Creates the rule for these workers; `completes` adds what DataFusion's operators need where memory is short.
    pub(crate) fn new(runtime: Runtime, completes: Completes) -> Self {
        Self { runtime, completes }
    }

    fn place(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        above: LimitAbove,
        workers: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let below = limit_below(&plan, above);
        let children = plan.children().into_iter().cloned();
        let children =
            children.map(|child| self.place(child, below, workers)).collect::<Result<Vec<_>>>()?;
        let plan = replace_children_if_necessary(plan, children)?;
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return with_top_rows(&plan, filter);
        }
        Ok(self.replacement(&plan, above, workers)?.unwrap_or(plan))
    }

    fn replacement(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        above: LimitAbove,
        workers: usize,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some((exprs, input)) = window(plan) else { return Ok(None) };
        let Some(first) = exprs.first() else { return Ok(None) };
        let is_limited = match above {
            LimitAbove::None => false,
            LimitAbove::Sorted => first.partition_by().is_empty(),
            LimitAbove::Any => true,
        };
        if is_limited || input.boundedness().is_unbounded() {
            return Ok(None);
        }
        let is_partitioned = !matches!(
            plan.input_distribution_requirements().per_child_distributions().next(),
            Some(Distribution::SinglePartition) | None
        );
        let Some(planned) = WindowPlan::new(exprs, &input.schema(), &plan.schema()) else {
            return Ok(None);
        };
        if is_in_order(&planned, input, is_partitioned)? {
            return Ok(None);
        }
        let outputs = match (is_partitioned, first.partition_by().is_empty()) {
            (true, _) => None,
            (false, true) => Some(workers),
            (false, false) => Some(1),
        };
        let runtime = self.runtime.clone();
        let window = WindowExec::new(input, planned, self.completes, runtime, outputs)?;
        Ok(Some(Arc::new(window)))
    }
}

/// The windows of one of DataFusion's operators, and its input.
type WindowsOf<'a> = (&'a [Arc<dyn WindowExpr>], &'a Arc<dyn ExecutionPlan>);

fn window(plan: &Arc<dyn ExecutionPlan>) -> Option<WindowsOf<'_>> {
    if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        return Some((window.window_expr(), window.input()));
    }
    let window = plan.downcast_ref::<WindowAggExec>()?;
    Some((window.window_expr(), window.input()))
}

/// The limit above the inputs of an operator.
fn limit_below(plan: &Arc<dyn ExecutionPlan>, above: LimitAbove) -> LimitAbove {
    if plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>() {
        return LimitAbove::Any;
    }
    if plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some()) {
        return LimitAbove::Sorted;
    }
    match plan.is::<ProjectionExec>() || window(plan).is_some() {
        true => above,
        false => LimitAbove::None,
    }
}

/// Whether DataFusion's operator needs no sort.
fn is_in_order(
    plan: &WindowPlan,
    input: &Arc<dyn ExecutionPlan>,
    is_partitioned: bool,
) -> Result<bool> {
    let properties = input.equivalence_properties();
    let Some(ordering) = plan.ordering() else { return Ok(false) };
    if !properties.ordering_satisfy(ordering)? {
        return Ok(false);
    }
    let wanted = Distribution::KeyPartitioned(plan.partition_keys().to_vec());
    let partitioning = input.output_partitioning();
    Ok(!is_partitioned
        || partitioning.partition_count() == 1
        || partitioning.satisfaction(&wanted, properties, false).is_satisfied())
}

/// The filter over windows that leave out rows that it does not let pass.
fn with_top_rows(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &FilterExec,
) -> Result<Arc<dyn ExecutionPlan>> {
    let input = filter.input();
    let (projection, window) = match input.downcast_ref::<ProjectionExec>() {
        Some(projection) => (Some(projection), projection.input()),
        None => (None, input),
    };
    let Some(exec) = window.downcast_ref::<WindowExec>() else { return Ok(Arc::clone(plan)) };
    let Some(top) = TopRows::of_filter(filter.predicate(), projection, exec.plan()) else {
        return Ok(Arc::clone(plan));
    };
    let Some(exec) = exec.with_top(top) else { return Ok(Arc::clone(plan)) };
    let mut below: Arc<dyn ExecutionPlan> = Arc::new(exec);
    if projection.is_some() {
        below = replace_children_if_necessary(Arc::clone(input), vec![below])?;
    }
    replace_children_if_necessary(Arc::clone(plan), vec![below])
}

impl PhysicalOptimizerRule for WindowsAtOnce {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let method = config.extensions.get::<AtollOptions>().map(|options| options.window);
        if method.unwrap_or_default() == WindowMethod::Off {
            return Ok(plan);
        }
        self.place(plan, LimitAbove::None, config.execution.target_partitions)
    }

    fn name(&self) -> &str {
        "WindowsAtOnce"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
