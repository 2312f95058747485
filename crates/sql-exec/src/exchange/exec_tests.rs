//! The exchange against DataFusion's, on a fake machine of two nodes.
//!
//! | family | proves |
//! |---|---|
//! | same rows | every output holds exactly the rows that RepartitionExec puts there |
//! | homes | each input's loop ran on the node of its partition, and not before the first poll |
//! | ends | no order of polling deadlocks; dropped outputs end the loops; failures reach all outputs |
//! | memory | queued batches are charged, released, and spilled when memory runs out |
//! | bytes | local and remote bytes are those that were sent |

use std::sync::Arc;

use atoll_runtime::Runtime;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPhase, PushedDown};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, displayable};
use datafusion::prelude::SessionConfig;
use futures::{StreamExt, TryStreamExt};

use super::bytes::batch_bytes;
use super::exec::ExchangeExec;
use super::homes::home_of;
use super::testing::{TestEnding, TestSource, random_partitions, schema, sorted_rows, two_nodes};

fn by_hash(outputs: usize) -> Partitioning {
    Partitioning::Hash(vec![col("k", &schema()).unwrap()], outputs)
}

fn exchange(
    source: &TestSource,
    partitioning: Partitioning,
    runtime: &Runtime,
) -> Arc<dyn ExecutionPlan> {
    let theirs = RepartitionExec::try_new(source.plan(), partitioning).unwrap();
    Arc::new(ExchangeExec::in_place_of(&theirs, runtime).unwrap())
}

fn execute(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Vec<SendableRecordBatchStream> {
    let outputs = plan.properties().partitioning.partition_count();
    (0..outputs).map(|output| plan.execute(output, context.clone()).unwrap()).collect()
}

/// All outputs, polled together.
async fn outputs(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Vec<Result<Vec<RecordBatch>>> {
    let collect = |stream: SendableRecordBatchStream| stream.try_collect::<Vec<_>>();
    futures::future::join_all(execute(plan, context).into_iter().map(collect)).await
}

#[tokio::test]
async fn a_hash_exchange_puts_every_row_where_datafusion_does() {
    let runtime = two_nodes();
    for (seed, outputs_count) in [(1, 4), (2, 3), (3, 1), (4, 7)] {
        let source = TestSource::new(&runtime, random_partitions(4, seed));
        let context = Arc::default();
        let ours = outputs(&exchange(&source, by_hash(outputs_count), &runtime), &context).await;
        let theirs = RepartitionExec::try_new(source.plan(), by_hash(outputs_count)).unwrap();
        let theirs = outputs(&(Arc::new(theirs) as Arc<dyn ExecutionPlan>), &context).await;
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            assert_eq!(sorted_rows(&ours.unwrap()), sorted_rows(&theirs.unwrap()));
        }
    }
}

#[tokio::test]
async fn a_round_robin_exchange_neither_loses_nor_duplicates_rows() {
    let runtime = two_nodes();
    let partitions = random_partitions(3, 5);
    let expected = sorted_rows(&partitions.concat());
    let source = TestSource::new(&runtime, partitions);
    let plan = exchange(&source, Partitioning::RoundRobinBatch(4), &runtime);
    let batches: Vec<_> =
        outputs(&plan, &Arc::default()).await.into_iter().map(Result::unwrap).collect();
    assert!(batches.iter().all(|output| !output.is_empty()));
    assert_eq!(sorted_rows(&batches.concat()), expected);
}

#[tokio::test]
async fn a_single_input_keeps_its_order() {
    let runtime = two_nodes();
    let partitions = random_partitions(1, 6);
    let source = TestSource::new(&runtime, partitions.clone());
    let plan = exchange(&source, by_hash(1), &runtime);
    let output = outputs(&plan, &Arc::default()).await.remove(0).unwrap();
    let concat = |batches: &[RecordBatch]| {
        datafusion::arrow::compute::concat_batches(&schema(), batches).unwrap()
    };
    assert_eq!(concat(&output), concat(&partitions[0]));
}

#[tokio::test]
async fn inputs_are_polled_at_their_homes_after_the_first_output_is_polled() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(6, 7));
    let plan = exchange(&source, by_hash(4), &runtime);
    let context = Arc::default();
    let streams = execute(&plan, &context);
    assert_eq!(source.polls(), []);
    for stream in streams {
        stream.try_collect::<Vec<_>>().await.unwrap();
    }
    let polls = source.polls();
    assert!((0..6).all(|input| polls.iter().any(|poll| poll.0 == input)));
    for (input, here) in polls {
        assert_eq!(here, Some(home_of(&runtime, input)), "input {input}");
    }
}

#[tokio::test]
async fn outputs_polled_one_after_another_do_not_deadlock() {
    let runtime = two_nodes();
    let partitions = random_partitions(4, 8);
    let expected = sorted_rows(&partitions.concat());
    let source = TestSource::new(&runtime, partitions);
    let plan = exchange(&source, by_hash(4), &runtime);
    let mut all = vec![];
    for stream in execute(&plan, &Arc::default()).into_iter().rev() {
        all.extend(stream.try_collect::<Vec<_>>().await.unwrap());
    }
    assert_eq!(sorted_rows(&all), expected);
}

#[tokio::test]
async fn dropping_the_outputs_ends_the_loops_even_if_outputs_were_never_polled() {
    let runtime = two_nodes();
    let mut source = TestSource::new(&runtime, random_partitions(4, 9));
    for input in 0..4 {
        source = source.ending(input, TestEnding::Never);
    }
    let plan = exchange(&source, by_hash(4), &runtime);
    let mut streams = execute(&plan, &Arc::default());
    streams.truncate(3);
    streams[1].next().await.unwrap().unwrap();
    drop(streams);
    source.until_dropped().await;
}

#[tokio::test]
async fn an_error_in_one_input_fails_every_output() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(4, 10)).ending(2, TestEnding::Error);
    let plan = exchange(&source, by_hash(4), &runtime);
    for output in outputs(&plan, &Arc::default()).await {
        assert!(output.unwrap_err().to_string().contains("failed on request"));
    }
    source.until_dropped().await;
}

#[tokio::test]
async fn a_panic_in_one_input_is_an_error_of_every_output() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(4, 11)).ending(3, TestEnding::Panic);
    let plan = exchange(&source, by_hash(4), &runtime);
    for output in outputs(&plan, &Arc::default()).await {
        let message = output.unwrap_err().to_string();
        assert!(message.contains("panicked: on request"), "{message}");
    }
}

/// A query that may hold this many bytes.
fn limited(bytes: usize) -> Arc<TaskContext> {
    let env = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc().unwrap();
    let context = TaskContext::default().with_runtime(env);
    Arc::new(context.with_session_config(SessionConfig::new().with_batch_size(64)))
}

#[tokio::test]
async fn queued_batches_are_charged_until_they_are_taken_or_dropped() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(4, 12));
    let plan = exchange(&source, by_hash(4), &runtime);
    let context = limited(1 << 30);
    let mut streams = execute(&plan, &context);
    let polled = streams.remove(0);
    polled.try_collect::<Vec<_>>().await.unwrap();
    assert!(context.memory_pool().reserved() > 0);
    drop(streams);
    assert_eq!(context.memory_pool().reserved(), 0);
}

#[tokio::test]
async fn without_memory_batches_are_spilled_and_read_back() {
    let runtime = two_nodes();
    let partitions = random_partitions(4, 13);
    let expected = sorted_rows(&partitions.concat());
    let source = TestSource::new(&runtime, partitions);
    let plan = exchange(&source, by_hash(4), &runtime);
    let mut all = vec![];
    for stream in execute(&plan, &limited(10_000)) {
        all.extend(stream.try_collect::<Vec<_>>().await.unwrap());
    }
    assert_eq!(sorted_rows(&all), expected);
    assert!(plan.metrics().unwrap().spill_count().unwrap() > 0);
}

#[tokio::test]
async fn the_homes_of_input_and_output_decide_whether_bytes_are_local() {
    let runtime = two_nodes();
    // Inputs 0 and 1 share the home of outputs 0 and 1; only they have rows here.
    let mut partitions = random_partitions(4, 14);
    partitions[2].clear();
    partitions[3].clear();
    let source = TestSource::new(&runtime, partitions);
    let plan = exchange(&source, by_hash(4), &runtime);
    let outputs: Vec<_> =
        outputs(&plan, &Arc::default()).await.into_iter().map(Result::unwrap).collect();
    let bytes =
        |outputs: &[Vec<RecordBatch>]| -> usize { outputs.concat().iter().map(batch_bytes).sum() };
    let counted = |name| plan.metrics().unwrap().sum_by_name(name).unwrap().as_usize();
    assert_eq!(counted("bytes_local"), bytes(&outputs[..2]));
    assert_eq!(counted("bytes_remote"), bytes(&outputs[2..]));
    let rows: usize = outputs.concat().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(plan.metrics().unwrap().output_rows(), Some(rows));
}

#[tokio::test]
async fn an_exchange_runs_once_and_again_after_a_reset() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(2, 15));
    let plan = exchange(&source, by_hash(2), &runtime);
    let context = Arc::default();
    let first = outputs(&plan, &context).await.remove(0).unwrap();
    assert!(outputs(&plan, &context).await.remove(0).is_err());
    let again = reset_plan_states(plan).unwrap();
    let second = outputs(&again, &context).await.remove(0).unwrap();
    assert_eq!(sorted_rows(&first), sorted_rows(&second));
}

#[tokio::test]
async fn a_stream_dropped_before_its_first_poll_can_be_requested_again() {
    let runtime = two_nodes();
    let partitions = random_partitions(2, 16);
    let expected = sorted_rows(&partitions.concat());
    let source = TestSource::new(&runtime, partitions);
    let plan = exchange(&source, by_hash(2), &runtime);
    let context = Arc::default();
    drop(execute(&plan, &context));
    let outputs: Vec<_> = outputs(&plan, &context).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(sorted_rows(&outputs.concat()), expected);
}

#[test]
fn the_plan_shows_partitioning_inputs_and_homes() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(3, 17));
    let plan = exchange(&source, by_hash(4), &runtime);
    let shown = displayable(plan.as_ref()).one_line().to_string();
    let expected =
        "ExchangeExec: partitioning=Hash([k@0], 4), input_partitions=3, homes=[0,0,1,1]\n";
    assert_eq!(shown, expected);
}

#[test]
fn filters_pass_through() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(2, 18));
    let plan = exchange(&source, by_hash(4), &runtime);
    let filter = col("k", &schema()).unwrap();
    let config = datafusion::common::config::ConfigOptions::new();
    let passed =
        plan.gather_filters_for_pushdown(FilterPushdownPhase::Post, vec![filter], &config).unwrap();
    let passed = passed.parent_filters();
    assert!(matches!(passed[0][0].discriminant, PushedDown::Yes));
}

#[test]
fn an_exchange_has_the_properties_of_datafusions_exchange() {
    let runtime = two_nodes();
    let source = TestSource::new(&runtime, random_partitions(2, 19));
    let theirs = RepartitionExec::try_new(source.plan(), by_hash(4)).unwrap();
    let ours = ExchangeExec::in_place_of(&theirs, &runtime).unwrap();
    assert!(Arc::ptr_eq(ours.properties(), theirs.properties()));
    assert_eq!(ours.maintains_input_order(), theirs.maintains_input_order());
    let unknown = Partitioning::UnknownPartitioning(3);
    let theirs = RepartitionExec::try_new(source.plan(), unknown).unwrap();
    assert!(ExchangeExec::in_place_of(&theirs, &runtime).is_none());
}
