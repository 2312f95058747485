//! The node, or domain, of each instance.

use atoll_topology::{CpuSet, DomainId, Machine, NodeId, NodeSet};

use super::plan_error::LaunchPlanError;
use super::request::Instances;

/// The place of an instance, before a strategy is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstanceSeat {
    pub(super) node: NodeId,
    pub(super) domain: Option<DomainId>,
    /// Cpus of the node or domain.
    pub(super) cpus: CpuSet,
}

/// Seats on these nodes, or on all with cpus; a program alone sits on the first.
pub(super) fn seats(
    machine: &Machine,
    instances: Option<Instances>,
    nodes: Option<&NodeSet>,
) -> Result<Vec<InstanceSeat>, LaunchPlanError> {
    let is_in = |node: NodeId| nodes.is_none_or(|nodes| nodes.contains(node));
    let seats: Vec<InstanceSeat> = match instances {
        Some(Instances::Domains) => {
            let domains = machine.domains.iter().filter(|domain| is_in(domain.node));
            domains.map(|it| seat(it.node, Some(it.id), &it.cpus)).collect()
        }
        _ => {
            let nodes = machine.nodes_with_cpus().filter(|node| is_in(node.id));
            nodes.map(|it| seat(it.id, None, &it.cpus)).collect()
        }
    };
    if seats.is_empty() {
        return Err(LaunchPlanError::NoCpus { machine: machine.name.clone() });
    }
    let count = match instances {
        None => 1,
        Some(Instances::Count(count)) => count as usize,
        Some(Instances::Nodes | Instances::Domains) => seats.len(),
    };
    Ok(seats.into_iter().cycle().take(count).collect())
}

fn seat(node: NodeId, domain: Option<DomainId>, cpus: &CpuSet) -> InstanceSeat {
    InstanceSeat { node, domain, cpus: cpus.clone() }
}
