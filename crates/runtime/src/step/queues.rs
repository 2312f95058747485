//! What waits to run, and who may take it.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::Runtime;

/// How far from where it was dealt a waiting task may be taken. Whoever steals takes its own
/// domain's tasks first, then those of its node, then by distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steal {
    /// Tasks stay in their domain.
    Domain,
    /// Tasks stay on their node.
    #[default]
    Node,
    /// Tasks may leave their node, and then read remote memory.
    Machine,
}

/// One queue per group of the runtime.
pub(super) struct Queues<J> {
    queues: Vec<Mutex<Queue<J>>>,
    /// For each group, how many runners it needs.
    runners: Vec<usize>,
    /// For each group, whom it may steal from, nearest first.
    victims: Vec<Vec<usize>>,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    /// Runners of the group that have not come yet. Each finds a job that nobody has stolen.
    awaited: usize,
}

impl<J> Queue<J> {
    fn steal(&mut self) -> Option<J> {
        if self.jobs.len() > self.awaited { self.jobs.pop_back() } else { None }
    }
}

impl<J> Queues<J> {
    /// Fills the queues with jobs and their groups; jobs of a group keep their order.
    pub(super) fn new(runtime: &Runtime, steal: Steal, jobs: Vec<(usize, J)>) -> Self {
        let groups = runtime.groups().len();
        let mut waiting: Vec<VecDeque<J>> = (0..groups).map(|_| VecDeque::new()).collect();
        for (group, job) in jobs {
            waiting[group].push_back(job);
        }
        let sizes: Vec<usize> = waiting.iter().map(VecDeque::len).collect();
        let victims: Vec<_> = (0..groups).map(|group| victims(runtime, steal, group)).collect();
        let workers: Vec<usize> =
            runtime.groups().iter().map(|group| group.workers().len()).collect();
        let queues = waiting.into_iter().zip(&workers).map(|(jobs, workers)| {
            let awaited = jobs.len().min(*workers);
            Mutex::new(Queue { jobs, awaited })
        });
        let queues = queues.collect();
        Self { queues, runners: runners(&sizes, &workers, &victims), victims }
    }

    /// How many runners a group needs.
    pub(super) fn runners(&self, group: usize) -> usize {
        self.runners[group]
    }

    /// A job for a runner of this group, and the group the job was dealt to: its own oldest, or the
    /// newest of the nearest group that can spare one, so that owner and thief work towards each
    /// other. `first` tells that the runner has not come before.
    pub(super) fn take(&self, group: usize, first: bool) -> Option<(usize, J)> {
        let own = {
            let mut queue = self.queues[group].lock();
            queue.awaited = queue.awaited.saturating_sub(usize::from(first));
            queue.jobs.pop_front()
        };
        own.map(|job| (group, job)).or_else(|| self.steal(group))
    }

    fn steal(&self, thief: usize) -> Option<(usize, J)> {
        let mut victims = self.victims[thief].iter().copied();
        victims.find_map(|victim| Some((victim, self.queues[victim].lock().steal()?)))
    }
}

/// Runners of each group: one per job of its own, and as thieves no more than the jobs within reach
/// that find no worker at home; at most one per worker.
fn runners(jobs: &[usize], workers: &[usize], victims: &[Vec<usize>]) -> Vec<usize> {
    let surplus = |victim: &usize| jobs[*victim].saturating_sub(workers[*victim]);
    let within_reach = |group: usize| victims[group].iter().map(surplus).sum::<usize>();
    (0..jobs.len()).map(|group| workers[group].min(jobs[group] + within_reach(group))).collect()
}

/// Groups to steal from, nearest first; among equals each thief starts behind itself, so that
/// thieves do not all meet at one victim.
fn victims(runtime: &Runtime, steal: Steal, group: usize) -> Vec<usize> {
    let (groups, machine) = (runtime.groups(), runtime.machine());
    let node = groups[group].node();
    let mut victims: Vec<usize> = (1..groups.len()).map(|k| (group + k) % groups.len()).collect();
    match steal {
        Steal::Domain => victims.clear(),
        Steal::Node => victims.retain(|victim| groups[*victim].node() == node),
        Steal::Machine => victims.sort_by_key(|victim| {
            let home = groups[*victim].node();
            (home != node, machine.distance(node, home).unwrap_or(u32::MAX))
        }),
    }
    victims
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_topology::{MachineBuilder, NodeId, NodeShape};

    use super::{Steal, runners, victims};
    use crate::{Runtime, RuntimeOptions};

    /// Groups 0 and 1 on node 0; 2 and 3 on node 1, far from it; 4 on node 2, near it.
    fn runtime() -> Runtime {
        let node = |id, domains| NodeShape::with_cpus(NodeId(id), domains, 1, 1);
        let distances = vec![vec![10, 30, 12], vec![30, 10, 30], vec![12, 30, 10]];
        let builder = MachineBuilder::new("far and near").node(node(0, 2)).node(node(1, 2));
        let machine = builder.node(node(2, 1)).distances(distances).build().expect("a machine");
        let machine = Arc::new(machine);
        let kernel = Arc::new(SimulatedKernel::new(machine.clone()));
        Runtime::start(machine, kernel, RuntimeOptions::default()).expect("a runtime")
    }

    #[test]
    fn thieves_ask_their_own_node_first_and_then_by_distance() {
        let runtime = runtime();
        assert_eq!(victims(&runtime, Steal::Machine, 0), [1, 4, 2, 3]);
        assert_eq!(victims(&runtime, Steal::Machine, 1), [0, 4, 2, 3]);
        assert_eq!(victims(&runtime, Steal::Node, 3), [2]);
        assert_eq!(victims(&runtime, Steal::Domain, 3), [0; 0]);
    }

    #[test]
    fn a_group_gets_runners_for_its_jobs_and_for_those_without_a_worker_at_home() {
        let victims = [vec![1], vec![0], vec![]];
        assert_eq!(runners(&[5, 0, 1], &[2, 4, 3], &victims), [2, 3, 1]);
        assert_eq!(runners(&[2, 0, 0], &[2, 4, 3], &victims), [2, 0, 0]);
    }
}
