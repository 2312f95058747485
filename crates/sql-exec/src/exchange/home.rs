//! Polling each partition at its home, for an operator that gathers several.

use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{EvaluationType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::feed::AtHome;
use super::homes::PartitionHomes;
use atoll_sql_common::operator::{PassThrough, PassThroughExec};

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
pub(crate) type HomeExec = PassThroughExec<AtHomes>;

/// Partitions polled at their homes, on these pools.
#[derive(Clone, Debug)]
pub(crate) struct AtHomes(pub(super) Runtime);

impl PassThrough for AtHomes {
    const NAME: &'static str = "HomeExec";

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        let properties = PlanProperties::clone(input.properties())
            .with_scheduling_type(SchedulingType::Cooperative)
            .with_evaluation_type(EvaluationType::Eager);
        Arc::new(properties)
    }

    fn details(&self, input: &Arc<dyn ExecutionPlan>) -> String {
        let partitions = input.properties().partitioning.partition_count();
        format!("homes={}", PartitionHomes::for_partitions(&self.0, partitions))
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let stream = input.execute(partition, context)?;
        let metrics = BaselineMetrics::new(metrics, partition);
        Ok(Box::pin(AtHome::new(self.0.clone(), partition, stream, metrics)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::common::config::ConfigOptions;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::filter_pushdown::{FilterPushdownPhase, PushedDown};
    use futures::{StreamExt, TryStreamExt};

    use crate::exchange::homes::home_of;
    use crate::exchange::testing::{TestEnding, TestSource, random_partitions, schema, two_nodes};

    fn gathered(source: &TestSource, runtime: &Runtime) -> SendableRecordBatchStream {
        let home = HomeExec::plan(&source.plan(), AtHomes(runtime.clone()));
        CoalescePartitionsExec::new(home).execute(0, Arc::default()).unwrap()
    }

    #[tokio::test]
    async fn each_partition_is_polled_at_its_home_after_its_stream_is_polled() {
        let runtime = two_nodes();
        let source = TestSource::new(&runtime, random_partitions(6, 1));
        let home = HomeExec::plan(&source.plan(), AtHomes(runtime.clone()));
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
        let source = TestSource::new(&runtime, partitions.clone());
        let home = HomeExec::plan(&source.plan(), AtHomes(runtime.clone()));
        for (partition, expected) in partitions.into_iter().enumerate() {
            let stream = home.execute(partition, Arc::default()).unwrap();
            assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn dropping_the_consumer_ends_the_tasks() {
        let runtime = two_nodes();
        let source = TestSource::new(&runtime, random_partitions(2, 3))
            .ending(0, TestEnding::Never)
            .ending(1, TestEnding::Never);
        let mut stream = gathered(&source, &runtime);
        stream.next().await.unwrap().unwrap();
        drop(stream);
        source.until_dropped().await;
    }

    #[tokio::test]
    async fn errors_and_panics_are_errors_of_the_stream() {
        let runtime = two_nodes();
        for (ending, expected) in
            [(TestEnding::Error, "failed on request"), (TestEnding::Panic, "panicked: on request")]
        {
            let source = TestSource::new(&runtime, random_partitions(2, 4)).ending(1, ending);
            let error = gathered(&source, &runtime).try_collect::<Vec<_>>().await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn filters_pass_through_and_the_plan_shows_the_homes() {
        let runtime = two_nodes();
        let source = TestSource::new(&runtime, random_partitions(4, 5));
        let home = HomeExec::plan(&source.plan(), AtHomes(runtime.clone()));
        let filter = col("k", &schema()).unwrap();
        let passed = home
            .gather_filters_for_pushdown(
                FilterPushdownPhase::Post,
                vec![filter],
                &ConfigOptions::new(),
            )
            .unwrap();
        assert!(matches!(passed.parent_filters()[0][0].discriminant, PushedDown::Yes));
        let shown = displayable(home.as_ref()).one_line().to_string();
        assert_eq!(shown, "HomeExec: homes=[0,0,1,1]\n");
    }
}
