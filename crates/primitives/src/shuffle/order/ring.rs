//! The ring.

use atoll_topology::NodeId;

use super::Turns;

/// Two circles (figure 5): sources on the inner one, workers on the outer one, which turns by one place in each step.
///
/// On the outer circle the workers of a node are neighbours, on the inner one they are as far apart
/// as can be, so that the workers of a node always spread over all nodes in proportion to their
/// workers. With S nodes of P workers each that is worker k = s·P + p reading in step t from worker
/// ⌊m/S⌋ of node m mod S, where m = (k + t) mod N.
#[derive(Debug)]
pub(in crate::shuffle) struct RingOrder {
    /// Place of each worker on the outer circle.
    places: Vec<u32>,
    /// Worker at each place of the inner circle.
    inner: Vec<u32>,
    circle: Circle,
}

/// How the circles turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shuffle) enum Circle {
    /// Place k meets place k + t, as in the paper.
    Turning,
    /// Place k meets place k xor t, for a power of two: on cubes, so that all crossings of a dimension fall in the same
    /// step.
    Crossing,
}

impl RingOrder {
    /// The circles over workers on these nodes, nodes in this order. Workers on other nodes are ignored.
    pub(in crate::shuffle) fn new(workers: &[NodeId], nodes: &[NodeId], circle: Circle) -> Self {
        let of_node = |node: &NodeId| -> Vec<u32> {
            let all = workers.iter().zip(0..);
            all.filter(|(at, _)| *at == node).map(|(_, worker)| worker).collect()
        };
        let groups: Vec<Vec<u32>> = nodes.iter().map(of_node).collect();
        let mut places = vec![0; workers.len()];
        for (place, worker) in (0..).zip(groups.iter().flatten()) {
            places[*worker as usize] = place;
        }
        Self { places, inner: dealt(&groups), circle }
    }
}

/// The workers of all groups, each group spread as evenly as possible; groups of equal size take turns.
fn dealt(groups: &[Vec<u32>]) -> Vec<u32> {
    let mut turns: Vec<(usize, usize, u32)> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        // Turn t of n falls at (2t + 1) / 2n of the circle; compared as an integer of 1/2^32.
        let turn = |turn: usize| ((2 * turn + 1) << 32) / (2 * group.len());
        turns.extend(group.iter().enumerate().map(|(place, worker)| (turn(place), at, *worker)));
    }
    turns.sort_unstable();
    turns.into_iter().map(|(_, _, worker)| worker).collect()
}

impl Turns for RingOrder {
    fn other(&self, worker: usize, step: usize) -> usize {
        let place = self.places[worker] as usize;
        let met = match self.circle {
            Circle::Turning => (place + step) % self.inner.len(),
            Circle::Crossing => place ^ step,
        };
        self.inner[met] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(counts: &[usize]) -> (Vec<NodeId>, Vec<NodeId>) {
        let ids: Vec<NodeId> = (0..counts.len() as u32).map(NodeId).collect();
        let workers = ids.iter().zip(counts).flat_map(|(id, count)| vec![*id; *count]).collect();
        (workers, ids)
    }

    #[test]
    fn an_even_machine_has_the_papers_ring() {
        let (sockets, threads) = (4, 3);
        let (workers, ids) = nodes(&[threads; 4]);
        let ring = RingOrder::new(&workers, &ids, Circle::Turning);
        for k in 0..sockets * threads {
            for t in 0..sockets * threads {
                let m = (k + t) % (sockets * threads);
                assert_eq!(ring.other(k, t), (m % sockets) * threads + m / sockets);
            }
        }
    }

    #[test]
    fn an_uneven_machine_spreads_each_nodes_workers_over_the_circle() {
        let (workers, ids) = nodes(&[1, 4, 2]);
        assert_eq!(RingOrder::new(&workers, &ids, Circle::Turning).inner, [1, 5, 2, 0, 3, 6, 4]);
    }
}
