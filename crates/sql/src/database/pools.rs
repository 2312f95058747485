//! Pools: workers with cores of their own for a class of statements.
//!
//! ```text
//! all cores ─┬─ cores of pool 'reports' ── its workers ── statements of sessions with SET atoll.pool = reports
//!            └─ the others ── common workers ── all other statements
//! ```
//!
//! A pool takes its cores away from statements without a pool: these run on common workers over the remaining cores,
//! from their next statement or shared scan cycle on. Running work ends where it began. Background work (folding,
//! checkpoints) may use all cores.
//!
//! `SET atoll.cores` confines the common workers to some of their cores, at once, whatever they are doing: the
//! number of workers and of partitions stays, and threads whose node has no core left run on the nearest one.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_elastic::mode::{CoreTable, Mode, PageQueue, first_cores};
use atoll_placement::Arena;
use atoll_primitives::{Context as PrimitiveContext, Tuning};
use atoll_runtime::{ByteMatrix, Runtime, RuntimeOptions, WorkerId};
use atoll_topology::{CpuSet, Knowledge, NodeId, NodeSet};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::elastic::ElasticCores;
use atoll_sql_common::settings::CoresSetting;
use atoll_sql_common::task::BoundTask;

/// The workers on which statements run, and the one that drives them. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Workers(Arc<WorkersParts>, WorkerId);

#[derive(Debug)]
struct WorkersParts {
    /// Name of the pool; `None` for the common ones.
    pool: Option<Arc<str>>,
    runtime: Runtime,
    primitives: PrimitiveContext,
}

/// The pools of a database.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Workers on all cores.
    all: Workers,
    arena: Arena,
    knowledge: Arc<Knowledge>,
    state: Arc<Mutex<PoolsState>>,
    /// Follows the load of the common workers, where their cores are elastic.
    elastic: Mutex<Option<ElasticCores>>,
}

/// The workers of statements with and without a pool.
#[derive(Debug)]
pub(super) struct PoolsState {
    /// Workers on the cores that no pool has.
    pub(super) common: Workers,
    /// The setting for the number of these cores.
    pub(super) cores: CoresSetting,
    /// The reason for the current number.
    pub(super) why: Option<String>,
    named: BTreeMap<Arc<str>, NamedPool>,
}

#[derive(Debug)]
struct NamedPool {
    cpus: CpuSet,
    workers: Workers,
}

/// A row of `atoll.pools`.
#[derive(Clone, Debug)]
pub(crate) struct PoolReport {
    /// None for the common workers.
    pub(crate) name: Option<String>,
    pub(crate) cpus: CpuSet,
    pub(crate) nodes: NodeSet,
    pub(crate) workers: u64,
    /// Sessions and shared scan cycles that use it now.
    pub(crate) users: u64,
    /// Cores on which its workers run now.
    pub(crate) cores: u64,
    /// The number that was requested; for the common workers only.
    pub(crate) setting: Option<String>,
    /// The reason for the number, if one was decided.
    pub(crate) why: Option<String>,
}

impl Pools {
    /// Bytes that workers of all pools have read, by the nodes of readers and memory.
    pub(crate) fn traffic(&self) -> ByteMatrix {
        let state = self.state.lock();
        let named = state.named.values().map(|pool| &pool.workers);
        let mut traffic = self.all.runtime().traffic();
        let others = [&state.common].into_iter().chain(named);
        others.filter(|it| !it.is(&self.all)).for_each(|it| traffic.add(&it.runtime().traffic()));
        traffic
    }
}

impl Workers {
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn primitives(&self) -> &PrimitiveContext {
        &self.0.primitives
    }

    /// The same workers, driven on a node, or on the nearest one that has workers.
    pub(crate) fn driven_on(self, home: Option<NodeId>) -> Self {
        let nearest = home.and_then(|home| self.runtime().pool_nearest(home)?.workers().next());
        let driver = nearest.map_or(WorkerId(0), |worker| worker.id);
        Self(self.0, driver)
    }

    /// The worker that drives plans: it collects the output of the others, and plans and computes what is small.
    pub(crate) fn driver(&self) -> WorkerId {
        self.1
    }

    /// The threads of that worker's group.
    pub(crate) fn threads(&self) -> &Handle {
        self.runtime().handle_of(self.driver())
    }

    /// Runs a future on the worker that drives plans.
    pub(crate) fn drive<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.threads().spawn(work)
    }

    /// Runs a future on that worker and returns its result.
    ///
    /// # Errors
    /// The errors of the work, and if it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        BoundTask::new(self.drive(work)).join("carrying out the statement").await
    }

    /// Name of the pool; `None` for the common ones.
    pub(crate) fn pool(&self) -> Option<&Arc<str>> {
        self.0.pool.as_ref()
    }

    /// Whether both are the same workers.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The cores on which they may run at most.
    pub(super) fn core_table(&self) -> CoreTable {
        CoreTable::new(self.runtime().machine(), &self.runtime().cpus())
    }

    fn report(&self, users: usize) -> PoolReport {
        let cpus = self.runtime().cpus_given();
        let machine = self.runtime().machine();
        PoolReport {
            name: self.pool().map(|name| name.to_string()),
            nodes: cpus.iter().filter_map(|id| machine.cpu(id)).map(|cpu| cpu.node).collect(),
            workers: self.runtime().worker_count() as u64,
            users: users as u64,
            cores: self.core_table().within(&cpus).len() as u64,
            setting: None,
            why: None,
            cpus,
        }
    }
}

impl Pools {
    /// No pools: all statements run on these workers.
    pub(super) fn new(runtime: Runtime, arena: Arena, knowledge: Arc<Knowledge>) -> Self {
        let all = workers(None, runtime, &arena, &knowledge);
        let (cores, why, named) = (CoresSetting::All, None, BTreeMap::new());
        let state = PoolsState { common: all.clone(), cores, why, named };
        let (state, elastic) = (Arc::new(Mutex::new(state)), Mutex::new(None));
        Self { all, arena, knowledge, state, elastic }
    }

    /// The workers on all cores.
    pub(crate) fn all(&self) -> &Workers {
        &self.all
    }

    /// The workers of statements without a pool.
    pub(crate) fn common(&self) -> Workers {
        self.state.lock().common.clone()
    }

    /// How many cores statements without a pool run on.
    pub(crate) fn cores(&self) -> CoresSetting {
        self.state.lock().cores
    }

    /// Confines statements without a pool, running ones included, to this many cores.
    ///
    /// # Errors
    /// If there are fewer, or the kernel refuses it: then they run on all.
    pub(crate) fn set_cores(&self, setting: CoresSetting) -> Result<()> {
        let mut elastic = self.elastic.lock();
        let mut state = self.state.lock();
        let there = state.common.core_table().len();
        if let CoresSetting::Count(count) = setting
            && count.get() > there
        {
            return exec_err!(
                "atoll.cores = {count} is more than there are: statements without a pool have {there} cores"
            );
        }
        *elastic = None;
        state.cores = setting;
        state.settle()?;
        if setting == CoresSetting::Elastic {
            *elastic = Some(ElasticCores::start(Arc::downgrade(&self.state))?);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> &Arc<Mutex<PoolsState>> {
        &self.state
    }

    /// The workers of a pool.
    ///
    /// # Errors
    /// If there is no such pool.
    pub(crate) fn named(&self, name: &str) -> Result<Workers> {
        let state = self.state.lock();
        match state.named.get(name) {
            Some(pool) => Ok(pool.workers.clone()),
            None => Err(unknown(name, &state)),
        }
    }

    /// Makes a pool on these cpus.
    ///
    /// # Errors
    /// If the name or one of the cpus is taken, or no cpu would remain.
    pub(crate) fn create(&self, name: &str, cpus: CpuSet) -> Result<()> {
        let mut state = self.state.lock();
        if state.named.contains_key(name) {
            return exec_err!("pool '{name}' exists already; DROP POOL {name} comes first");
        }
        for (other, pool) in &state.named {
            let both = pool.cpus.intersection(&cpus);
            if !both.is_empty() {
                return exec_err!(
                    "pool '{name}' cannot have cpus {both}: pool '{other}' has them; name others, or DROP POOL {other}"
                );
            }
        }
        let left = self.left(&state).difference(&cpus);
        if left.is_empty() {
            return exec_err!(
                "pool '{name}' would leave no core to statements without a pool; leave them one"
            );
        }
        let own = self.start(Some(name.into()), cpus.clone(), cpus.len())?;
        let common = self.common_on(left)?;
        state.named.insert(name.into(), NamedPool { cpus, workers: own });
        state.replace_common(common)
    }

    /// Gives the cores of a pool back to statements without one.
    ///
    /// # Errors
    /// If the pool does not exist or sessions use it.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.state.lock();
        let Some(pool) = state.named.get(name) else { return Err(unknown(name, &state)) };
        let users = pool.users();
        if users > 0 {
            return exec_err!(
                "pool '{name}' is in use by {users} sessions or scans; RESET atoll.pool there, or close them"
            );
        }
        let left = self.left(&state).union(&pool.cpus);
        let common = match state.named.len() {
            1 => self.all.clone(),
            _ => self.common_on(left)?,
        };
        state.named.remove(name);
        state.replace_common(common)
    }

    /// The common workers, then the pools by name.
    pub(crate) fn reports(&self) -> Vec<PoolReport> {
        let state = self.state.lock();
        let (setting, why) = (Some(state.cores.to_string()), state.why.clone());
        let mut reports = vec![PoolReport { setting, why, ..state.common.report(0) }];
        reports.extend(state.named.values().map(|pool| pool.workers.report(pool.users())));
        reports
    }

    /// Cpus that no pool has.
    fn left(&self, state: &PoolsState) -> CpuSet {
        let taken = state.named.values().fold(CpuSet::new(), |all, pool| all.union(&pool.cpus));
        self.all.runtime().cpus().difference(&taken)
    }

    fn common_on(&self, cpus: CpuSet) -> Result<Workers> {
        let count = cpus.len().min(self.all.runtime().worker_count());
        self.start(None, cpus, count)
    }

    fn start(&self, pool: Option<Arc<str>>, cpus: CpuSet, count: usize) -> Result<Workers> {
        let (machine, kernel) = (self.all.runtime().machine(), self.all.runtime().kernel());
        let name = pool.as_deref().unwrap_or("atoll").to_owned();
        let (threads, cpus) = (Some(count), Some(cpus));
        let options = RuntimeOptions { threads, cpus, name, ..RuntimeOptions::default() };
        let runtime = Runtime::start(Arc::clone(machine), Arc::clone(kernel), options);
        let runtime = runtime.map_err(|error| exec_datafusion_err!("no workers: {error}"))?;
        Ok(workers(pool, runtime, &self.arena, &self.knowledge))
    }
}

impl PoolsState {
    /// Replaces the workers of statements without a pool; work on the old ones may end on all of their cores.
    fn replace_common(&mut self, common: Workers) -> Result<()> {
        let old = std::mem::replace(&mut self.common, common);
        release(&old);
        self.settle()
    }

    /// Gives the common workers the cores of the setting; all if that fails.
    fn settle(&mut self) -> Result<()> {
        let runtime = self.common.runtime();
        let cpus = match self.cores {
            CoresSetting::All | CoresSetting::Elastic => runtime.cpus(),
            CoresSetting::Count(count) => {
                let (table, pages) = (self.common.core_table(), PageQueue::default());
                table.cpus(&first_cores(&table, &table.ids(), &pages, Mode::Dense, count.get()))
            }
        };
        self.why = None;
        self.confine(&cpus)
    }

    /// Confines the common workers to these cpus; to all if that fails.
    pub(super) fn confine(&mut self, cpus: &CpuSet) -> Result<()> {
        let runtime = self.common.runtime().clone();
        // Without a change there is nothing to ask the kernel.
        if *cpus == runtime.cpus_given() {
            return Ok(());
        }
        runtime.confine(cpus).map_err(|error| {
            let error = exec_datafusion_err!("{error}; statements run on all cores again");
            self.give_all(&error);
            error
        })
    }

    /// Gives the common workers all of their cores after an error.
    pub(super) fn give_all(&mut self, error: &DataFusionError) {
        release(&self.common);
        self.cores = CoresSetting::All;
        self.why = Some(error.strip_backtrace());
    }
}

/// Gives workers all of their cores. If the kernel refuses, it has refused before.
fn release(workers: &Workers) {
    let all = workers.runtime().cpus();
    if workers.runtime().cpus_given() != all {
        let _ = workers.runtime().confine(&all);
    }
}

impl NamedPool {
    /// References to it besides those of the pools.
    fn users(&self) -> usize {
        Arc::strong_count(&self.workers.0) - 1
    }
}

fn workers(
    pool: Option<Arc<str>>,
    runtime: Runtime,
    arena: &Arena,
    knowledge: &Arc<Knowledge>,
) -> Workers {
    let primitives = PrimitiveContext::new(runtime.clone(), arena.clone())
        .with_tuning(Tuning::from_knowledge(knowledge))
        .with_knowledge(Arc::clone(knowledge));
    Workers(Arc::new(WorkersParts { pool, runtime, primitives }), WorkerId(0))
}

fn unknown(name: &str, state: &PoolsState) -> DataFusionError {
    let names: Vec<&str> = state.named.keys().map(|name| &**name).collect();
    match names.is_empty() {
        true => exec_datafusion_err!(
            "pool '{name}' does not exist; there are no pools: CREATE POOL {name} ON CORES …"
        ),
        false => exec_datafusion_err!("pool '{name}' does not exist; pools: {}", names.join(", ")),
    }
}
