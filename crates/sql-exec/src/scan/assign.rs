//! Which rows each partition of a scan reads.
//!
//! One partition a worker, node-major. A chunk is scanned by the workers of its owner (of the
//! nearest node with workers, where the owner has none); a chunk without an owner by any. When the
//! table is sorted by a key, its chunks already lie in the order of the workers, and no key may be
//! split between two partitions, the cuts fall between keys instead of between blocks, so that
//! grouping and joining by that key need no exchange. The same holds where few rows got newer values or
//! came back since: their chunks are read with those of the same keys.

use std::ops::Range;

use atoll_runtime::{Runtime, WorkerId};
use atoll_store::table::{BLOCK_ROWS, RisingColumn, TableSnapshot, first_at_least};
use atoll_topology::NodeId;

/// Rows of one chunk that one partition reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    /// Number of the chunk in the snapshot.
    pub(crate) chunk: usize,
    /// Number of the copy that is nearest to the reader.
    pub(crate) copy: usize,
    /// Rows of the chunk.
    pub(crate) rows: Range<usize>,
}

/// Where a sorted table is cut: partition p holds the keys from `points[p - 1]` to below
/// `points[p]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// The column, which rises along few chains of chunks.
    pub(crate) column: usize,
    /// Strictly rising whole numbers in the unit of the stored column, one fewer than partitions.
    pub(crate) points: Vec<i64>,
}

/// Fewest rows a table has to have for more than one partition: below, starting tasks costs more
/// than reading.
const PARALLEL_ROWS: usize = 2 * BLOCK_ROWS;

/// Number of partitions in which a table is scanned.
pub(crate) fn partition_count(snapshot: &TableSnapshot, runtime: &Runtime) -> usize {
    if snapshot.rows < PARALLEL_ROWS { 1 } else { runtime.worker_count() }
}

/// Pieces by partition, cut between blocks.
pub(crate) fn by_blocks(snapshot: &TableSnapshot, runtime: &Runtime) -> Vec<Vec<RowRange>> {
    let partitions = partition_count(snapshot, runtime);
    let nodes: Vec<NodeId> = (0..partitions).map(|p| runtime.node_of(WorkerId(p as u32))).collect();
    let mut parts = vec![Vec::new(); partitions];
    let anyone: Vec<usize> = (0..partitions).collect();
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for (number, chunk) in snapshot.chunks.iter().enumerate() {
        let readers = match chunk.owner {
            Some(owner) => workers_near(owner, &nodes, runtime),
            None => anyone.clone(),
        };
        match groups.iter_mut().find(|(of, _)| *of == readers) {
            Some((_, chunks)) => chunks.push(number),
            None => groups.push((readers, vec![number])),
        }
    }
    for (readers, chunks) in groups {
        deal(snapshot, &chunks, &readers, &mut parts);
    }
    // Pieces of several groups keep the order of the table.
    parts.iter_mut().for_each(|pieces| pieces.sort_by_key(|p: &RowRange| (p.chunk, p.rows.start)));
    choose_copies(snapshot, runtime, &mut parts);
    parts
}

/// A chunk that a worker scans as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedChunk {
    /// Number of the chunk in the snapshot.
    pub chunk: usize,
    /// Number of the copy that is nearest to the worker.
    pub copy: usize,
}

/// Chunks by worker, each to that of those near its owner that has the fewest rows so far: the shards of a
/// clock scan, until its next cycle. Workers whose cores are taken have none.
pub fn by_chunks(snapshot: &TableSnapshot, runtime: &Runtime) -> Vec<Vec<ScannedChunk>> {
    // Cores come and go (`atoll.cores`): those that are left get the chunks of the others.
    let active = runtime.active_workers();
    let nodes: Vec<NodeId> = active.iter().map(|worker| runtime.node_of(*worker)).collect();
    let mut parts = vec![Vec::new(); runtime.worker_count()];
    let mut rows = vec![0; active.len()];
    for (number, chunk) in snapshot.chunks.iter().enumerate() {
        let near = match chunk.owner {
            Some(owner) => workers_near(owner, &nodes, runtime),
            None => (0..active.len()).collect(),
        };
        let Some(place) = near.into_iter().min_by_key(|place| rows[*place]) else { continue };
        let copy = nearest_copy(snapshot, runtime, number, nodes[place]);
        parts[active[place].index()].push(ScannedChunk { chunk: number, copy });
        rows[place] += chunk.rows;
    }
    parts
}

/// Partitions on the owner, or on the nearest node that has any.
fn workers_near(owner: NodeId, nodes: &[NodeId], runtime: &Runtime) -> Vec<usize> {
    let by_distance = runtime.machine().nodes_by_distance(owner);
    let near = by_distance.iter().map(|node| node.id).find(|id| nodes.contains(id));
    match near {
        Some(id) => (0..nodes.len()).filter(|p| nodes[*p] == id).collect(),
        None => (0..nodes.len()).collect(),
    }
}

/// Deals the rows of `chunks`, in order, evenly over the partitions `readers`.
fn deal(
    snapshot: &TableSnapshot,
    chunks: &[usize],
    readers: &[usize],
    parts: &mut [Vec<RowRange>],
) {
    let total: usize = chunks.iter().map(|c| snapshot.chunks[*c].rows).sum();
    let end_of = |reader: usize| total * (reader + 1) / readers.len();
    let (mut reader, mut dealt) = (0, 0);
    for &chunk in chunks {
        let rows = snapshot.chunks[chunk].rows;
        let mut start = 0;
        while start < rows {
            while reader + 1 < readers.len() && dealt >= end_of(reader) {
                reader += 1;
            }
            let left = match reader + 1 == readers.len() {
                true => rows - start,
                false => (end_of(reader) - dealt).next_multiple_of(BLOCK_ROWS),
            };
            let end = rows.min(start + left);
            parts[readers[reader]].push(RowRange { chunk, copy: 0, rows: start..end });
            dealt += end - start;
            start = end;
        }
    }
}

/// Cut points that give every partition about the same number of rows of the largest chain of chunks; `None`
/// if the column has too few distinct values for that.
pub(crate) fn cut_points(
    snapshot: &TableSnapshot,
    rising: &RisingColumn,
    partitions: usize,
) -> Option<Cuts> {
    let rows_of =
        |chain: &&Vec<usize>| chain.iter().map(|chunk| snapshot.live_rows(*chunk)).sum::<usize>();
    let largest = rising.chains.iter().max_by_key(rows_of)?;
    let (column, rows) = (rising.column, rows_of(&largest));
    let points: Option<Vec<i64>> = (1..partitions)
        .map(|p| snapshot.whole_number_at(column, largest, rows * p / partitions))
        .collect();
    let points = points?;
    points.windows(2).all(|w| w[0] < w[1]).then_some(Cuts { column, points })
}

/// Whether no partition has more than twice its share of the rows.
pub(crate) fn are_balanced(parts: &[Vec<RowRange>]) -> bool {
    let rows = |pieces: &Vec<RowRange>| pieces.iter().map(|piece| piece.rows.len()).sum::<usize>();
    let all: usize = parts.iter().map(rows).sum();
    parts.iter().all(|pieces| rows(pieces) * parts.len() <= 2 * all)
}

/// Pieces by partition, cut at keys; `None` if that would read much of the table from nodes other
/// than its owners'.
pub(crate) fn by_cuts(
    snapshot: &TableSnapshot,
    runtime: &Runtime,
    rising: &RisingColumn,
    cuts: &Cuts,
) -> Option<Vec<Vec<RowRange>>> {
    let mut parts = vec![Vec::new(); cuts.points.len() + 1];
    for chain in &rising.chains {
        let mut from = (0, 0);
        for (partition, pieces) in parts.iter_mut().enumerate() {
            let to = match cuts.points.get(partition) {
                Some(point) => position_of(snapshot, chain, cuts.column, *point)?,
                None => (chain.len(), 0),
            };
            pieces.extend(between(snapshot, chain, from, to));
            from = to;
        }
    }
    let mut moved = 0;
    for (partition, pieces) in parts.iter_mut().enumerate() {
        // Pieces of several chains keep the order of the table.
        pieces.sort_by_key(|piece| (piece.chunk, piece.rows.start));
        let node = runtime.node_of(WorkerId(partition as u32));
        let foreign = |piece: &&RowRange| {
            snapshot.chunks[piece.chunk].owner.is_some_and(|owner| owner != node)
        };
        moved += pieces.iter().filter(foreign).map(|piece| piece.rows.len()).sum::<usize>();
    }
    // A boundary chunk is shared; more than an eighth elsewhere is a table loaded in other order.
    let stored: usize = snapshot.chunks.iter().map(|chunk| chunk.rows).sum();
    if moved * 8 > stored {
        return None;
    }
    choose_copies(snapshot, runtime, &mut parts);
    Some(parts)
}

/// The first row of a chain whose key is at or above `point`: the position of its chunk in the chain, and the row.
fn position_of(
    snapshot: &TableSnapshot,
    chain: &[usize],
    column: usize,
    point: i64,
) -> Option<(usize, usize)> {
    for (place, number) in chain.iter().enumerate() {
        let chunk = &snapshot.chunks[*number];
        let (_, last) = chunk.stats[column].rising?;
        if last >= point {
            let blocks = chunk.copies.first()?.blocks.iter().map(|block| &block[column]);
            return Some((place, first_at_least(blocks, point)?));
        }
    }
    Some((chain.len(), 0))
}

/// Rows of a chain from one position to another.
fn between(
    snapshot: &TableSnapshot,
    chain: &[usize],
    from: (usize, usize),
    to: (usize, usize),
) -> Vec<RowRange> {
    let mut pieces = Vec::new();
    for (place, &chunk) in chain.iter().enumerate().take(to.0 + 1).skip(from.0) {
        let start = if place == from.0 { from.1 } else { 0 };
        let end = if place == to.0 { to.1 } else { snapshot.chunks[chunk].rows };
        if start < end {
            pieces.push(RowRange { chunk, copy: 0, rows: start..end });
        }
    }
    pieces
}

/// Where a chunk has several copies, each partition reads the nearest.
fn choose_copies(snapshot: &TableSnapshot, runtime: &Runtime, parts: &mut [Vec<RowRange>]) {
    for (partition, pieces) in parts.iter_mut().enumerate() {
        let node = runtime.node_of(WorkerId(partition as u32));
        for piece in pieces {
            piece.copy = nearest_copy(snapshot, runtime, piece.chunk, node);
        }
    }
}

fn nearest_copy(snapshot: &TableSnapshot, runtime: &Runtime, chunk: usize, node: NodeId) -> usize {
    let copies = &snapshot.chunks[chunk].copies;
    let distance =
        |copy: &usize| copies[*copy].home().and_then(|home| runtime.machine().distance(node, home));
    (0..copies.len()).min_by_key(|c| distance(c).unwrap_or(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use atoll_placement::{Arena, Strategy};
    use atoll_runtime::RuntimeOptions;
    use atoll_store::table::{ChunkWriter, Destination};
    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;
    use atoll_topology::Machine;
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    const CHUNKS: usize = 160;
    const ROWS: usize = 50;

    /// A table whose chunks are dealt to the nodes in turn.
    fn dealt_table(machine: &Arc<Machine>, kernel: &Arc<SimulatedKernel>) -> TableSnapshot {
        let arena = Arena::new(Arc::clone(machine), Arc::clone(kernel) as _, None);
        let (machine, strategy) = (Arc::clone(machine), Strategy::Aligned);
        let nodes: Vec<NodeId> = machine.nodes_with_cpus().map(|node| node.id).collect();
        let destination = Destination { machine, arena, strategy };
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        let chunk = |number: usize| {
            let node = nodes[number % nodes.len()];
            let (schema, destination) = (Arc::clone(&schema), destination.clone());
            let mut writer = ChunkWriter::new("t".into(), schema, destination, node, number);
            writer.write(&batch).unwrap();
            Arc::new(writer.finish().unwrap().remove(0))
        };
        let chunks = (0..CHUNKS).map(chunk).collect();
        TableSnapshot::new(schema, chunks)
    }

    #[test]
    fn chunks_stay_on_their_node_and_are_balanced_also_as_workers_leave() {
        for machine in
            [machines::two_nodes(), machines::four_nodes(), machines::eight_uneven_nodes()]
        {
            let machine = Arc::new(machine);
            let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
            let snapshot = dealt_table(&machine, &kernel);
            let cpus: usize = machine.nodes_with_cpus().map(|node| node.cpus.len()).sum();
            for threads in [cpus, cpus / 2, 2, 1] {
                let options = RuntimeOptions { threads: Some(threads), ..Default::default() };
                let runtime =
                    Runtime::start(Arc::clone(&machine), Arc::clone(&kernel) as _, options)
                        .unwrap();
                let mut all = Vec::new();
                let mut rows: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
                for (worker, chunks) in by_chunks(&snapshot, &runtime).into_iter().enumerate() {
                    let node = runtime.node_of(WorkerId(worker as u32));
                    for ScannedChunk { chunk, .. } in &chunks {
                        let owner = snapshot.chunks[*chunk].owner.unwrap();
                        assert!(owner == node || runtime.pool(owner).is_none());
                        all.push(*chunk);
                    }
                    rows.entry(node).or_default().push(chunks.len() * ROWS);
                }
                all.sort_unstable();
                assert_eq!(all, Vec::from_iter(0..CHUNKS), "each chunk has one worker");
                for (node, rows) in rows {
                    let (least, most) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
                    assert!(most - least <= ROWS, "{threads} threads, node {node}: {rows:?}");
                }
            }
        }
    }

    #[test]
    fn workers_whose_cores_are_taken_hand_their_chunks_over() {
        let machine = Arc::new(machines::four_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        let snapshot = dealt_table(&machine, &kernel);
        let runtime =
            Runtime::start(Arc::clone(&machine), kernel as _, Default::default()).unwrap();
        let node = |number: usize| machine.nodes[number].cpus.iter();
        for given in [1, 3, 5] {
            // All of node 2, then some of node 0.
            let cpus = node(2).chain(node(0)).take(given).collect();
            runtime.confine(&cpus).unwrap();
            let parts = by_chunks(&snapshot, &runtime);
            let busy: Vec<usize> = (0..parts.len()).filter(|at| !parts[*at].is_empty()).collect();
            let active: Vec<usize> =
                runtime.active_workers().into_iter().map(WorkerId::index).collect();
            assert_eq!((&busy, busy.len()), (&active, given));
            let mut all: Vec<usize> = parts.iter().flatten().map(|scanned| scanned.chunk).collect();
            all.sort_unstable();
            assert_eq!(all, Vec::from_iter(0..CHUNKS), "each chunk has one worker");
        }
    }
}
