//! How far tasks may move from where they were assigned.

use crate::Runtime;

/// How far a waiting task may be stolen. A thief takes its own
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

impl Steal {
    /// For each group of the runtime, the groups it may steal from, nearest first.
    pub(super) fn victims(self, runtime: &Runtime) -> Vec<Vec<usize>> {
        (0..runtime.groups().len()).map(|group| victims(runtime, self, group)).collect()
    }
}

/// Groups to steal from, nearest first; among equals each thief starts after its own position, so that
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

    use super::super::queues::runners;
    use super::{Steal, victims};
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
