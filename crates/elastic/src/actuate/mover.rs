//! The pages of a target moved after its cores (`--migrate-memory`): never unless asked for, because it cannot be
//! undone. They are moved when the nodes with cores have stayed the same for a while, on a thread of its own: the
//! kernel takes seconds for gigabytes.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use atoll_process::inspect::ProcessId;
use atoll_sys::{Bitmap, CallError, migrate_pages};
use atoll_topology::NodeSet;

use super::{Journal, JournalError, Record};

/// For so long the nodes have to stay the same: a core that is tried for a moment draws no memory.
const SETTLED: Duration = Duration::from_secs(5);

/// Moving pages, behind a trait, so that tests can fake it.
pub trait PageCalls: Send + Sync + fmt::Debug {
    /// Moves the pages of a process from some nodes to others; how many could not be moved.
    fn migrate(&self, process: ProcessId, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError>;
}

/// The running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivePageCalls;

impl PageCalls for LivePageCalls {
    fn migrate(&self, process: ProcessId, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError> {
        // Node numbers of a machine are far below what a bitmap holds.
        let bitmap = |nodes: &NodeSet| {
            Bitmap::from_numbers(nodes.iter().map(|node| node.0)).unwrap_or_default()
        };
        migrate_pages(process.pid, &bitmap(from), &bitmap(to))
    }
}

/// Moves the pages of a target.
#[derive(Debug)]
pub struct PageMover {
    calls: Arc<dyn PageCalls>,
    /// The nodes with memory.
    all: NodeSet,
    /// Where the cores are, and since when.
    seen: Option<(NodeSet, Duration)>,
    /// Where pages were moved last.
    moved: Option<NodeSet>,
    told: Option<(Sender<Move>, Receiver<String>)>,
}

struct Move {
    processes: Vec<ProcessId>,
    from: NodeSet,
    to: NodeSet,
}

impl PageMover {
    /// For a machine with memory on these nodes.
    pub fn new(calls: Arc<dyn PageCalls>, all: NodeSet) -> Self {
        Self { calls, all, seen: None, moved: None, told: None }
    }

    /// Takes note of where the cores are now, and has pages moved there once that has stayed the same. What came of
    /// moves before, a sentence each.
    pub fn follow(
        &mut self,
        journal: &mut Journal,
        at: Duration,
        processes: &[ProcessId],
        nodes: &NodeSet,
    ) -> Result<Vec<String>, JournalError> {
        let to = nodes.intersection(&self.all);
        let since = match &self.seen {
            Some((seen, since)) if *seen == to => *since,
            _ => at,
        };
        self.seen = Some((to.clone(), since));
        let from = self.all.difference(&to);
        let is_due = at.saturating_sub(since) >= SETTLED && self.moved.as_ref() != Some(&to);
        if is_due && !to.is_empty() && !from.is_empty() {
            let record = |process: &ProcessId| Record::PagesMoved {
                pid: process.pid,
                start: process.start,
                from: from.to_string(),
                to: to.to_string(),
            };
            journal.write(&processes.iter().map(record).collect::<Vec<_>>())?;
            let calls = &self.calls;
            let (orders, _) = self.told.get_or_insert_with(|| start(calls));
            // The thread lives as long as this.
            let _ = orders.send(Move { processes: processes.to_vec(), from, to: to.clone() });
            self.moved = Some(to);
        }
        Ok(self.told.iter().flat_map(|(_, said)| said.try_iter()).collect())
    }
}

fn start(calls: &Arc<dyn PageCalls>) -> (Sender<Move>, Receiver<String>) {
    let (orders, ordered) = channel::<Move>();
    let (say, said) = channel();
    let calls = Arc::clone(calls);
    // It ends with the mover; a move that is under way then ends by itself.
    thread::spawn(move || {
        while let Ok(first) = ordered.recv() {
            let Move { processes, from, to } = ordered.try_iter().last().unwrap_or(first);
            for process in processes {
                let pid = process.pid;
                let words = match calls.migrate(process, &from, &to) {
                    Ok(0) => continue,
                    Ok(left) => format!(
                        "{left} pages of process {pid} could not be moved from nodes {from} to {to}: the kernel \
                         holds them, or other processes map them"
                    ),
                    // It has ended.
                    Err(error) if error.errno_name() == "ESRCH" => continue,
                    Err(error) => format!(
                        "pages of process {pid} cannot be moved to nodes {to}: {error}; run as root or with \
                         CAP_SYS_NICE and CAP_SYS_PTRACE"
                    ),
                };
                let _ = say.send(words);
            }
        }
    });
    (orders, said)
}
