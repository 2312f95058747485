//! Homes of the chunks of a table.

use atoll_topology::{Machine, NodeId};

use super::{
    ChunkHome, Strategy, StrategyError, ahead, farthest, known, memory_ids, memory_node, subset_ids,
};

/// Largest share of one node in a weighted round: bounds the length of the round on machines whose
/// nodes differ wildly in size.
const WEIGHT_MAX: u64 = 255;

impl Strategy {
    /// Home of chunk number `chunk` (from 0, over the whole table) that a worker on `worker_node`
    /// loads. Strategies over several nodes deal chunks out in turn: a chunk is read as a whole, so
    /// pages spread within it would make every reader of it remote.
    pub fn chunk_home(
        self,
        machine: &Machine,
        worker_node: NodeId,
        chunk: usize,
    ) -> Result<ChunkHome, StrategyError> {
        known(machine, worker_node)?;
        let in_turn = |ids: Vec<NodeId>| ids[chunk % ids.len()];
        let node = match self {
            Self::Default => return Ok(ChunkHome::Unbound),
            Self::Replicate => return Ok(ChunkHome::CopyPerNode),
            Self::Aligned | Self::Local => memory_node(machine, worker_node)?,
            Self::Ahead(k) => ahead(machine, worker_node, k)?,
            Self::Farthest => farthest(machine, worker_node)?,
            Self::Preferred(home) => memory_node(machine, home)?,
            Self::Interleave | Self::Spread => in_turn(memory_ids(machine)?),
            Self::Subset(k) => in_turn(subset_ids(machine, k)?),
            Self::WeightedInterleave => weighted_turn(machine, chunk)?,
        };
        Ok(ChunkHome::Node(node))
    }
}

/// Chunks in proportion to the memory of the nodes. The kernel's weights go by bandwidth, which a
/// [`Machine`] does not hold; memory is what chunks use up.
fn weighted_turn(machine: &Machine, chunk: usize) -> Result<NodeId, StrategyError> {
    let ids = memory_ids(machine)?;
    let memory: Vec<u64> = machine.nodes_with_memory().map(|node| node.memory.0).collect();
    let smallest = memory.iter().copied().min().unwrap_or(1);
    let weight = |bytes: &u64| ((bytes + smallest / 2) / smallest).clamp(1, WEIGHT_MAX);
    let weights: Vec<u64> = memory.iter().map(weight).collect();
    Ok(ids[smooth_turn(&weights, chunk as u64)])
}

/// Position whose turn it is in smooth weighted round robin: each step every position gains its
/// weight, the richest is chosen (the first of several) and pays the sum of all weights. Over each
/// round of that many steps every position is chosen as often as it weighs, evenly spaced.
fn smooth_turn(weights: &[u64], step: u64) -> usize {
    let sum: u64 = weights.iter().sum();
    let mut credit = vec![0_i64; weights.len()];
    let mut chosen = 0;
    for _ in 0..=step % sum {
        for (credit, weight) in credit.iter_mut().zip(weights) {
            *credit += *weight as i64;
        }
        let richest = |best: usize, i: usize| if credit[i] > credit[best] { i } else { best };
        chosen = (1..credit.len()).fold(0, richest);
        credit[chosen] -= sum as i64;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_round_gives_each_position_its_weight_evenly_spaced() {
        let round: Vec<usize> = (0..14).map(|step| smooth_turn(&[4, 2, 1], step)).collect();
        assert_eq!(round, [0, 1, 0, 2, 0, 1, 0, 0, 1, 0, 2, 0, 1, 0]);
        assert_eq!(smooth_turn(&[1], u64::MAX), 0);
    }
}
