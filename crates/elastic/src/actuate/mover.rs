//! Moves the pages of a target after its cores (`--migrate-memory`), only on request, because it cannot be undone. They
//! move when the nodes with cores have stayed the same for a while, on a separate thread: the kernel takes seconds for
//! gigabytes.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use atoll_process::inspect::ProcessId;
use atoll_sys::{Bitmap, CallError, migrate_pages};
use atoll_topology::NodeSet;

use super::{Journal, JournalError, Record};

/// Time for which the nodes must stay the same: a core that is only tried moves no memory.
const SETTLED: Duration = Duration::from_secs(5);

/// Moves pages; a trait, so that tests can fake it.
pub trait PageCalls: Send + Sync + fmt::Debug {
    /// Moves the pages of a process between nodes; returns how many could not be moved.
    fn migrate(&self, process: ProcessId, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError>;
}

/// The running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivePageCalls;

impl PageCalls for LivePageCalls {
    fn migrate(&self, process: ProcessId, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError> {
        // Node numbers of a machine are far less than a bitmap's size.
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
    /// The last target nodes.
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

    /// Records where the cores are now, and moves pages there once that has stayed the same. Returns the results of
    /// earlier moves, a sentence each.
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
            // The thread lives as long as the mover.
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
    // Ends with the mover, after the current move.
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
                    // The process has ended.
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
