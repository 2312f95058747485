//! Polling each partition at its home, for an operator that gathers several.

use std::fmt;
use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, EvaluationType, SchedulingType,
};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};

use super::feed::AtHome;
use super::homes::Homes;

/// Passes each partition through unchanged, and polls it at its home.
///
/// ```text
///          node 0            │            node 1
///       one task polls every partition (a merge, the client)
///     ▲         ▲            │       ▲              ▲
///  [channel] [channel]       │    [channel]     [channel]
///     ▲         ▲            │       ▲              ▲
///  input 0   input 1         │    input 2        input 3       polled at home(input)
/// ```
///
/// A partition's task is spawned when the partition is first polled and aborted when its stream is
/// dropped; its panic is an error of the stream.
#[derive(Debug)]
pub struct HomeExec {
    input: Arc<dyn ExecutionPlan>,
    runtime: Arc<Runtime>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl HomeExec {
    /// Polls the partitions of `input` at their homes.
    pub fn new(input: Arc<dyn ExecutionPlan>, runtime: Arc<Runtime>) -> Self {
        let properties = PlanProperties::clone(input.properties())
            .with_scheduling_type(SchedulingType::Cooperative)
            .with_evaluation_type(EvaluationType::Eager);
        let (metrics, properties) = (ExecutionPlanMetricsSet::new(), Arc::new(properties));
        Self { input, runtime, metrics, properties }
    }

    /// The homes of the partitions.
    pub fn homes(&self) -> Homes {
        Homes::of(&self.runtime, self.properties.partitioning.partition_count())
    }
}

impl DisplayAs for HomeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "HomeExec: homes={}", self.homes())
            }
            DisplayFormatType::TreeRender => writeln!(f, "homes={}", self.homes()),
        }
    }
}

impl ExecutionPlan for HomeExec {
    fn name(&self) -> &'static str {
        "HomeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.runtime.clone()))),
            _ => internal_err!("HomeExec has one child"),
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(AtHome::new(self.runtime.clone(), partition, stream, metrics)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match input_stats {
            [input] => Ok(input.clone()),
            _ => internal_err!("HomeExec has one child"),
        }
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    /// All of them pass; without this, they would end here. What comes back is the default: a
    /// filter is taken if the input takes it.
    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::filter_pushdown::PushedDown;
    use futures::{StreamExt, TryStreamExt};

    use crate::exchange::homes::home_of;
    use crate::exchange::testing::{Ending, Source, random_partitions, schema, two_nodes};

    fn gathered(source: &Source, runtime: &Arc<Runtime>) -> SendableRecordBatchStream {
        let home = HomeExec::new(source.plan(), runtime.clone());
        CoalescePartitionsExec::new(Arc::new(home)).execute(0, Arc::default()).unwrap()
    }

    #[tokio::test]
    async fn each_partition_is_polled_at_its_home_and_none_before_its_stream_is() {
        let runtime = two_nodes();
        let source = Source::new(&runtime, random_partitions(6, 1));
        let home = HomeExec::new(source.plan(), runtime.clone());
        drop(home.execute(0, Arc::default()).unwrap());
        assert_eq!(source.polls(), []);
        gathered(&source, &runtime).try_collect::<Vec<_>>().await.unwrap();
        let polls = source.polls();
        assert!((0..6).all(|partition| polls.iter().any(|poll| poll.0 == partition)));
        for (partition, here) in polls {
            assert_eq!(here, Some(home_of(&runtime, partition)), "partition {partition}");
        }
    }

    #[tokio::test]
    async fn partitions_pass_through_unchanged() {
        let runtime = two_nodes();
        let partitions = random_partitions(3, 2);
        let source = Source::new(&runtime, partitions.clone());
        let home = HomeExec::new(source.plan(), runtime.clone());
        for (partition, expected) in partitions.into_iter().enumerate() {
            let stream = home.execute(partition, Arc::default()).unwrap();
            assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn dropping_the_consumer_ends_the_tasks() {
        let runtime = two_nodes();
        let source = Source::new(&runtime, random_partitions(2, 3))
            .ending(0, Ending::Never)
            .ending(1, Ending::Never);
        let mut stream = gathered(&source, &runtime);
        stream.next().await.unwrap().unwrap();
        drop(stream);
        source.until_dropped().await;
    }

    #[tokio::test]
    async fn errors_and_panics_are_errors_of_the_stream() {
        let runtime = two_nodes();
        for (ending, expected) in
            [(Ending::Error, "told to fail"), (Ending::Panic, "panicked: told to panic")]
        {
            let source = Source::new(&runtime, random_partitions(2, 4)).ending(1, ending);
            let error = gathered(&source, &runtime).try_collect::<Vec<_>>().await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn filters_pass_through_and_the_plan_shows_the_homes() {
        let runtime = two_nodes();
        let source = Source::new(&runtime, random_partitions(4, 5));
        let home = HomeExec::new(source.plan(), runtime.clone());
        let filter = col("k", &schema()).unwrap();
        let passed = home
            .gather_filters_for_pushdown(
                FilterPushdownPhase::Post,
                vec![filter],
                &ConfigOptions::new(),
            )
            .unwrap();
        assert!(matches!(passed.parent_filters()[0][0].discriminant, PushedDown::Yes));
        let shown = displayable(&home).one_line().to_string();
        assert_eq!(shown, "HomeExec: homes=[0,0,1,1]\n");
    }
}
