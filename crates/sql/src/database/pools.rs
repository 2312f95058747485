//! Pools: workers with cores of their own for a class of statements.
//!
//! ```text
//! all cores ─┬─ cores of pool 'reports' ── its workers ── statements of sessions with SET atoll.pool = reports
//!            └─ the others ── common workers ── all other statements
//! ```
//!
//! A pool takes its cores away from the statements that have none: these run on common workers over the cores that
//! are left, from their next statement or cycle of a shared scan on. What is under way ends where it began. Work in
//! the background (folding, checkpoints) may use all cores.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_placement::Arena;
use atoll_primitives::{Context as PrimitiveContext, Tuning};
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_topology::{CpuSet, Knowledge, NodeSet};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use parking_lot::Mutex;

/// The workers on which statements run. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Workers(Arc<WorkersParts>);

#[derive(Debug)]
struct WorkersParts {
    /// Name of the pool; none for the common ones.
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
    state: Mutex<PoolsState>,
}

#[derive(Debug)]
struct PoolsState {
    /// Workers on the cores that no pool has.
    common: Workers,
    named: BTreeMap<Arc<str>, NamedPool>,
}

#[derive(Debug)]
struct NamedPool {
    cpus: CpuSet,
    workers: Workers,
}

/// A pool, as `atoll.pools` shows it.
#[derive(Clone, Debug)]
pub(crate) struct PoolReport {
    /// None for the common workers.
    pub(crate) name: Option<String>,
    pub(crate) cpus: CpuSet,
    pub(crate) nodes: NodeSet,
    pub(crate) workers: u64,
    /// Sessions, and cycles of shared scans, that use it now.
    pub(crate) users: u64,
}

impl Workers {
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn primitives(&self) -> &PrimitiveContext {
        &self.0.primitives
    }

    /// Name of the pool; none for the common ones.
    pub(crate) fn pool(&self) -> Option<&Arc<str>> {
        self.0.pool.as_ref()
    }

    /// Whether they are the same ones.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn cpus(&self) -> CpuSet {
        let workers = self.runtime().workers();
        workers.iter().fold(CpuSet::new(), |all, worker| all.union(&worker.cpus))
    }

    fn report(&self, users: usize) -> PoolReport {
        PoolReport {
            name: self.pool().map(|name| name.to_string()),
            cpus: self.cpus(),
            nodes: self.runtime().pools().iter().map(|pool| pool.node()).collect(),
            workers: self.runtime().worker_count() as u64,
            users: users as u64,
        }
    }
}

impl Pools {
    /// No pools: all statements run on these workers.
    pub(super) fn new(runtime: Runtime, arena: Arena, knowledge: Arc<Knowledge>) -> Self {
        let all = workers(None, runtime, &arena, &knowledge);
        let state = PoolsState { common: all.clone(), named: BTreeMap::new() };
        Self { all, arena, knowledge, state: Mutex::new(state) }
    }

    /// The workers on all cores.
    pub(crate) fn all(&self) -> &Workers {
        &self.all
    }

    /// The workers of statements without a pool.
    pub(crate) fn common(&self) -> Workers {
        self.state.lock().common.clone()
    }

    /// The workers of a pool.
    ///
    /// # Errors
    /// Where there is no such pool.
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
    /// Where the name or one of the cpus is taken, or no cpu would be left.
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
        state.common = common;
        Ok(())
    }

    /// Gives the cores of a pool back to statements without one.
    ///
    /// # Errors
    /// Where there is no such pool, or sessions have it.
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
        state.common = match state.named.len() {
            1 => self.all.clone(),
            _ => self.common_on(left)?,
        };
        state.named.remove(name);
        Ok(())
    }

    /// The common workers, then the pools by name.
    pub(crate) fn reports(&self) -> Vec<PoolReport> {
        let state = self.state.lock();
        let mut reports = vec![state.common.report(0)];
        reports.extend(state.named.values().map(|pool| pool.workers.report(pool.users())));
        reports
    }

    /// Cpus that no pool has.
    fn left(&self, state: &PoolsState) -> CpuSet {
        let taken = state.named.values().fold(CpuSet::new(), |all, pool| all.union(&pool.cpus));
        self.all.cpus().difference(&taken)
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

impl NamedPool {
    /// Those who hold on to it beside the pools.
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
        .with_tuning(Tuning::of(knowledge))
        .with_knowledge(Arc::clone(knowledge));
    Workers(Arc::new(WorkersParts { pool, runtime, primitives }))
}

fn unknown(name: &str, state: &PoolsState) -> datafusion::common::DataFusionError {
    let names: Vec<&str> = state.named.keys().map(|name| &**name).collect();
    match names.is_empty() {
        true => exec_datafusion_err!(
            "pool '{name}' does not exist; there are no pools: CREATE POOL {name} ON CORES …"
        ),
        false => exec_datafusion_err!("pool '{name}' does not exist; pools: {}", names.join(", ")),
    }
}
