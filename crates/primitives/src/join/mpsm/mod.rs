//! P-MPSM, the range-partitioned massively parallel sort-merge join (Albutiu, Kemper, Neumann:
//! "Massively parallel sort-merge joins in main memory multi-core database systems", PVLDB 5(10), 2012),
//! with its last phase as a shuffle (Li et al. 2013, section 4.2).
//!
//! ```text
//! phase 1  fact table ── chunks, each sorted by its worker ────────────▶ a fact run per worker
//! phase 2  dimension ─── chunks, partitioned into ranges by their workers
//! phase 3  ranges ────── each collected and sorted by its worker ──────▶ a dimension run per worker
//! phase 4  every worker's run merged with the part it meets of every other's run, through a shuffle
//! ```
//!
//! In phase 4 the remote runs are either those of the dimension (Li) or of the fact table (Albutiu): [`Remote`]. The
//! first reads every dimension run on every worker, the second every fact run once.

mod merge;
mod phase1;
mod phase2;
mod phase3;
mod phase4;

use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::{ByteMatrix, StepReport, WorkerId};

use super::keys::{SideColumns, WordKeys};
use super::{JoinInput, Matches};
use crate::shuffle::Shuffle;
use crate::{Context, PrimitiveError};

/// Whose runs are read from other workers in phase 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// The dimension's: a worker merges its fact run with every dimension run (Li et al. 2013).
    Dimension,
    /// The fact table's: a worker merges its dimension run with its range of every fact run (Albutiu et
    /// al. 2012).
    Fact,
}

/// Options of a sort-merge join for its fourth phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpsmOptions {
    /// Order, what moves, and coordination.
    pub shuffle: Shuffle,
    /// Whose runs are remote; None for the choice that moves fewer bytes.
    pub remote: Option<Remote>,
}

/// One phase, as in figure 9 of the paper.
#[derive(Clone, Debug)]
pub struct MpsmPhase {
    /// What it does.
    pub name: &'static str,
    /// Total time of its steps.
    pub time: Duration,
    /// Bytes read by (reader's node, home).
    pub bytes: ByteMatrix,
}

/// Report of a sort-merge join.
#[derive(Clone, Debug)]
pub struct MpsmReport {
    /// The four phases.
    pub phases: [MpsmPhase; 4],
    /// Whose runs were remote.
    pub remote: Remote,
    /// Bytes of runs that phase 4 reads if the dimension's are remote, and if the fact table's are.
    pub remote_bytes: [u64; 2],
}

/// Joins a large fact table with a dimension on equal keys (pairs only; nulls match nothing); the fact table is the
/// left side of [`Matches::pairs`]. Returns the consumers by worker.
///
/// # Errors
/// [`PrimitiveError::Type`] for keys that do not fit 64 bits, [`PrimitiveError::Shape`] for columns that
/// do not fit together, [`PrimitiveError::Memory`], [`PrimitiveError::Cancelled`], and what the
/// consumers return.
///
/// ```
/// # use std::sync::Arc;
/// # use atoll_placement::{Arena, LiveKernel};
/// # use atoll_runtime::{Runtime, RuntimeOptions};
/// # use atoll_topology::Machine;
/// use arrow_array::{Int32Array, RecordBatch};
/// use atoll_primitives::join::mpsm::{MpsmOptions, mpsm_join};
/// use atoll_primitives::join::{JoinInput, RowPairs};
/// use atoll_primitives::shuffle::{Coordination, Moved, Order, Shuffle};
/// use atoll_primitives::{Context, Part};
/// # let machine = Arc::new(Machine::discover()?);
/// # let kernel = Arc::new(LiveKernel::new());
/// # let arena = Arena::new(machine.clone(), kernel.clone(), None);
/// # let context = Context::new(Runtime::start(machine, kernel, RuntimeOptions::default())?, arena);
/// let side = |keys: Vec<i32>| -> Result<JoinInput, arrow_schema::ArrowError> {
///     let keys = Arc::new(Int32Array::from(keys));
///     let rows = RecordBatch::try_from_iter([("key", keys as _)])?;
///     Ok(JoinInput::new(vec![Part::new(None, rows)], [0]))
/// };
/// let (fact, dimension) = (side(vec![5, 6, 5, 9])?, side(vec![5, 7])?);
/// let ring = Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Tight };
/// let options = MpsmOptions { shuffle: ring, remote: None };
/// let join = mpsm_join(&context, &fact, &dimension, options, |_| RowPairs::default());
/// let (found, report) = context.runtime().block_on(join)?;
/// let mut fact_rows: Vec<u64> = found.into_iter().flat_map(|found| found.left).collect();
/// fact_rows.sort();
/// assert_eq!(fact_rows, [0, 2]);
/// assert_eq!(report.phases.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn mpsm_join<C: Matches + 'static>(
    context: &Context,
    fact: &JoinInput,
    dimension: &JoinInput,
    options: MpsmOptions,
    consumer: impl Fn(WorkerId) -> C,
) -> Result<(Vec<C>, MpsmReport), PrimitiveError> {
    keys_fit(fact, dimension)?;
    let fact = Arc::new(SideColumns::new("fact", fact, None)?);
    let dimension = Arc::new(SideColumns::new("dimension", dimension, None)?);
    let (fact_runs, first) = phase1::sort_fact(context, fact).await?;
    let (dealt, splitters, second) = phase2::deal_dimension(context, dimension, &fact_runs).await?;
    let (dimension_runs, third) = phase3::sort_dimension(context, dealt).await?;
    let runs = phase4::WorkerRuns { fact: fact_runs, dimension: dimension_runs, splitters };
    let remote_bytes = runs.remote_bytes();
    let fewer = if remote_bytes[0] <= remote_bytes[1] { Remote::Dimension } else { Remote::Fact };
    let remote = options.remote.unwrap_or(fewer);
    let workers = context.runtime().worker_count() as u32;
    let consumers = (0..workers).map(|worker| consumer(WorkerId(worker))).collect();
    let (consumers, fourth) =
        phase4::merge_runs(context, runs, options.shuffle, remote, consumers).await?;
    let phases = [
        phase("sort fact chunks", &first),
        phase("range-partition dimension", &second),
        phase("sort dimension runs", &third),
        MpsmPhase { name: "merge", time: fourth.time, bytes: fourth.bytes() },
    ];
    Ok((consumers, MpsmReport { phases, remote, remote_bytes }))
}

fn phase(name: &'static str, steps: &[StepReport]) -> MpsmPhase {
    let mut bytes = ByteMatrix::default();
    steps.iter().for_each(|step| bytes.add(&step.bytes));
    MpsmPhase { name, time: steps.iter().map(|step| step.time).sum(), bytes }
}

fn keys_fit(fact: &JoinInput, dimension: &JoinInput) -> Result<(), PrimitiveError> {
    let (left, right) = (fact.key_types("fact")?, dimension.key_types("dimension")?);
    if let (Some(left), Some(right)) = (&left, &right)
        && left != right
    {
        return Err(PrimitiveError::Shape {
            what: "key columns of the dimension".into(),
            found: format!("{right:?}"),
            expected: format!("{left:?} as in the fact table; cast one of them"),
        });
    }
    match left.or(right) {
        Some(types) if !WordKeys::fit(&types) => Err(PrimitiveError::Type {
            what: "a sort-merge join",
            data_type: types.into_iter().next().unwrap_or(arrow_schema::DataType::Null),
            supported: "key columns that fit 64 bits together; use the hash join for others",
        }),
        _ => Ok(()),
    }
}
