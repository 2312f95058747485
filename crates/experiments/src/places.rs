//! Places between which threads are dealt out and migrate: nodes or domains, each with its seats.

use std::collections::BTreeMap;

use atoll_topology::{CpuId, CpuSet, Machine, NodeId};

use crate::{By, CpuRoute};

/// A node or domain with cpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locality {
    /// The node it is or lies in.
    pub(crate) node: NodeId,
    /// Its cpus, one of every core before the second of any.
    pub(crate) seats: Vec<CpuId>,
}

/// All places of a machine, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Localities(pub(crate) Vec<Locality>);

impl Localities {
    pub(crate) fn from_machine(machine: &Machine, by: By) -> Self {
        let place = |node, cpus: &CpuSet| Locality { node, seats: seats(machine, cpus) };
        Self(match by {
            By::Node => machine.nodes_with_cpus().map(|node| place(node.id, &node.cpus)).collect(),
            By::Domain => machine
                .domains
                .iter()
                .filter(|domain| !domain.cpus.is_empty())
                .map(|domain| place(domain.node, &domain.cpus))
                .collect(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The way that starts at seat `row` of a place and goes round all places. Where a place has
    /// fewer seats, threads share them.
    pub(crate) fn way(&self, start: usize, row: usize) -> CpuRoute {
        let round = self.0.iter().cycle().skip(start).take(self.len());
        CpuRoute(
            round
                .filter_map(|place| place.seats.get(row % place.seats.len().max(1)))
                .copied()
                .collect(),
        )
    }

    /// Whether a place has fewer seats than `threads`.
    pub(crate) fn is_short_of(&self, threads: usize) -> bool {
        self.0.iter().any(|place| place.seats.len() < threads)
    }
}

/// Cpus of one of every core first, then the second ones.
fn seats(machine: &Machine, cpus: &CpuSet) -> Vec<CpuId> {
    let mut met = BTreeMap::new();
    let mut ranked: Vec<_> = cpus
        .iter()
        .filter_map(|id| machine.cpu(id))
        .map(|cpu| {
            let rank = met.entry(cpu.core).or_insert(0);
            *rank += 1;
            (*rank, cpu.id)
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, cpu)| cpu).collect()
}
