//! Threads of nodes. They serve the sessions whose home is the node, so that a session's memory is on its node.
//!
//! ```text
//! any thread ── log-in ──▶ statements ──SET atoll.home = 1──▶ threads of node 1 ── statements, the end
//!                              ▲                                      │
//!                              └──────── SET atoll.home = '' ─────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use atoll_runtime::{Runtime, RuntimeOptions, WorkerId};
use atoll_sql::Database;
use atoll_topology::NodeId;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

/// Workers of the node per serving thread, within bounds.
const WORKERS_EACH: usize = 4;
const THREADS_MAX: usize = 8;

/// Stack size of each thread, the same as for the shared threads.
const STACK: usize = 8 << 20;

/// The nodes' threads, started on demand.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    /// None if they could not be started: the shared threads serve then.
    started: Mutex<BTreeMap<NodeId, Option<Runtime>>>,
    next: AtomicU32,
}

/// Threads of a node.
#[derive(Debug)]
pub(crate) struct HomeThreads {
    threads: Runtime,
    next: WorkerId,
}

impl Homes {
    /// The threads of a node, or of the nearest node that has workers.
    pub(crate) fn threads(&self, database: &Database, home: Option<NodeId>) -> Option<HomeThreads> {
        let pool = database.runtime().pool_nearest(home?)?;
        let mut started = self.started.lock();
        let threads = started.entry(pool.node()).or_insert_with(|| {
            let count = (pool.worker_count() / WORKERS_EACH).clamp(1, THREADS_MAX);
            start(database.runtime(), pool.node(), count)
        });
        let next = WorkerId(self.next.fetch_add(1, Ordering::Relaxed));
        Some(HomeThreads { threads: threads.clone()?, next })
    }
}

impl HomeThreads {
    /// The node that the current thread is bound to.
    pub(crate) fn node_here(&self) -> Option<NodeId> {
        self.threads.current_node()
    }

    /// Runs a future on these threads; dropping the returned future ends it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let mut task = EndedWith(self.threads.spawn_on(self.next, work));
        (&mut task.0).await.ok()
    }
}

/// A task that is aborted when this is dropped.
struct EndedWith<T>(JoinHandle<T>);

impl<T> Drop for EndedWith<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn start(of: &Runtime, node: NodeId, count: usize) -> Option<Runtime> {
    let cpus = of.machine().node(node)?.cpus.clone();
    let options = RuntimeOptions {
        threads: Some(count),
        cpus: Some(cpus),
        name: "serve".to_owned(),
        stack_bytes: Some(STACK),
        ..RuntimeOptions::default()
    };
    Runtime::start(of.machine().clone(), of.kernel().clone(), options).ok()
}
