//! The rule that keeps every partition's pipeline at its home.

use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{Distribution, ExecutionPlan, ExecutionPlanProperties};

use super::exec::ExchangeExec;
use super::home::{AtHomes, HomeExec};
use super::homes::home_of;

/// Makes every partition of every operator be polled at its home.
///
/// An operator keeps its input's homes if its partition i polls partition i of its input and
/// nothing else. Wherever that is not so, a task that runs somewhere else would draw the input's
/// work to itself, and the input gets a [`HomeExec`]; the exception is a RepartitionExec, which
/// becomes an [`ExchangeExec`]. The plan's own partitions are polled by the client, and get one too.
#[derive(Debug)]
pub(crate) struct PlaceOnHomes {
    runtime: Runtime,
}

impl PlaceOnHomes {
    /// Creates the rule for these pools. With one pool it does nothing.
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    fn place(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>()
            && let Some(exchange) = ExchangeExec::in_place_of(repartition, &self.runtime)
        {
            return Ok(Transformed::yes(Arc::new(exchange)));
        }
        let children = plan.children();
        let strays: Vec<bool> = (0..children.len()).map(|at| self.strays(&plan, at)).collect();
        if !strays.contains(&true) {
            return Ok(Transformed::no(plan));
        }
        let place = |(child, &strays): (&&Arc<dyn ExecutionPlan>, _)| match strays {
            true => self.at_home(child),
            false => Arc::clone(child),
        };
        let children = children.iter().zip(&strays).map(place).collect();
        replace_children_if_necessary(plan, children).map(Transformed::yes)
    }

    fn at_home(&self, plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        HomeExec::plan(plan, AtHomes(self.runtime.clone()))
    }

    /// Whether a child's partitions would be polled elsewhere than at their homes.
    fn strays(&self, plan: &Arc<dyn ExecutionPlan>, at: usize) -> bool {
        let child = plan.children()[at];
        if child.is::<HomeExec>() || plan.is::<HomeExec>() || plan.is::<ExchangeExec>() {
            return false;
        }
        if plan.is::<UnionExec>() {
            return self.union_shifts(plan, at);
        }
        polls_from_own_tasks(plan, at)
            || partitions(child) != partitions(plan)
            || is_shared_by_partitions(plan, at)
    }

    /// Whether the partitions of a union's input, which come after those of the inputs before it,
    /// get other homes by that.
    fn union_shifts(&self, union: &Arc<dyn ExecutionPlan>, at: usize) -> bool {
        let children = union.children();
        let before: usize = children[..at].iter().map(|child| partitions(child)).sum();
        (0..partitions(children[at])).any(|partition| {
            home_of(&self.runtime, partition) != home_of(&self.runtime, before + partition)
        })
    }
}

fn partitions(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.output_partitioning().partition_count()
}

/// Operators that poll this child from their own tasks, which run on whatever runtime spawned
/// them.
fn polls_from_own_tasks(plan: &Arc<dyn ExecutionPlan>, at: usize) -> bool {
    plan.is::<RepartitionExec>()
        || plan.is::<AnalyzeExec>()
        || plan.is::<BufferExec>()
        || (plan.is::<ScalarSubqueryExec>() && at > 0)
}

/// Whether all partitions of the operator want the one partition of this child, such as the build
/// side of a join, so that whichever comes first polls it. A CoalescePartitionsExec only
/// passes on the rows from below.
fn is_shared_by_partitions(plan: &Arc<dyn ExecutionPlan>, at: usize) -> bool {
    let requirements = plan.input_distribution_requirements();
    partitions(plan) > 1
        && !plan.children()[at].is::<CoalescePartitionsExec>()
        && matches!(
            requirements.per_child_distributions().nth(at),
            Some(Distribution::SinglePartition)
        )
}

impl PhysicalOptimizerRule for PlaceOnHomes {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.runtime.pools().len() <= 1 {
            return Ok(plan);
        }
        let plan = plan.transform_up(|plan| self.place(plan)).data()?;
        // EXPLAIN ANALYZE makes one row of text, and its input is already polled at its home.
        let placed = plan.is::<HomeExec>() || plan.is::<AnalyzeExec>();
        Ok(if placed { plan } else { self.at_home(&plan) })
    }

    fn name(&self) -> &str {
        "PlaceOnHomes"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
