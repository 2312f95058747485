//! A pool: the workers of one node.

use std::sync::Arc;

use atoll_topology::NodeId;

use crate::{Worker, WorkerGroup};

/// The workers of one node, in one group per domain.
#[derive(Debug)]
pub struct Pool {
    node: NodeId,
    groups: Vec<Arc<WorkerGroup>>,
    /// Groups (position in the runtime) in the order in which tasks for the node are dealt.
    deal: Vec<usize>,
}

impl Pool {
    /// A pool of these groups, which follow one another in the runtime from `first` on.
    pub(crate) fn new(node: NodeId, groups: Vec<Arc<WorkerGroup>>, first: usize) -> Self {
        let sizes: Vec<usize> = groups.iter().map(|group| group.workers().len()).collect();
        Self { node, groups, deal: deal(&sizes, first) }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its groups, ordered by domain. The first one's handle is for callers that only know the node.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &WorkerGroup> {
        self.groups.iter().map(|group| &**group)
    }

    /// Its workers, ordered by number.
    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.groups.iter().flat_map(|group| group.workers())
    }

    /// Number of its workers, at least one.
    pub fn worker_count(&self) -> usize {
        self.deal.len()
    }

    /// Group (position in the runtime) of the task dealt at this place.
    pub(crate) fn dealt(&self, place: usize) -> usize {
        self.deal[place % self.deal.len()]
    }
}

/// Each group as often as it has workers, and any stretch of the order in proportion to them, so
/// that a few tasks use all domains' caches and a whole round gives each worker one task.
fn deal(sizes: &[usize], first: usize) -> Vec<usize> {
    let mut turns: Vec<(usize, usize, usize)> = Vec::new();
    for (group, size) in sizes.iter().enumerate() {
        // Turn t of n falls at (2t + 1) / 2n of the round; compared as an integer of 1/2^20.
        turns.extend((0..*size).map(|turn| (((2 * turn + 1) << 20) / (2 * size), group, turn)));
    }
    turns.sort();
    turns.into_iter().map(|(_, group, _)| first + group).collect()
}

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn equal_groups_take_turns() {
        assert_eq!(deal(&[2, 2], 5), [5, 6, 5, 6]);
    }

    #[test]
    fn a_larger_group_gets_more_turns_in_between() {
        assert_eq!(deal(&[1, 3], 0), [1, 0, 1, 1]);
    }
}
