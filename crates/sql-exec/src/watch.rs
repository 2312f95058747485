//! What the statement of a session is doing, as reported by the code that runs it: for `atoll.queries` and
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
    /// Nothing: it is working.
    Nothing,
    /// Its client, which sends data or reads the result.
    Client,
    /// A lock that another transaction holds.
    Lock,
    /// Its commit, or the commits that it read, to reach the disk.
    Sync,
    /// A place among the running statements of its class.
    Queue,
}

impl StatementWait {
    const ALL: [Self; 5] = [Self::Nothing, Self::Client, Self::Lock, Self::Sync, Self::Queue];

    /// Its word in `atoll.queries`; `None` for nothing.
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

/// Watches the statement of a session. Clones share their state.
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
    /// Whether steps are recorded.
    is_traced: AtomicBool,
    steps: Mutex<RunningSteps>,
    /// The number of the node that serves the session, [`ANYWHERE`] for any.
    home: AtomicU64,
    /// The number of the node that serves its connection now, likewise.
    node: AtomicU64,
}

/// The progress of a statement, and its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementFigures {
    /// Rows of tables that were read.
    pub rows: u64,
    /// Most rows that it may read; 0 if unknown.
    pub rows_total: u64,
    /// Bytes of tables that workers read from memory of their own node.
    pub bytes_local: u64,
    /// Bytes of tables that workers read from memory of other nodes.
    pub bytes_remote: u64,
    /// Most bytes that it may read; 0 if unknown.
    pub bytes_total: u64,
    /// Bytes of memory that its session has reserved.
    pub memory: u64,
}

/// Marks a statement as waiting until it is dropped.
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
    /// Records the steps of statements from now on.
    pub fn trace(&self) {
        self.0.is_traced.store(true, Ordering::Relaxed);
    }

    fn is_traced(&self) -> bool {
        self.0.is_traced.load(Ordering::Relaxed)
    }

    /// Notes that the statement has been parsed.
    pub fn parsed(&self) {
        if self.is_traced() {
            self.0.steps.lock().parsed();
        }
    }

    /// Notes that the statement has been planned.
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

    /// The node that serves the session; `None` for any.
    pub fn home(&self) -> Option<NodeId> {
        load_node(&self.0.home)
    }

    /// The node that serves its connection now, if known.
    pub fn node(&self) -> Option<NodeId> {
        load_node(&self.0.node)
    }

    /// Sets the node that serves its connection from now on; `None` for any.
    pub fn set_node(&self, node: Option<NodeId>) {
        store_node(&self.0.node, node);
    }

    /// Sets the node that serves the session.
    pub fn set_home(&self, home: Option<NodeId>) {
        store_node(&self.0.home, home);
    }

    /// Sets the progress of the scans that the statement reads.
    pub fn follow(&self, progress: &ScanProgress) {
        let before = std::mem::replace(&mut *self.0.progress.lock(), progress.clone());
        drop(before);
    }

    /// Marks the statement as waiting while the guard lives.
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

    /// Its progress and memory.
    pub fn figures(&self) -> StatementFigures {
        let progress = self.0.progress.lock().clone();
        let (rows, rows_total) = progress.rows();
        let (bytes_local, bytes_remote) = progress.bytes();
        let (bytes_total, memory) = (progress.bytes_total(), self.0.memory.used() as u64);
        StatementFigures { rows, rows_total, bytes_local, bytes_remote, bytes_total, memory }
    }

    /// Notes the place of the statement among the running ones.
    pub fn admitted(&self, admitted: &Admitted) {
        *self.0.admitted.lock() = admitted.downgrade();
    }

    /// Marks the statement as waiting for a lock, without its place, while the guard lives.
    #[must_use]
    pub fn waiting_for_lock(&self) -> WaitGuard {
        self.0.admitted.lock().leave();
        self.waiting(StatementWait::Lock)
    }

    /// Notes that the statement has ended.
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
