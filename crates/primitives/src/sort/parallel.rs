//! Sorts a whole input by a column.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use atoll_runtime::{StepReport, TaskContext};
use atoll_topology::{Bytes, NodeId};

use super::order::OrderedColumn;
use super::{SortBy, SortedRun, Splitters};
use crate::partition::{FanOut, Partitioner, Pieces};
use crate::work::{Chunks, NumberQueue};
use crate::{Context, Part, PrimitiveError};

/// Ranges for each worker: enough to avoid a long wait for the last one.
const RANGES_PER_WORKER: usize = 16;
/// Maximum number of ranges: each takes a buffer of each worker.
const RANGES_MAX: usize = 4096;
/// Rows of the sample for each range.
const SAMPLE_PER_RANGE: usize = 64;

/// A sorted input.
#[derive(Debug)]
pub struct Sorted {
    /// Runs in order: all rows of one come before all of the next. A row's key is its sort word (0 for null), its
    /// payload its number: rows are counted from 0 through all parts.
    pub runs: Vec<SortedRun>,
    /// Steps, with time and traffic.
    pub steps: Vec<StepReport>,
}

impl Sorted {
    /// Numbers of the rows in sorted order.
    pub fn row_numbers(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().flat_map(|run| run.rows()).map(|[_, number]| *number)
    }
}

/// Sorts the rows of some parts by a column.
///
/// # Errors
/// [`PrimitiveError::Type`] for a column whose values do not fit 64 bits, [`PrimitiveError::Shape`] for a missing
/// column, [`PrimitiveError::Memory`] and [`PrimitiveError::Cancelled`].
///
/// ```
/// # use std::sync::Arc;
/// # use atoll_placement::{Arena, LiveKernel};
/// # use atoll_runtime::{Runtime, RuntimeOptions};
/// # use atoll_topology::Machine;
/// use arrow_array::{Float64Array, RecordBatch};
/// use atoll_primitives::sort::{SortBy, sort};
/// use atoll_primitives::{Context, Part};
/// # let machine = Arc::new(Machine::discover()?);
/// # let kernel = Arc::new(LiveKernel::new());
/// # let arena = Arena::new(machine.clone(), kernel.clone(), None);
/// # let context = Context::new(Runtime::start(machine, kernel, RuntimeOptions::default())?, arena);
/// let values = Float64Array::from(vec![Some(2.5), None, Some(-1.0), Some(7.0)]);
/// let rows = RecordBatch::try_from_iter([("value", Arc::new(values) as _)])?;
/// let by = SortBy { descending: true, ..SortBy::column(0) };
/// let sorted = context.runtime().block_on(sort(&context, &[Part::new(None, rows)], by))?;
/// assert_eq!(sorted.row_numbers().collect::<Vec<_>>(), [3, 0, 2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn sort(context: &Context, parts: &[Part], by: SortBy) -> Result<Sorted, PrimitiveError> {
    let input = Arc::new(SortInput::new(parts, by)?);
    let ranges = (context.runtime().worker_count() * RANGES_PER_WORKER).min(RANGES_MAX);
    let splitters = input.splitters(ranges);
    let (pieces, dealt) = deal(context, &input, splitters).await?;
    let (runs, sorted) = sort_pieces(context, pieces, by.stable).await?;
    Ok(Sorted { runs, steps: vec![dealt, sorted] })
}

/// The column of each part.
struct SortInput {
    parts: Vec<InputPart>,
    by: SortBy,
}

struct InputPart {
    home: Option<NodeId>,
    first: u64,
    column: OrderedColumn,
    valid: Option<NullBuffer>,
    rows: usize,
    row_bytes: usize,
}

impl SortInput {
    fn new(parts: &[Part], by: SortBy) -> Result<Self, PrimitiveError> {
        let mut first = 0;
        let parts = parts.iter().map(|part| {
            let columns = part.rows.columns();
            let column = columns.get(by.column).ok_or_else(|| PrimitiveError::Shape {
                what: "the column to sort by".into(),
                found: format!("position {}", by.column),
                expected: format!("less than {}", columns.len()),
            })?;
            let valid = column.logical_nulls().filter(|valid| valid.null_count() > 0);
            let row_bytes = column.data_type().primitive_width().unwrap_or(8);
            let (rows, ordered) = (column.len(), OrderedColumn::try_from_array(column)?);
            let before = first;
            first += rows as u64;
            let home = part.home;
            Ok(InputPart { home, first: before, column: ordered, valid, rows, row_bytes })
        });
        Ok(Self { parts: parts.collect::<Result<_, PrimitiveError>>()?, by })
    }

    /// Sort words of some rows of a part.
    fn words(&self, part: &InputPart, rows: Range<usize>, words: &mut Vec<u64>) {
        part.column.read(rows, words);
        if self.by.descending {
            words.iter_mut().for_each(|word| *word = !*word);
        }
    }

    /// Splitters from rows at even distances.
    fn splitters(&self, ranges: usize) -> Splitters {
        let rows: usize = self.parts.iter().map(|part| part.rows).sum();
        let step = (rows / (ranges * SAMPLE_PER_RANGE)).max(1);
        let (mut sample, mut words) = (Vec::new(), Vec::new());
        for part in &self.parts {
            for row in (0..part.rows).step_by(step) {
                self.words(part, row..row + 1, &mut words);
                if part.valid.as_ref().is_none_or(|valid| valid.is_valid(row)) {
                    sample.extend(words.iter().map(|word| (*word, 1.0)));
                }
            }
        }
        Splitters::from_sample(sample, ranges)
    }
}

/// Partitions rows into ranges; nulls are a separate range, the first or the last.
async fn deal(
    context: &Context,
    input: &Arc<SortInput>,
    splitters: Splitters,
) -> Result<(Vec<Pieces<2>>, StepReport), PrimitiveError> {
    let parts = input.parts.iter().map(|part| (part.home, part.rows));
    let chunks = Chunks::new(parts, context.tuning().block_rows);
    let (input, own) = (Arc::clone(input), context.clone());
    let nulls = if input.by.nulls_first { 0 } else { splitters.ranges() };
    let shift = usize::from(input.by.nulls_first);
    let fan_out = FanOut::at_least(splitters.ranges() + 1);
    let deal = move |task: &TaskContext| {
        let home = Some(task.node());
        let mut partitioner = Partitioner::<2>::new(&own, home, fan_out, 0)?;
        let mut words = Vec::new();
        while let Some((number, rows)) = chunks.take(task.node()) {
            let part = &input.parts[number];
            for rows in chunks.blocks(rows.clone()) {
                task.check()?;
                input.words(part, rows.clone(), &mut words);
                partitioner.extend(rows.len(), |at| {
                    let row = rows.start + at;
                    let number = part.first + row as u64;
                    match &part.valid {
                        Some(valid) if valid.is_null(row) => (nulls, [0, number]),
                        _ => (splitters.range(words[at]) + shift, [words[at], number]),
                    }
                })?;
            }
            if let Some(home) = part.home {
                task.count_read(home, Bytes((rows.len() * part.row_bytes) as u64));
            }
        }
        partitioner.finish()
    };
    context.on_workers("deal to ranges", move |_, task| deal(task)).await
}

/// Sorts each range; returns the runs in order.
async fn sort_pieces(
    context: &Context,
    pieces: Vec<Pieces<2>>,
    stable: bool,
) -> Result<(Vec<SortedRun>, StepReport), PrimitiveError> {
    let count = pieces.first().map_or(0, |pieces| pieces.fan_out().partitions());
    let (pieces, own, numbers) = (Arc::new(pieces), context.clone(), NumberQueue::below(count));
    let sorted = context.on_workers("sort ranges", move |_, task| {
        let mut runs = Vec::new();
        while let Some(piece) = numbers.take() {
            task.check()?;
            if pieces.iter().any(|pieces| pieces.rows(piece) > 0) {
                runs.push((piece, SortedRun::collect(&own, task, &pieces, piece, stable)?));
            }
        }
        Ok(runs)
    });
    let (runs, report) = sorted.await?;
    let mut runs: Vec<(usize, SortedRun)> = runs.into_iter().flatten().collect();
    runs.sort_unstable_by_key(|(piece, _)| *piece);
    Ok((runs.into_iter().map(|(_, run)| run).collect(), report))
}
