//! What the statement of a session does while it runs, told by those who carry it out: for `atoll.queries` and
//! `atoll.sessions`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use atoll_topology::NodeId;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use crate::admission::{Admitted, WeakAdmitted};
use crate::memory::SessionMemory;
use crate::scan::ScanProgress;
use crate::trace::{RunningSteps, StatementSteps};

/// What a statement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StatementWait {
    /// Nothing: it works.
    Nothing,
    /// Its client, which sends data or reads the result.
    Client,
    /// A lock that another transaction holds.
    Lock,
    /// Its commit, or what it read, to be on disk.
    Sync,
    /// A place among the statements of its class that run.
    Queue,
}

impl StatementWait {
    const ALL: [Self; 5] = [Self::Nothing, Self::Client, Self::Lock, Self::Sync, Self::Queue];

    /// Its word in `atoll.queries`; none for nothing.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Client => Some("client"),
            Self::Lock => Some("lock"),
            Self::Sync => Some("sync"),
            Self::Queue => Some("queue"),
        }
    }
}

/// Watches the statement of a session. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct StatementWatch(Arc<WatchParts>);

/// No node.
const ANYWHERE: u64 = u64::MAX;

#[derive(Debug)]
struct WatchParts {
    progress: Mutex<ScanProgress>,
    waits: AtomicU8,
    admitted: Mutex<WeakAdmitted>,
    memory: SessionMemory,
    /// Whether steps are told of.
    is_traced: AtomicBool,
    steps: Mutex<RunningSteps>,
    /// The number of the node that serves the session, [`ANYWHERE`] for any.
    home: AtomicU64,
    /// The one on which its connection is served now, likewise.
    node: AtomicU64,
}

/// How far a statement is, and what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementFigures {
    /// Rows of tables that were read.
    pub rows: u64,
    /// Rows that are to be read at most; 0 where that is not known.
    pub rows_total: u64,
    /// Bytes of tables that workers read from memory of their own node.
    pub bytes_local: u64,
    /// Bytes that they read from that of others.
    pub bytes_remote: u64,
    /// Bytes that are to be read at most; 0 where that is not known.
    pub bytes_total: u64,
    /// Bytes of memory that its session has reserved.
    pub memory: u64,
}

/// Tells that a statement waits, until it is dropped.
#[derive(Debug)]
pub struct WaitGuard {
    watch: StatementWatch,
    before: u8,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.watch.0.waits.store(self.before, Ordering::Relaxed);
    }
}

impl Default for WatchParts {
    fn default() -> Self {
        Self {
            progress: Mutex::default(),
            waits: AtomicU8::default(),
            admitted: Mutex::default(),
            memory: SessionMemory::default(),
            is_traced: AtomicBool::default(),
            steps: Mutex::default(),
            home: AtomicU64::new(ANYWHERE),
            node: AtomicU64::new(ANYWHERE),
        }
    }
}

fn store_node(into: &AtomicU64, node: Option<NodeId>) {
    into.store(node.map_or(ANYWHERE, |node| node.0.into()), Ordering::Relaxed);
}

fn load_node(from: &AtomicU64) -> Option<NodeId> {
    u32::try_from(from.load(Ordering::Relaxed)).ok().map(NodeId)
}

impl StatementWatch {
    /// The steps of statements are told of from now on.
    pub fn trace(&self) {
        self.0.is_traced.store(true, Ordering::Relaxed);
    }

    fn is_traced(&self) -> bool {
        self.0.is_traced.load(Ordering::Relaxed)
    }

    /// The statement is parsed.
    pub fn parsed(&self) {
        if self.is_traced() {
            self.0.steps.lock().parsed();
        }
    }

    /// The statement is planned.
    pub fn planned(&self, plan: &Arc<dyn ExecutionPlan>) {
        if self.is_traced() {
            self.0.steps.lock().planned(plan);
        }
    }

    /// The steps of the statement, which has ended.
    pub fn steps(&self) -> StatementSteps {
        let steps = std::mem::take(&mut *self.0.steps.lock());
        steps.ended()
    }

    /// The node that serves the session; none for any.
    pub fn home(&self) -> Option<NodeId> {
        load_node(&self.0.home)
    }

    /// The node on which its connection is served now, where that is known.
    pub fn node(&self) -> Option<NodeId> {
        load_node(&self.0.node)
    }

    /// Its connection is served on this node from now on; none where any serves it.
    pub fn set_node(&self, node: Option<NodeId>) {
        store_node(&self.0.node, node);
    }

    /// Sets the node that serves the session.
    pub fn set_home(&self, home: Option<NodeId>) {
        store_node(&self.0.home, home);
    }

    /// The statement reads what this counts.
    pub fn follow(&self, progress: &ScanProgress) {
        let before = std::mem::replace(&mut *self.0.progress.lock(), progress.clone());
        drop(before);
    }

    /// The statement waits while the guard lives.
    #[must_use]
    pub fn waiting(&self, what: StatementWait) -> WaitGuard {
        let before = self.0.waits.swap(what as u8, Ordering::Relaxed);
        WaitGuard { watch: self.clone(), before }
    }

    /// What the statement waits for.
    pub fn waits(&self) -> StatementWait {
        let number = self.0.waits.load(Ordering::Relaxed);
        StatementWait::ALL[usize::from(number).min(StatementWait::ALL.len() - 1)]
    }

    /// How far it is.
    pub fn figures(&self) -> StatementFigures {
        let progress = self.0.progress.lock().clone();
        let (rows, rows_total) = progress.rows();
        let (bytes_local, bytes_remote) = progress.bytes();
        let (bytes_total, memory) = (progress.bytes_total(), self.0.memory.used() as u64);
        StatementFigures { rows, rows_total, bytes_local, bytes_remote, bytes_total, memory }
    }

    /// The statement has a place among those that run.
    pub fn admitted(&self, admitted: &Admitted) {
        *self.0.admitted.lock() = admitted.downgrade();
    }

    /// The statement waits for a lock, without its place, while the guard lives.
    #[must_use]
    pub fn waiting_for_lock(&self) -> WaitGuard {
        self.0.admitted.lock().leave();
        self.waiting(StatementWait::Lock)
    }

    /// There is no statement any more.
    pub fn forget(&self) {
        self.follow(&ScanProgress::default());
    }

    /// The memory of the session.
    pub fn memory(&self) -> &SessionMemory {
        &self.0.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_guard() {
        let watch = StatementWatch::default();
        assert_eq!(watch.waits(), StatementWait::Nothing);
        let outer = watch.waiting(StatementWait::Lock);
        drop(watch.waiting(StatementWait::Client));
        assert_eq!(watch.waits().word(), Some("lock"));
        drop(outer);
        assert_eq!(watch.waits().word(), None);
        for wait in StatementWait::ALL {
            let _guard = watch.waiting(wait);
            assert_eq!(watch.waits(), wait);
        }
    }
}
