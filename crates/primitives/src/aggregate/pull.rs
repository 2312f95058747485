//! Pieces come to the workers: each takes a piece, reads in some order what all workers have for it,
//! and goes on with the next. No row is copied but by the partitioning.
//!
//! A piece's table stays in the second-level cache while the piece is read, so a worker turns to all
//! sources for each piece; the order of its turns is that of the shuffle's schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use atoll_runtime::{TaskContext, WorkerId};
use atoll_topology::Bytes;

use super::partitioned::{Made, Partitioned, Pieces};
use super::records::Columns;
use super::report::{Phase, Spent, Watch};
use super::table::Table;
use crate::shuffle::{Coordination, Moved, Order, Schedule, Shuffle};
use crate::{Context, PrimitiveError, TaskFn};

/// A piece with more than this many times its even share is shared by workers.
const LARGE: usize = 4;
/// A piece smaller than this is not shared, rows.
const SHARED_ROWS_MIN: usize = 1 << 18;

/// What the tasks share.
struct Pull {
    own: Arc<Partitioned>,
    pieces: Arc<Pieces>,
    schedule: Schedule,
    /// Pieces to be aggregated: (piece, part of it, parts).
    shares: Vec<(usize, usize, usize)>,
    taken: AtomicUsize,
}

/// What a worker made of pieces.
#[derive(Default)]
struct Mine {
    batches: Vec<RecordBatch>,
    /// Tables of parts of a piece.
    parts: Vec<(usize, Table)>,
    spent: Spent,
}

/// Aggregates piece by piece, the sources of each in this order.
pub(super) async fn run(
    context: &Context,
    own: &Arc<Partitioned>,
    pieces: &Arc<Pieces>,
    order: Order,
) -> Result<Made, PrimitiveError> {
    let shuffle = Shuffle { order, moved: Moved::Pulled, coordination: Coordination::Loose };
    let pull = Arc::new(Pull {
        own: Arc::clone(own),
        pieces: Arc::clone(pieces),
        schedule: Schedule::of(context.runtime(), shuffle),
        shares: shares(pieces, own.input.rows),
        taken: AtomicUsize::new(0),
    });
    let (shared, workers) = (Arc::clone(&pull), context.clone());
    let task = move |worker, task: &TaskContext| shared.aggregate(&workers, worker, task);
    let (made, report) = context.on_workers("aggregate", task).await?;
    let mut spent = Spent::default();
    let (mut batches, mut parts) = (Vec::new(), Vec::new());
    for worker in made {
        batches.extend(worker.batches);
        parts.extend(worker.parts);
        spent += worker.spent;
    }
    let mut phases = vec![Phase::of(&report).with(spent)];
    if !parts.is_empty() {
        let (merged, phase) = merge(context, own, parts).await?;
        batches.extend(merged);
        phases.push(phase);
    }
    Ok((batches, phases))
}

/// The pieces, large ones in parts.
fn shares(pieces: &Pieces, rows: usize) -> Vec<(usize, usize, usize)> {
    let workers = pieces.dealt.len();
    let even = rows.div_ceil(pieces.count().max(workers * LARGE));
    let parts = |rows: usize| match rows > SHARED_ROWS_MIN && rows > even * LARGE {
        true => workers * 2,
        false => 1,
    };
    let shares = pieces.by_size().into_iter().flat_map(|(piece, rows)| {
        let parts = parts(rows);
        (0..parts).map(move |part| (piece, part, parts))
    });
    shares.collect()
}

impl Pull {
    fn aggregate(
        &self,
        context: &Context,
        worker: WorkerId,
        task: &TaskContext,
    ) -> Result<Mine, PrimitiveError> {
        let mut made = Mine::default();
        let mut kept: Option<Table> = None;
        let mut columns = Columns::default();
        let next = || self.shares.get(self.taken.fetch_add(1, Ordering::Relaxed)).copied();
        while let Some((piece, part, parts)) = next() {
            task.check()?;
            let place = (task.node(), kept.take());
            let mut table = self.own.table(context, &self.pieces, piece, place)?;
            for visit in self.schedule.turns(worker) {
                let Some(from) = &self.pieces.dealt[visit.source.index()] else { continue };
                let share = (piece, part, parts);
                let block_rows = context.tuning().block_rows;
                let spent = from.update(&mut table, share, block_rows, task, &mut columns)?;
                made.spent += spent;
                let bytes = from.bytes(piece) / parts;
                task.count_read(from.home.unwrap_or(task.node()), Bytes(bytes as u64));
            }
            if parts > 1 {
                made.parts.push((piece, table));
            } else {
                made.batches.push(table.batch(&self.own.plan, Some(&self.own.packing))?);
                kept = Some(table);
            }
        }
        Ok(made)
    }
}

impl super::records::Dealt {
    /// Aggregates a part of a piece into a table; tells what that took.
    pub(super) fn update(
        &self,
        table: &mut Table,
        (piece, part, parts): (usize, usize, usize),
        block_rows: usize,
        task: &TaskContext,
        columns: &mut Columns,
    ) -> Result<Spent, PrimitiveError> {
        let mut spent = Spent::default();
        let mut watch = Watch::start();
        self.read(piece, block_rows, (part, parts), columns, |columns| {
            spent.read += watch.lap();
            task.check()?;
            if !table.update_words(&columns.words, &columns.blocks())? {
                return Err(super::feed::outside());
            }
            spent.update += watch.lap();
            Ok(())
        })?;
        Ok(spent)
    }
}

/// Tables of the parts of the same piece in one.
async fn merge(
    context: &Context,
    own: &Arc<Partitioned>,
    mut parts: Vec<(usize, Table)>,
) -> Result<(Vec<RecordBatch>, Phase), PrimitiveError> {
    parts.sort_by_key(|(piece, _)| *piece);
    let mut pieces: Vec<(usize, Vec<Table>)> = Vec::new();
    for (piece, table) in parts {
        match pieces.last_mut().filter(|(last, _)| *last == piece) {
            Some((_, tables)) => tables.push(table),
            None => pieces.push((piece, vec![table])),
        }
    }
    let mut tasks: Vec<(_, TaskFn<Option<RecordBatch>>)> = Vec::new();
    for (_, tables) in pieces {
        let own = Arc::clone(own);
        let home = tables[0].home();
        let task = move |task: &TaskContext| {
            let mut tables = tables.into_iter();
            let Some(mut all) = tables.next() else { return Ok(None) };
            for table in tables {
                all.merge(&table, &|| Ok(task.check()?))?;
            }
            all.batch(&own.plan, Some(&own.packing)).map(Some)
        };
        tasks.push((home, Box::new(task)));
    }
    let (batches, report) = context.on_nodes("merge", tasks).await?;
    Ok((batches.into_iter().flatten().collect(), Phase::of(&report)))
}
