//! Experiment 1: one thread and an array larger than the cache, in local memory or in that of the
//! farthest node.

use atoll_placement::{MemoryHome, Policy, Strategy};
use atoll_topology::NodeId;

use super::{ArmVariant, Draft, LAB, LARGE, RowSubject};
use crate::{By, CpuRoute, Group, Home, PlanError};

pub(super) fn plan(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    let places = draft.places(By::Node);
    let start = places.0.iter().position(|place| {
        let node = draft.machine.node(place.node);
        node.is_some_and(|node| node.memory.0 > 0)
    });
    let start = start.unwrap_or(0);
    let Some(place) = places.0.get(start) else {
        let message = "experiment 1: this process may use no cpu of this machine; check the cpuset";
        return Err(PlanError::NotHere(message.to_owned()));
    };
    let way = places.way(start, 0);
    let local = home(draft, Strategy::Aligned, place.node)?;
    let farthest = home(draft, Strategy::Farthest, place.node)?;
    let mut variants = vec![variant("local", local, &way)];
    if farthest == local {
        draft.note(format!("experiment 1: remote memory needs two nodes with memory; {LAB}"));
    } else {
        variants.push(variant("remote", farthest, &way));
    }
    for operation in draft.operations() {
        let subject = RowSubject {
            experiment: 1,
            who: String::new(),
            operation: *operation,
            size: LARGE,
            processes: false,
        };
        draft.row(&subject, variants.clone());
    }
    Ok(())
}

/// The one node of the memory that a strategy gives to a node's threads.
pub(super) fn home(
    draft: &Draft<'_>,
    strategy: Strategy,
    node: NodeId,
) -> Result<NodeId, PlanError> {
    match strategy.home_of(draft.machine, node)?.memory {
        MemoryHome::Once(Policy::Preferred(home)) => Ok(home),
        _ => Ok(node),
    }
}

fn variant(word: &str, node: NodeId, way: &CpuRoute) -> ArmVariant {
    let group = Group { home: Home::On(node), threads: vec![way.clone()] };
    ArmVariant { setting: format!("{word} (node {node})"), groups: vec![group], migrations: 0 }
}
