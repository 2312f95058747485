//! The runtime: pools over a machine.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_placement::Kernel;
use atoll_topology::{Bytes, CpuSet, Machine, NodeId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::group::GroupStart;
use crate::layout::{self, GroupPlan};
use crate::seat::WorkerSeat;
use crate::{
    ByteCounters, ByteMatrix, Pool, RuntimeError, RuntimeOptions, Worker, WorkerGroup, WorkerId,
};

/// Numbers the runtimes of a process, so that a thread knows which one it belongs to.
static RUNTIMES: AtomicU64 = AtomicU64::new(0);

/// One pool of bound workers per node. Clones share the pools.
///
/// When the last clone is dropped the pools end in the background: futures are dropped at their
/// next await, threads end after that. Dropping never waits and never panics, be it inside another
/// runtime or on a worker of its own. A future that holds a clone keeps the pools alive.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<RuntimeInner>);

#[derive(Debug)]
struct RuntimeInner {
    number: u64,
    machine: Arc<Machine>,
    kernel: Arc<dyn Kernel>,
    pools: Vec<Pool>,
    groups: Vec<Arc<WorkerGroup>>,
    /// Group (position) of each worker.
    group_of: Vec<usize>,
    /// Bytes that were read by work of any kind.
    traffic: ByteCounters,
    /// Held while the workers are confined: one caller after the other.
    confining: Mutex<()>,
}

impl Runtime {
    /// Starts the pools and waits until every worker has bound itself and reported.
    pub fn start(
        machine: Arc<Machine>,
        kernel: Arc<dyn Kernel>,
        options: RuntimeOptions,
    ) -> Result<Runtime, RuntimeError> {
        if options.name.contains('\0') {
            return Err(RuntimeError::Name { name: options.name });
        }
        let number = RUNTIMES.fetch_add(1, Ordering::Relaxed);
        let plans = layout::plan(&machine, &options)?;
        let groups = start_groups(number, plans, &kernel, &options)?;
        let group_of = groups.iter().enumerate();
        let group_of = group_of.flat_map(|(at, group)| vec![at; group.workers().len()]).collect();
        let pools = pools(&groups);
        let (traffic, confining) = (ByteCounters::new(&machine), Mutex::new(()));
        let inner =
            RuntimeInner { number, machine, kernel, pools, groups, group_of, traffic, confining };
        Ok(Runtime(Arc::new(inner)))
    }

    /// The machine it runs on.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.0.machine
    }

    /// The kernel that bound its threads.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.0.kernel
    }

    /// One pool per node that has workers, ordered by node.
    pub fn pools(&self) -> &[Pool] {
        &self.0.pools
    }

    /// The pool of a node. Returns None if the node has no workers.
    pub fn pool(&self, node: NodeId) -> Option<&Pool> {
        let pools = &self.0.pools;
        pools.binary_search_by_key(&node, Pool::node).ok().map(|at| &pools[at])
    }

    /// The node's pool, or the nearest node's if it has none. Returns None for a node the machine does
    /// not have.
    pub fn pool_nearest(&self, node: NodeId) -> Option<&Pool> {
        self.pool(node).or_else(|| {
            self.machine().node(node)?;
            let nearest = self.machine().nodes_by_distance(node);
            nearest.into_iter().find_map(|node| self.pool(node.id))
        })
    }

    /// All workers, ordered by number.
    pub fn workers(&self) -> Vec<Worker> {
        self.0.groups.iter().flat_map(|group| group.workers()).cloned().collect()
    }

    /// Number of workers, at least one.
    pub fn worker_count(&self) -> usize {
        self.0.group_of.len()
    }

    /// Node of a worker. Numbers beyond the last wrap around.
    pub fn node_of(&self, worker: WorkerId) -> NodeId {
        self.group(self.group_of(worker)).node()
    }

    /// Handle of a worker's group. Numbers beyond the last wrap around.
    pub fn handle_of(&self, worker: WorkerId) -> &Handle {
        self.group(self.group_of(worker)).handle()
    }

    /// Spawns a future in the group (domain) of that worker, so on its node; any worker of the
    /// group may run it. Numbers beyond the last wrap around.
    pub fn spawn_on<F>(&self, worker: WorkerId, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle_of(worker).spawn(future)
    }

    /// Runs a future on the calling thread, which stays unbound; what it spawns with `tokio::spawn`
    /// goes to the first group.
    ///
    /// # Panics
    /// On a thread that already runs a tokio runtime, as a worker of the pools does: await there.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.group(0).handle().block_on(future)
    }

    /// Worker that the calling thread is. Returns None on a thread outside of the pools and on one that
    /// serves `spawn_blocking`.
    pub fn current_worker(&self) -> Option<WorkerId> {
        WorkerSeat::here(self.0.number)?.worker
    }

    /// Node the calling thread runs on: its pool's if its binding was verified, otherwise the
    /// node of the cpu that the kernel reports now. None if unknown.
    pub fn current_node(&self) -> Option<NodeId> {
        let seat = WorkerSeat::here(self.0.number);
        match seat {
            Some(seat) if seat.bound && !self.group(seat.group).reach().is_away() => {
                Some(self.group(seat.group).node())
            }
            _ => self.cpu_node().or(seat.map(|seat| self.group(seat.group).node())),
        }
    }

    /// Restricts the workers, whatever they are doing, and later threads to these cpus. A worker whose
    /// domain has none of them runs on those of its node, else of the nearest node that has some; the number of
    /// workers does not change. Passing all cpus of the workers removes the restriction.
    ///
    /// # Errors
    /// If the workers own none of these cpus: then nothing is changed. If the kernel refuses to move one: the
    /// others are moved.
    pub fn confine(&self, cpus: &CpuSet) -> Result<(), RuntimeError> {
        let own = self.cpus();
        let given = own.intersection(cpus);
        if given.is_empty() {
            return Err(RuntimeError::NoneLeft { asked: cpus.clone(), own });
        }
        let _one = self.0.confining.lock();
        let give = |group: &Arc<WorkerGroup>| group.reach().give(&self.nearest_of(&given, group));
        let refused: Vec<_> = self.groups().iter().filter_map(|group| give(group).err()).collect();
        match refused.into_iter().next() {
            None => Ok(()),
            Some(source) => Err(RuntimeError::NotConfined { asked: given, source }),
        }
    }

    /// Those of the cpus in a group, else in its node, else in the nearest node that has some.
    fn nearest_of(&self, given: &CpuSet, group: &WorkerGroup) -> CpuSet {
        let nodes = self.machine().nodes_by_distance(group.node());
        let near = nodes.into_iter().map(|node| &node.cpus);
        let mut candidates = std::iter::once(group.cpus()).chain(near);
        let some = |cpus: &CpuSet| Some(cpus.intersection(given)).filter(|both| !both.is_empty());
        candidates.find_map(some).unwrap_or_else(|| given.clone())
    }

    /// The cpus of the workers.
    pub fn cpus(&self) -> CpuSet {
        self.groups().iter().fold(CpuSet::new(), |all, group| all.union(group.cpus()))
    }

    /// Those of them on which the workers may run now.
    pub fn cpus_given(&self) -> CpuSet {
        self.groups().iter().fold(CpuSet::new(), |all, group| all.union(&group.reach().given()))
    }

    /// For each group as many workers as it has usable cpus now; at least one in total.
    pub fn active_workers(&self) -> Vec<WorkerId> {
        let active = |group: &Arc<WorkerGroup>| {
            let given = group.reach().given().intersection(group.cpus());
            let sits = |worker: &&Worker| !worker.cpus.intersection(&given).is_empty();
            let all = given.len() == group.cpus().len();
            let most = if all { group.workers().len() } else { given.len() };
            group
                .workers()
                .iter()
                .filter(sits)
                .take(most)
                .map(|worker| worker.id)
                .collect::<Vec<_>>()
        };
        let workers: Vec<WorkerId> = self.groups().iter().flat_map(active).collect();
        if workers.is_empty() { vec![WorkerId(0)] } else { workers }
    }

    /// All threads of the pools now, by the kernel's numbers: workers, and blocking threads.
    pub fn threads(&self) -> Vec<u32> {
        self.groups().iter().flat_map(|group| group.reach().threads()).collect()
    }

    /// Adds what the calling thread has read from memory with that home.
    pub fn count_read(&self, home: NodeId, bytes: Bytes) {
        if let Some(reader) = self.current_node() {
            self.0.traffic.count(reader, home, bytes);
        }
    }

    /// The counts since the start.
    pub fn traffic(&self) -> ByteMatrix {
        self.0.traffic.snapshot()
    }

    fn cpu_node(&self) -> Option<NodeId> {
        let cpu = self.kernel().current_cpu().ok()?;
        self.machine().cpu(cpu).map(|cpu| cpu.node)
    }

    pub(crate) fn groups(&self) -> &[Arc<WorkerGroup>] {
        &self.0.groups
    }

    pub(crate) fn group(&self, group: usize) -> &WorkerGroup {
        &self.0.groups[group]
    }

    /// Position of a worker's group.
    pub(crate) fn group_of(&self, worker: WorkerId) -> usize {
        self.0.group_of[worker.index() % self.0.group_of.len()]
    }
}

fn start_groups(
    runtime: u64,
    plans: Vec<GroupPlan>,
    kernel: &Arc<dyn Kernel>,
    options: &RuntimeOptions,
) -> Result<Vec<Arc<WorkerGroup>>, RuntimeError> {
    let mut groups = Vec::with_capacity(plans.len());
    let mut first = 0;
    for (group, plan) in plans.into_iter().enumerate() {
        let workers = plan.seats.len() as u32;
        let (name, kernel) = (options.name.as_str(), kernel.clone());
        let (first_id, stack_bytes) = (WorkerId(first), options.stack_bytes);
        let start = GroupStart { runtime, group, first: first_id, plan, name, stack_bytes, kernel };
        let started = start.start()?;
        if options.strict {
            check_bound(&started)?;
        }
        groups.push(Arc::new(started));
        first += workers;
    }
    Ok(groups)
}

fn check_bound(group: &WorkerGroup) -> Result<(), RuntimeError> {
    match group.workers().iter().find(|worker| !worker.binding.is_bound()) {
        None => Ok(()),
        Some(Worker { id, node, domain, cpus, binding, .. }) => Err(RuntimeError::NotBound {
            worker: *id,
            node: *node,
            domain: *domain,
            cpus: cpus.clone(),
            binding: binding.clone(),
        }),
    }
}

fn pools(groups: &[Arc<WorkerGroup>]) -> Vec<Pool> {
    let mut first = 0;
    let mut pools = Vec::new();
    for groups in groups.chunk_by(|a, b| a.node() == b.node()) {
        pools.push(Pool::new(groups[0].node(), groups.to_vec(), first));
        first += groups.len();
    }
    pools
}
