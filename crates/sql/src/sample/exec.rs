//! Draws rows while they pass.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::node::{Draw, Unit};

/// A part of the input's rows, drawn in each partition by itself.
#[derive(Debug)]
pub(crate) struct SampleExec {
    input: Arc<dyn ExecutionPlan>,
    draw: Draw,
    properties: Arc<PlanProperties>,
}

impl SampleExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, draw: Draw) -> Self {
        let properties = Arc::clone(input.properties());
        Self { input, draw, properties }
    }
}

impl DisplayAs for SampleExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "SampleExec: {}", self.draw)
            }
            DisplayFormatType::TreeRender => writeln!(f, "{}", self.draw),
        }
    }
}

impl ExecutionPlan for SampleExec {
    fn name(&self) -> &'static str {
        "SampleExec"
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
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.draw))),
            _ => internal_err!("SampleExec has one child"),
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    /// No exchange below it: the rows of a partition have to be the same each time.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let mut drawn = Drawn::new(self.draw, partition);
        let stream = stream.try_filter_map(move |batch| {
            let kept = drawn.of(batch);
            async move { kept }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

/// What is drawn in one partition.
struct Drawn {
    draw: Draw,
    random: SplitMix,
}

impl Drawn {
    fn new(draw: Draw, partition: usize) -> Self {
        let seed = match draw.seed {
            // Partitions draw differently.
            Some(seed) => SplitMix(SplitMix(seed).next() ^ partition as u64).next(),
            None => RandomState::new().hash_one(partition),
        };
        Self { draw, random: SplitMix(seed) }
    }

    fn of(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(share) = self.draw.share else { return Ok(Some(batch)) };
        match self.draw.unit {
            Unit::Batch => Ok((self.random.next() < share).then_some(batch)),
            Unit::Row => {
                let keep = (0..batch.num_rows()).map(|_| Some(self.random.next() < share));
                let keep: BooleanArray = keep.collect();
                Ok(Some(filter_record_batch(&batch, &keep)?))
            }
        }
    }
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
/// figure 16, with the constants of its reference implementation.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
