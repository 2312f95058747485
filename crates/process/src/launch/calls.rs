//! The system calls of a placement, as a trait so that tests can simulate any kernel.

use std::collections::HashSet;

use atoll_placement::{Kernel, LiveKernel};
use atoll_sys as sys;
use atoll_sys::{Bitmap, CallError};
use atoll_topology::{Bytes, CpuSet, Machine, NodeId};

use super::obstacle::{self, Obstacle};
use super::plan::{InstancePlan, LaunchPlan};
use super::policy::MemoryPolicy;

/// Share of a node's memory below which it counts as nearly full: 1 / 20.
const FULL_BELOW: u64 = 20;

/// Calls that apply to the calling thread and everything it starts afterwards.
pub trait PlacementCalls: Send + Sync {
    /// `sched_setaffinity`.
    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), CallError>;

    /// `set_mempolicy`.
    fn set_policy(&self, policy: &MemoryPolicy) -> Result<(), CallError>;

    /// File cache of a node, which the kernel reclaims for memory bound to it; zero if unknown.
    fn reclaimable(&self, node: NodeId) -> Bytes;
}

/// The running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveCalls;

impl PlacementCalls for LiveCalls {
    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), CallError> {
        sys::sched_setaffinity(0, &bitmap(cpus.iter().map(u32::from)))
    }

    fn set_policy(&self, policy: &MemoryPolicy) -> Result<(), CallError> {
        let nodes = bitmap(policy.nodes.iter().map(u32::from));
        match policy.balancing {
            true => sys::set_mempolicy_balancing(&nodes),
            false => sys::set_mempolicy(policy.mode, &nodes),
        }
    }

    fn reclaimable(&self, node: NodeId) -> Bytes {
        LiveKernel::new().node_reclaimable(node).unwrap_or_default()
    }
}

/// Numbers of a set are below the limit of the bitmap, which is the same.
fn bitmap(numbers: impl Iterator<Item = u32>) -> Bitmap {
    Bitmap::from_numbers(numbers.filter(|n| *n <= sys::BITMAP_NUMBER_MAX)).unwrap_or_default()
}

/// Applies an instance's cpus and policy to the calling thread. Returns what is refused;
/// the rest takes effect.
pub fn apply(instance: &InstancePlan, calls: &dyn PlacementCalls) -> Vec<Obstacle> {
    let affinity = instance.cpus.as_ref().and_then(|cpus| {
        let refused = calls.set_affinity(cpus).err()?;
        Some(obstacle::of_affinity(refused, cpus))
    });
    let policy = instance.memory.as_ref().and_then(|policy| {
        let refused = calls.set_policy(policy).err()?;
        Some(obstacle::of_policy(refused, policy))
    });
    affinity.into_iter().chain(policy).collect()
}

/// The obstacles of a plan: those that the plan itself found, nodes that are nearly full, and calls that
/// the kernel refuses in a short-lived thread. There is no other way to find out about filters and
/// capabilities.
pub fn probe(machine: &Machine, plan: &LaunchPlan, calls: &dyn PlacementCalls) -> Vec<Obstacle> {
    let mut found = plan.obstacles.clone();
    let is_several = plan.instances.len() > 1;
    for instance in &plan.instances {
        let name = |mut obstacle: Obstacle| {
            obstacle.instance = is_several.then_some(instance.index);
            obstacle
        };
        found.extend(tried(instance, calls).into_iter().map(name));
    }
    found.extend(full_nodes(machine, plan, calls));
    found
}

fn tried(instance: &InstancePlan, calls: &dyn PlacementCalls) -> Vec<Obstacle> {
    std::thread::scope(|scope| scope.spawn(|| apply(instance, calls)).join().unwrap_or_default())
}

/// Nodes with almost no free memory that single-node or bound memory goes to. Interleaved
/// memory skips a full node.
fn full_nodes(machine: &Machine, plan: &LaunchPlan, calls: &dyn PlacementCalls) -> Vec<Obstacle> {
    use sys::PolicyMode::{Bind, Preferred, PreferredMany};
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for policy in plan.instances.iter().filter_map(|instance| instance.memory.as_ref()) {
        if !matches!(policy.mode, Bind | Preferred | PreferredMany) {
            continue;
        }
        for node in machine.nodes.iter().filter(|node| policy.nodes.contains(node.id)) {
            let cache = if policy.mode == Bind { calls.reclaimable(node.id) } else { Bytes(0) };
            let left = Bytes(node.memory_free.0.saturating_add(cache.0));
            if left.0 < node.memory.0 / FULL_BELOW && seen.insert((policy.mode, node.id)) {
                found.push(obstacle::of_full_node(policy, node.id, left, node.memory));
            }
        }
    }
    found
}
