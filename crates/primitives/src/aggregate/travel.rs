//! Workers go where the rows are: each has pieces of its own, with a table for each, and visits every
//! worker's place to aggregate what lies there for them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_runtime::{TaskContext, WorkerId};
use atoll_topology::{Bytes, NodeId};

use super::partitioned::{Made, Partitioned, Pieces};
use super::records::Columns;
use super::report::{Phase, Spent, Watch};
use super::table::Table;
use crate::shuffle::{Coordination, Moved, Order, Schedule, Shuffle, Visit};
use crate::{Context, PrimitiveError, TaskFn};

/// What a worker takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Luggage {
    Nothing,
    /// Its tables.
    Tables,
}

/// What travels with a worker, by name if not by memory.
struct Traveller {
    /// Where its tables lie.
    home: NodeId,
    /// Pieces with their tables; none before the first row.
    tables: Vec<(usize, Option<Table>)>,
    columns: Columns,
    spent: Spent,
}

/// Aggregates what was dealt, by workers on the way round the ring.
pub(super) async fn run(
    context: &Context,
    own: &Arc<Partitioned>,
    pieces: &Arc<Pieces>,
    luggage: Luggage,
) -> Result<Made, PrimitiveError> {
    // In step: workers that do not wait for one another end up in convoys (section 4.1.1).
    let shuffle =
        Shuffle { order: Order::Ring, moved: Moved::Threads, coordination: Coordination::Tight };
    let schedule = Schedule::of(context.runtime(), shuffle);
    let travellers = travellers(pieces, &schedule);
    let (shared, rows, workers) = (Arc::clone(own), Arc::clone(pieces), context.clone());
    let stops = schedule.clone();
    let visit = move |traveller: &mut Traveller, visit: &Visit, task: &TaskContext| {
        if luggage == Luggage::Tables {
            traveller.unpack_at(stops.node(visit.place), task)?;
        }
        traveller.aggregate(&workers, &shared, &rows, visit, task)
    };
    let shuffled = schedule.run(context, "aggregate", travellers, visit).await?;
    let mut spent = Spent::default();
    shuffled.states.iter().for_each(|traveller| spent += traveller.spent);
    let phase = Phase {
        name: "aggregate".into(),
        time: shuffled.report.time,
        bytes: shuffled.report.bytes(),
        spent: Some(spent),
    };
    let mut tasks: Vec<(_, TaskFn<Vec<RecordBatch>>)> = Vec::new();
    for traveller in shuffled.states {
        let (home, own) = (traveller.home, Arc::clone(own));
        tasks.push((Some(home), Box::new(move |_: &TaskContext| traveller.batches(&own))));
    }
    let (batches, report) = context.on_nodes("result", tasks).await?;
    Ok((batches.into_iter().flatten().collect(), vec![phase, Phase::of(&report)]))
}

/// One for each worker, with pieces that together have about as many rows as everybody's.
fn travellers(pieces: &Pieces, schedule: &Schedule) -> Vec<Traveller> {
    let traveller = |worker| Traveller {
        home: schedule.node(WorkerId(worker)),
        tables: Vec::new(),
        columns: Columns::default(),
        spent: Spent::default(),
    };
    let mut all: Vec<Traveller> = (0..schedule.workers() as u32).map(traveller).collect();
    let mut loads = vec![0; all.len()];
    for (piece, rows) in pieces.by_size() {
        let least = (0..loads.len()).min_by_key(|worker| loads[*worker]).unwrap_or(0);
        loads[least] += rows;
        all[least].tables.push((piece, None));
    }
    all
}

impl Traveller {
    /// Aggregates what lies for it at a stop.
    fn aggregate(
        &mut self,
        context: &Context,
        own: &Partitioned,
        pieces: &Pieces,
        visit: &Visit,
        task: &TaskContext,
    ) -> Result<(), PrimitiveError> {
        let Some(from) = &pieces.dealt[visit.source.index()] else { return Ok(()) };
        for (piece, table) in &mut self.tables {
            task.check()?;
            let table = match table {
                Some(table) => table,
                none => none.insert(own.table(context, pieces, *piece, (self.home, None))?),
            };
            let share = (*piece, 0, 1);
            let block_rows = context.tuning().block_rows;
            self.spent += from.update(table, share, block_rows, task, &mut self.columns)?;
            let bytes = from.bytes(*piece);
            task.count_read(from.home.unwrap_or(task.node()), Bytes(bytes as u64));
        }
        Ok(())
    }

    /// Copies its tables into a node's memory.
    fn unpack_at(&mut self, node: NodeId, task: &TaskContext) -> Result<(), PrimitiveError> {
        if node == self.home {
            return Ok(());
        }
        let mut watch = Watch::start();
        for table in self.tables.iter_mut().filter_map(|(_, table)| table.as_mut()) {
            task.check()?;
            task.count_read(self.home, Bytes(table.memory_bytes() as u64));
            table.move_to(node)?;
        }
        self.home = node;
        self.spent.copy += watch.lap();
        Ok(())
    }

    /// The result rows of its pieces.
    fn batches(self, own: &Partitioned) -> Result<Vec<RecordBatch>, PrimitiveError> {
        let tables = self.tables.into_iter().filter_map(|(_, table)| table);
        let batches = tables.map(|table| table.batch(&own.plan, Some(&own.packing)));
        // A table is dropped as soon as its batch is made.
        batches.collect()
    }
}
