//! Nested-loop joins spill only where the result stays right; see [`UnspilledLoopExec`].
//!
//! A query that runs out of memory is planned again under `atoll.join = 'merge'`. Then a join that
//! preserves one side gets that side as its build side and one partition on the other: so it spills,
//! piece by piece, and every piece knows its unmatched rows. A full join stays in memory.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::join::UnspilledLoopExec;
use crate::scan::ScanExec;
use atoll_sql_common::operator::OperatorRule;
use atoll_sql_common::settings::{AtollOptions, JoinMethod};

/// Keeps nested-loop joins from spilling; see the module.
#[derive(Debug)]
pub(crate) struct UnspilledLoops;

impl OperatorRule for UnspilledLoops {
    const NAME: &'static str = "UnspilledLoops";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else { return Ok(None) };
        if *join.join_type() == JoinType::Inner && runs_twice(join.left()) {
            return Ok(None);
        }
        let method = config.extensions.get::<AtollOptions>().map(|options| options.join);
        let spills = method == Some(JoinMethod::Merge);
        let spilling = if spills { spilling(join)? } else { None };
        Ok(Some(match spilling {
            Some(join) => join,
            None => Arc::new(UnspilledLoopExec::new(Arc::clone(plan))),
        }))
    }
}

/// The join as one that may spill; `None` if there is none, or if the plan above relies on the
/// order of its rows or on what is in which partition.
fn spilling(join: &NestedLoopJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let partitioning = join.properties().output_partitioning();
    let partitions = partitioning.partition_count();
    let keyed = matches!(partitioning, Partitioning::Hash(_, _) | Partitioning::Range(_));
    if (keyed && partitions > 1) || join.properties().output_ordering().is_some() {
        return Ok(None);
    }
    Ok(match one_partitioned(join)? {
        Some(join) if partitions > 1 => {
            let dealt = Partitioning::RoundRobinBatch(partitions);
            Some(Arc::new(RepartitionExec::try_new(join, dealt)?))
        }
        other => other,
    })
}

fn one_partitioned(join: &NestedLoopJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (left, right) = (join.left(), join.right());
    match join.join_type() {
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
            if runs_twice(left) =>
        {
            over(join, Arc::clone(left), gathered(right)).map(Some)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
            if runs_twice(&undealt(right)?) =>
        {
            let gathered = over(join, gathered(left), gathered(&undealt(right)?))?;
            match gathered.downcast_ref::<NestedLoopJoinExec>() {
                Some(join) => join.swap_inputs().map(Some),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

fn over(
    join: &NestedLoopJoinExec,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let projection = join.projection().as_ref().map(|columns| columns.to_vec());
    let filter = join.filter().cloned();
    let join = NestedLoopJoinExec::try_new(left, right, filter, join.join_type(), projection)?;
    Ok(Arc::new(join))
}

fn gathered(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => Arc::clone(plan),
        _ => Arc::new(CoalescePartitionsExec::new(Arc::clone(plan))),
    }
}

/// The plan without the dealing of few rows to several partitions, which DataFusion adds below
/// projections and filters, and which cannot run twice.
fn undealt(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let undealt =
        Arc::clone(plan).transform_up(|plan| match plan.downcast_ref::<RepartitionExec>() {
            Some(dealt) if matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_)) => {
                Ok(Transformed::yes(Arc::clone(dealt.input())))
            }
            _ => Ok(Transformed::no(plan)),
        })?;
    Ok(undealt.data)
}

/// Whether a plan is known to return the same rows when it is run a second time.
fn runs_twice(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let known = plan.is::<ScanExec>()
        || plan.is::<DataSourceExec>()
        || plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>();
    known && plan.children().into_iter().all(runs_twice)
}
