//! The node nearest to data with enough free cores.

use std::collections::BTreeMap;

use super::costs::{CostBasis, CpuNodeCosts, QuestionError};
use crate::{CpuSet, Knowledge, NodeId};

/// A node near to data.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The node.
    pub node: NodeId,
    /// Its free cores.
    pub cores_free: usize,
    /// Mean cost of an access to the data from there; 0 without data.
    pub cost: f64,
    /// The unit of the cost.
    pub basis: CostBasis,
}

impl Knowledge {
    /// Finds the node nearest to data with at least `cores` free cores. A core is free if all of its usable cpus are in
    /// `free`. The data are nodes with weights, such as numbers of pages; for data on one node any nonzero weight
    /// works.
    ///
    /// Nearest is the smallest mean cost of an access, Σ weight × cost(node, data's node) ÷ Σ weight,
    /// with costs as in [`CostBasis`]; ties go to the smallest id.
    pub fn nearest(
        &self,
        data: &[(NodeId, u64)],
        cores: usize,
        free: &CpuSet,
    ) -> Result<Nearest, QuestionError> {
        let costs = CpuNodeCosts::for_data(self, data)?;
        let counts = self.cores_free(free);
        let enough = counts.iter().filter(|&(_, &count)| count >= cores);
        let nearest = enough
            .min_by(|(a, _), (b, _)| costs.sum(**a).total_cmp(&costs.sum(**b)).then(a.cmp(b)));
        let Some((&node, &cores_free)) = nearest else {
            let free = counts.values().max().copied().unwrap_or(0);
            return Err(QuestionError::TooFewCores { asked: cores, free });
        };
        let cost = costs.mean(costs.sum(node), 1);
        Ok(Nearest { node, cores_free, cost, basis: costs.basis })
    }

    /// Number of free cores on each node that has cpus.
    fn cores_free(&self, free: &CpuSet) -> BTreeMap<NodeId, usize> {
        let machine = &self.machine;
        let mut counts: BTreeMap<NodeId, usize> =
            machine.nodes_with_cpus().map(|node| (node.id, 0)).collect();
        for core in machine.cores.iter().filter(|core| core.cpus.is_subset(free)) {
            let node = machine.domains[core.domain.index()].node;
            *counts.entry(node).or_default() += 1;
        }
        counts
    }
}
