//! Helpers for the tests of this folder: pools on a fake machine, and an input that records where it
//! is polled and ends in a chosen way.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Machine, NodeId};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::Stream;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use atoll_sql_common::operator::leaf;

/// Pools of two nodes with two workers each; the home of partitions 0 and 1 is the first node.
pub(crate) fn two_nodes() -> Runtime {
    pools(machines::two_nodes())
}

/// One pool of four workers.
pub(super) fn one_node() -> Runtime {
    pools(machines::one_node())
}

fn pools(machine: Machine) -> Runtime {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
    let options = RuntimeOptions { threads: Some(4), ..RuntimeOptions::default() };
    Runtime::start(machine, kernel, options).expect("the fake machine has 4 cpus")
}

/// How a partition of a [`TestSource`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestEnding {
    /// After its last batch.
    End,
    /// With an error after its last batch.
    Error,
    /// With a panic after its last batch.
    Panic,
    /// Never: its batches come again and again.
    Never,
}

/// A poll of a partition: its number, and the node it was polled on.
pub(super) type Polled = (usize, Option<NodeId>);

/// A leaf that has its batches in memory and records every poll.
#[derive(Clone)]
pub(super) struct TestSource(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    runtime: Runtime,
    partitions: Vec<Vec<RecordBatch>>,
    endings: Vec<TestEnding>,
    polls: Arc<Mutex<Vec<Polled>>>,
    /// Held by each stream, and once here.
    streams: Arc<()>,
    properties: Arc<PlanProperties>,
}

impl TestSource {
    /// Partitions that end after their batches.
    pub(super) fn new(runtime: &Runtime, partitions: Vec<Vec<RecordBatch>>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self(Arc::new(Inner {
            runtime: runtime.clone(),
            endings: vec![TestEnding::End; partitions.len()],
            partitions,
            polls: Arc::default(),
            streams: Arc::default(),
            properties: Arc::new(properties),
        }))
    }

    /// One partition ends otherwise.
    pub(super) fn ending(mut self, partition: usize, ending: TestEnding) -> Self {
        Arc::make_mut(&mut self.0).endings[partition] = ending;
        self
    }

    /// All polls so far.
    pub(super) fn polls(&self) -> Vec<Polled> {
        self.0.polls.lock().clone()
    }

    /// Returns once all of its streams are dropped; hangs if they are not.
    pub(super) async fn until_dropped(&self) {
        while Arc::strong_count(&self.0.streams) > 1 {
            tokio::task::yield_now().await;
        }
    }

    /// The same as a plan, which records in the same places.
    pub(super) fn plan(&self) -> Arc<dyn ExecutionPlan> {
        Arc::new(self.clone())
    }
}

impl fmt::Debug for TestSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl DisplayAs for TestSource {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source: partitions={}", self.0.partitions.len())
    }
}

impl ExecutionPlan for TestSource {
    leaf!("Source", 0.properties, no expressions);

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (source, alive) = (self.0.clone(), self.0.streams.clone());
        Ok(Box::pin(SourceStream { source, partition, next: 0, _alive: alive }))
    }
}

struct SourceStream {
    source: Arc<Inner>,
    partition: usize,
    next: usize,
    _alive: Arc<()>,
}

impl Stream for SourceStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let source = &self.source;
        source.polls.lock().push((self.partition, source.runtime.current_node()));
        let batches = &source.partitions[self.partition];
        let item = match (batches.get(self.next), source.endings[self.partition]) {
            (Some(batch), _) => Some(Ok(batch.clone())),
            (None, TestEnding::End) => None,
            (None, TestEnding::Error) => Some(Err(exec_datafusion_err!("failed on request"))),
            (None, TestEnding::Panic) => panic!("on request"),
            (None, TestEnding::Never) => Some(Ok(batches[self.next % batches.len()].clone())),
        };
        self.next += 1;
        Poll::Ready(item)
    }
}

impl RecordBatchStream for SourceStream {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// Columns `k` (integers) and `s` (strings), both nullable.
pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]))
}

/// Random partitions of random batches, empty ones and nulls among them.
pub(super) fn random_partitions(partitions: usize, seed: u64) -> Vec<Vec<RecordBatch>> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut batch = |_| {
        let rows = random.random_range(0..200);
        let keys: Int64Array = (0..rows)
            .map(|_| random.random_bool(0.9).then(|| random.random_range(0..50)))
            .collect();
        let strings: StringArray = (0..rows)
            .map(|_| random.random_bool(0.9).then(|| random.random_range(0..1000).to_string()))
            .collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(strings)];
        RecordBatch::try_new(schema(), columns).expect("two columns of equal length")
    };
    (0..partitions).map(|_| (0..20).map(&mut batch).collect()).collect()
}

/// All rows as text, sorted.
pub(super) fn sorted_rows(batches: &[RecordBatch]) -> Vec<String> {
    let row = |batch: &RecordBatch, at| {
        let column = |column: &ArrayRef| {
            let formatted = datafusion::arrow::util::display::array_value_to_string(column, at);
            format!("{:?}", formatted.expect("integers and strings can be shown"))
        };
        batch.columns().iter().map(column).collect::<Vec<_>>().join("|")
    };
    let mut rows: Vec<String> = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)).collect::<Vec<_>>())
        .collect();
    rows.sort();
    rows
}
