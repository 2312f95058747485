//! Chooses the variant of an aggregation, with a reason (Li 2013, section 4.3: "a query optimizer capable of predicting
//! the expected number of distinct keys may then choose").
//!
//! - If all tables together fit the node's caches, each worker has its own.
//! - Otherwise rows are partitioned. On a machine with one node, neither rows nor workers need to move; on others a
//!   round of visits is simulated on the machine's controllers and links, for the ring and for both kinds of
//!   migration, and the fastest is taken.

use atoll_model::simulate::{
    Access, AccessKind, Interconnect, Protocol, SimulationError, StateCosts, ThreadState, Waiting,
    Work,
};
use atoll_runtime::WorkerId;
use atoll_topology::{Bytes, Knowledge, Machine, NodeId, links_assumed};

use super::Variant;
use crate::shuffle::{Coordination, Moved, Order, Schedule, Shuffle, Visit};

/// Fewer rows than this are not worth partitioning.
const PARTITIONED_ROWS_MIN: usize = 1 << 16;
/// Fewer rows than this are not worth a simulation.
const SIMULATED_ROWS_MIN: usize = 1 << 20;
/// Maximum number of simulated workers: a choice takes milliseconds.
const SIMULATED_WORKERS_MAX: usize = 256;
/// Assumed size of a node's last-level caches if it is unknown.
const CACHE_ASSUMED: Bytes = Bytes(32 << 20);
/// A key with this share of the rows keeps its worker busy alone when workers migrate.
const HOT_SHARE_MAX: f64 = 0.5;

/// Coherence of a machine without measurements: a directory, which asks only the owner of a line.
pub const DIRECTORY: Protocol = Protocol { header: 8.0, snoop: 0.0, meeting: 1.0 };

/// Estimates for an aggregation before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Rows.
    pub rows: usize,
    /// Expected groups.
    pub groups: usize,
    /// Size of a range that holds all keys, if it is not much larger than the number of groups: tables are arrays then.
    pub range: Option<usize>,
    /// Bytes of a row's key and values as partitioned.
    pub row_bytes: usize,
    /// Bytes of a group's key and states.
    pub group_bytes: usize,
    /// Groups of a piece, or of a worker that has only one piece, as in the paper.
    pub piece_groups: usize,
    /// Share of the rows that the most frequent key has.
    pub hot_share: f64,
}

/// Workers on a machine.
#[derive(Clone, Debug)]
pub struct WorkerNodes<'a> {
    /// The machine and its measurements.
    pub knowledge: &'a Knowledge,
    /// Node of each worker.
    pub workers: Vec<NodeId>,
    /// Its coherence: [`DIRECTORY`] where unknown.
    pub protocol: Protocol,
}

/// The chosen variant, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The variant, never [`Variant::Auto`].
    pub variant: Variant,
    /// The reason, for people.
    pub reason: String,
}

/// GB/s of aggregated rows without partitioning, which costs all variants the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Along the ring.
    pub ring: f64,
    /// With workers that migrate.
    pub migrate: f64,
    /// With workers that migrate and copy their tables.
    pub migrate_copy: f64,
}

/// Chooses the variant.
pub fn choose(work: &Workload, place: &WorkerNodes<'_>) -> Choice {
    let nodes = nodes(&place.workers);
    let per_node = place.workers.len().div_ceil(nodes.len().max(1));
    let cache = cache(&place.knowledge.machine, nodes.first().copied());
    let (tables, fits) = tables(work, per_node, cache);
    let groups = work.groups;
    let local = |reason: String| Choice { variant: Variant::Local, reason };
    if work.rows < PARTITIONED_ROWS_MIN {
        return local(format!("local: {} rows are not worth dealing", work.rows));
    }
    if fits {
        return local(format!(
            "local: {groups} groups expected, {tables} of tables on a node with {cache} of cache"
        ));
    }
    let many = format!(
        "{groups} groups expected, {tables} of local tables on a node with {cache} of cache"
    );
    let ring =
        |why: &str| Choice { variant: Variant::Ring, reason: format!("ring: {many}; {why}") };
    if nodes.len() < 2 {
        return ring("one node, nothing to migrate to");
    }
    if work.hot_share > HOT_SHARE_MAX {
        return ring("one key has most rows, and workers that migrate would wait for its worker");
    }
    if work.rows < SIMULATED_ROWS_MIN || place.workers.len() > SIMULATED_WORKERS_MAX {
        return ring("not simulated");
    }
    match predict(work, place) {
        Ok(predicted) => predicted.choice(&many),
        Err(error) => ring(&error.to_string()),
    }
}

impl Predicted {
    fn choice(&self, many: &str) -> Choice {
        let Self { ring, migrate, migrate_copy } = *self;
        let variant = match () {
            () if ring >= migrate && ring >= migrate_copy => Variant::Ring,
            () if migrate >= migrate_copy => Variant::Migrate,
            () => Variant::MigrateCopy,
        };
        let reason = format!(
            "{variant}: {many}; predicted: ring {ring:.1}, migrate {migrate:.1}, migrate and copy \
             {migrate_copy:.1} GB/s"
        );
        Choice { variant, reason }
    }
}

/// Nodes with workers.
fn nodes(workers: &[NodeId]) -> Vec<NodeId> {
    let mut nodes = workers.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Last-level caches of a node.
fn cache(machine: &Machine, node: Option<NodeId>) -> Bytes {
    let of = |node| machine.domains_of(node).filter_map(|domain| domain.cache);
    let sum = node.map_or(0, |node| of(node).map(|size| size.0).sum());
    if sum > 0 { Bytes(sum) } else { CACHE_ASSUMED }
}

/// Bytes of a node's local tables, and whether they are near enough. Arrays are touched once for each row and
/// prefetched, so a quarter of them may lie in memory. Hash tables, whose slots are as large and are looked up first,
/// may take an eighth of the caches: beyond that, partitioning rows is faster, especially as the estimate for skewed
/// keys is a lower bound.
fn tables(work: &Workload, per_node: usize, cache: Bytes) -> (Bytes, bool) {
    let groups = work.range.unwrap_or(work.groups);
    let slots = if work.range.is_some() { 1 } else { 32 };
    let bytes = groups.saturating_mul(work.group_bytes + slots).saturating_mul(per_node) as u64;
    let most = if work.range.is_some() { cache.0 / 4 * 5 } else { cache.0 / 8 };
    (Bytes(bytes), bytes <= most)
}

/// Predicts the throughput of the partitioned variants.
///
/// # Errors
/// [`SimulationError`] for a machine whose links are not known and cannot be assumed.
pub fn predict(work: &Workload, place: &WorkerNodes<'_>) -> Result<Predicted, SimulationError> {
    let mut linked;
    let knowledge = match place.knowledge.machine.links.is_empty() {
        false => place.knowledge,
        true => {
            linked = place.knowledge.clone();
            linked.machine.links = links_assumed(&linked.machine);
            &linked
        }
    };
    let simulated = Simulated {
        interconnect: Interconnect::from_knowledge(knowledge, place.protocol)?,
        costs: StateCosts::from_knowledge(knowledge)?,
        work,
        place,
    };
    Ok(Predicted {
        ring: simulated.bandwidth(Variant::Ring)?,
        migrate: simulated.bandwidth(Variant::Migrate)?,
        migrate_copy: simulated.bandwidth(Variant::MigrateCopy)?,
    })
}

struct Simulated<'a> {
    interconnect: Interconnect,
    costs: StateCosts,
    work: &'a Workload,
    place: &'a WorkerNodes<'a>,
}

impl Simulated<'_> {
    /// GB/s of one round of visits, one per node; all rounds are alike.
    fn bandwidth(&self, variant: Variant) -> Result<f64, SimulationError> {
        let moved = if variant == Variant::Ring { Moved::Pulled } else { Moved::Threads };
        let shuffle = Shuffle { order: Order::Ring, moved, coordination: Coordination::Tight };
        let workers = self.place.workers.len();
        let machine = &self.place.knowledge.machine;
        let schedule = Schedule::new(machine, self.place.workers.clone(), shuffle);
        let round = nodes(&self.place.workers).len();
        let threads: Vec<Vec<Work>> = (0..workers as u32)
            .map(|worker| {
                let turns = schedule.turns(WorkerId(worker)).take(round);
                turns.map(|visit| self.visit(variant, &schedule, &visit)).collect()
            })
            .collect();
        let rows = self.work.rows as f64 * round as f64 / workers as f64;
        let outcome = self.interconnect.run(&threads, Waiting::Tight)?;
        Ok(rows * self.work.row_bytes as f64 / outcome.time)
    }

    /// A visit: the node of the rows, and the node of the worker's state.
    fn visit(&self, variant: Variant, schedule: &Schedule, visit: &Visit) -> Work {
        let workers = schedule.workers() as f64;
        let at = schedule.node(visit.place);
        let home = schedule.home(visit.source);
        let rows = self.work.rows as f64 / (workers * workers);
        let bytes = rows * self.work.row_bytes as f64;
        let own_groups = self.work.groups as f64 / workers;
        let pieces = (own_groups / self.work.piece_groups.max(1) as f64).max(1.0);
        let state = ThreadState {
            bytes: own_groups / pieces * self.work.group_bytes as f64,
            accesses: rows / pieces,
            threads: workers / nodes(&self.place.workers).len() as f64,
        };
        let (of_state, own) = match variant {
            Variant::MigrateCopy => self.costs.copies(&state, at, before(schedule, visit)),
            Variant::Migrate => self.costs.moves(&state, at, schedule.home(visit.actor)),
            _ => self.costs.stays(&state, at),
        };
        let mut accesses = vec![Access { at, home, bytes, kind: AccessKind::Read }];
        let all = of_state.into_iter().map(|it| Access { bytes: it.bytes * pieces, ..it });
        accesses.extend(all);
        Work { accesses, own: own * pieces }
    }
}

/// Previous node of the visiting worker's state.
fn before(schedule: &Schedule, visit: &Visit) -> NodeId {
    match visit.step.checked_sub(1) {
        Some(step) => schedule.node(schedule.visit(visit.actor, step).place),
        None => schedule.home(visit.actor),
    }
}
