//! Moving the threads of instances from node to node while clients run, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_elastic::actuate::{LiveThreads, ThreadCalls, ThreadId};
use atoll_process::inspect::{ProcessId, descendants, identify};
use atoll_sys::Root;
use atoll_topology::{CpuSet, Machine, NodeId};
use serde::{Deserialize, Serialize};

use super::WatchEnd;
use crate::dbms::instance::InstanceSeat;

/// What came of the moves of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::dbms) struct MigrationSeen {
    /// Times that all threads were moved.
    pub(in crate::dbms) turns: u32,
    /// Threads that the kernel then reports on the cpus of the node, each counted at every turn.
    pub(in crate::dbms) moved: u64,
    /// Threads that the kernel did not move; those that have ended do not count.
    pub(in crate::dbms) refused: u64,
    /// Why, of the first one.
    pub(in crate::dbms) why: Option<String>,
}

/// Moves the threads of all instances to the next node, so often, until the end; then they are put back.
pub(in crate::dbms) fn migrate(
    seats: &[&InstanceSeat],
    machine: &Machine,
    every: Duration,
    end: &WatchEnd,
) -> Vec<MigrationSeen> {
    let calls = LiveThreads::new(Root::live());
    let mut all: Vec<Migrated<'_>> =
        seats.iter().map(|seat| Migrated::new(seat, machine, &calls)).collect();
    while !end.comes_within(every) {
        all.iter_mut().for_each(Migrated::turn);
    }
    all.into_iter().map(Migrated::end).collect()
}

/// An instance whose threads are moved.
struct Migrated<'a> {
    calls: &'a dyn ThreadCalls,
    first: Option<ProcessId>,
    /// Cpus of its own node, and of the others in turn.
    nodes: Vec<CpuSet>,
    /// Where it was started.
    home: CpuSet,
    /// Cpus of each thread before the first move.
    before: BTreeMap<u32, (ThreadId, CpuSet)>,
    seen: MigrationSeen,
}

impl<'a> Migrated<'a> {
    fn new(seat: &InstanceSeat, machine: &Machine, calls: &'a dyn ThreadCalls) -> Self {
        let mut migrated = Self {
            calls,
            first: identify(&Root::live(), seat.process).ok(),
            nodes: in_turn(machine, seat.plan.node),
            home: seat.plan.cpus.clone().unwrap_or_default(),
            before: BTreeMap::new(),
            seen: MigrationSeen::default(),
        };
        for tid in migrated.threads() {
            if let (Some(id), Ok(cpus)) = (calls.thread(tid), calls.affinity(tid)) {
                migrated.before.insert(tid, (id, cpus));
            }
        }
        migrated
    }

    /// All threads of its processes.
    fn threads(&self) -> Vec<u32> {
        let first = self.first.as_slice();
        let processes = descendants(&Root::live(), first).unwrap_or_default();
        processes.into_iter().flat_map(|process| self.calls.threads(process)).collect()
    }

    fn turn(&mut self) {
        self.seen.turns += 1;
        let cpus = &self.nodes[self.seen.turns as usize % self.nodes.len()];
        for tid in self.threads() {
            let bound = self.calls.bind(tid, cpus);
            match bound.and_then(|()| self.calls.affinity(tid)) {
                Ok(found) if found == *cpus => self.seen.moved += 1,
                Err(error) if error.errno_name() == "ESRCH" => {}
                other => {
                    self.seen.refused += 1;
                    let why = other.map_or_else(
                        |error| error.to_string(),
                        |found| format!("a thread is on cpus {found} instead of {cpus}"),
                    );
                    self.seen.why.get_or_insert(why);
                }
            }
        }
    }

    /// Puts all threads back; those that started meanwhile go where the instance was started.
    fn end(self) -> MigrationSeen {
        for tid in self.threads() {
            let own = self.before.get(&tid).filter(|(id, _)| self.calls.thread(tid) == Some(*id));
            // A thread that ends at this moment needs no cpus.
            let _ = self.calls.bind(tid, own.map_or(&self.home, |(_, cpus)| cpus));
        }
        self.seen
    }
}

/// The cpus of a node, and of those after it in turn.
fn in_turn(machine: &Machine, node: NodeId) -> Vec<CpuSet> {
    let mut nodes: Vec<_> = machine.nodes_with_cpus().collect();
    let own = nodes.iter().position(|it| it.id == node).unwrap_or_default();
    nodes.rotate_left(own);
    nodes.into_iter().map(|node| node.cpus.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use atoll_sys::CallError;

    use super::*;

    /// Threads by number with their cpus; number 3 stays where it is.
    #[derive(Debug, Default)]
    struct FakeThreads(RefCell<BTreeMap<u32, CpuSet>>);

    impl ThreadCalls for FakeThreads {
        fn threads(&self, _: ProcessId) -> Vec<u32> {
            self.0.borrow().keys().copied().collect()
        }

        fn thread(&self, tid: u32) -> Option<ThreadId> {
            self.0.borrow().contains_key(&tid).then_some(ThreadId { tid, start: 1 })
        }

        fn affinity(&self, tid: u32) -> Result<CpuSet, CallError> {
            Ok(self.0.borrow()[&tid].clone())
        }

        fn bind(&self, tid: u32, cpus: &CpuSet) -> Result<(), CallError> {
            if tid == 3 {
                return Err(CallError { call: "sched_setaffinity", errno: 1 });
            }
            self.0.borrow_mut().insert(tid, cpus.clone());
            Ok(())
        }
    }

    fn cpus(text: &str) -> CpuSet {
        CpuSet::parse(text).unwrap()
    }

    #[test]
    fn threads_go_round_and_come_back() {
        let calls = FakeThreads::default();
        calls.0.borrow_mut().extend([(1, cpus("0")), (3, cpus("1"))]);
        let own = ThreadId { tid: 1, start: 1 };
        let mut migrated = Migrated {
            calls: &calls,
            first: identify(&Root::live(), std::process::id()).ok(),
            nodes: vec![cpus("0-1"), cpus("2-3"), cpus("4-5")],
            home: cpus("0-1"),
            before: BTreeMap::from([(1, (own, cpus("0")))]),
            seen: MigrationSeen::default(),
        };
        for expected in ["2-3", "4-5", "0-1", "2-3"] {
            migrated.turn();
            assert_eq!(calls.0.borrow()[&1], cpus(expected));
        }
        calls.0.borrow_mut().insert(2, cpus("2-3"));
        let seen = migrated.end();
        assert_eq!((seen.turns, seen.moved, seen.refused), (4, 4, 4));
        assert!(seen.why.is_some_and(|why| why.contains("sched_setaffinity")));
        assert_eq!(calls.0.borrow()[&1], cpus("0"), "as before the first move");
        assert_eq!(calls.0.borrow()[&2], cpus("0-1"), "one that started meanwhile");
    }
}
