//! The arms: a placement strategy that a process applies to itself, and its reading back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use atoll_placement::Strategy;
use atoll_process::inspect::{Balancing, LivePages, MappingKind, MemoryOptions, NodeMap, memory};
use atoll_process::launch::{InstancePlan, LaunchPlan, LaunchRequest, LiveCalls, apply};
use atoll_sys::{Root, page_size, sched_getaffinity};
use atoll_topology::{CpuId, CpuSet, Machine};

use super::case::PlacementSeen;

/// What every arm means, for those that the report compares.
pub(super) fn meaning(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Default => {
            "no policy: the first touch decides, and automatic balancing moves pages where it is on \
             (what the report calls local)"
        }
        Strategy::Local => {
            "as default, by a policy of its own: automatic balancing leaves the process alone"
        }
        Strategy::Spread => "threads free, pages over all nodes in turn (the report's interleave)",
        Strategy::Subset(_) => {
            "threads and pages on the first nodes only (the report's conclusion)"
        }
        Strategy::Aligned => "threads and pages on one node",
        _ => "",
    }
}

/// The strategy by its name.
pub(super) fn strategy(text: &str) -> Result<Strategy, String> {
    match text.parse() {
        Ok(Strategy::Replicate) => {
            Err("a key-value engine has one copy of its data; use another strategy".to_owned())
        }
        Ok(strategy) => Ok(strategy),
        Err(error) => Err(error.to_string()),
    }
}

/// Applies a strategy to the calling thread, which all later threads inherit.
///
/// # Errors
/// When the strategy has no plan on this machine.
pub(super) fn applied(machine: &Machine, arm: &str) -> Result<PlacementSeen> {
    let strategy = strategy(arm).map_err(anyhow::Error::msg)?;
    let request = LaunchRequest { strategy: Some(strategy), ..LaunchRequest::default() };
    let plan = LaunchPlan::new(machine, &request)?;
    ensure!(plan.instances.len() == 1, "{arm} starts more than one process");
    let instance = plan.instances.first().context("a plan has an instance")?;
    let obstacles = apply(instance, &LiveCalls).into_iter().chain(plan.obstacles.clone());
    Ok(PlacementSeen {
        asked: asked(instance),
        obstacles: obstacles.map(|it| it.to_string()).collect(),
        ..PlacementSeen::default()
    })
}

fn asked(instance: &InstancePlan) -> String {
    let cpus = instance.cpus.as_ref().map(|cpus| format!("threads on cpus {cpus}"));
    let memory = instance.memory.as_ref().map(|policy| format!("memory {policy}"));
    let (cpus, memory) = (cpus.as_deref(), memory.as_deref());
    format!("{}, {}", cpus.unwrap_or("threads free"), memory.unwrap_or("no memory policy"))
}

/// What a look at the memory of this process found.
pub(super) struct MemoryNow {
    /// Bytes on each node; the program and its libraries, which many processes share, are left out.
    nodes: BTreeMap<u32, u64>,
    /// Bytes under each policy.
    policies: BTreeMap<String, u64>,
    /// What could not be read, and why.
    missing: Vec<String>,
}

impl MemoryNow {
    /// Looks.
    pub(super) fn read(machine: &Machine) -> Result<Self> {
        let (root, options) = (Root::live(), MemoryOptions::default());
        let (map, mut missing) = (NodeMap::read(&root, machine), Vec::new());
        let (pid, page) = (std::process::id(), page_size() as u64);
        let found = memory::read(&root, &LivePages, &map, page, pid, &options, &mut missing)?;
        let data = found.by_kind.iter().filter(|(kind, _)| **kind != MappingKind::Program);
        let mut nodes = BTreeMap::new();
        for (node, bytes) in data.flat_map(|(_, bytes)| bytes) {
            if let Some(node) = node {
                *nodes.entry(u32::from(*node)).or_default() += bytes;
            }
        }
        let resident = found.policies.unwrap_or_default().into_iter().filter(|it| it.bytes > 0);
        let missing = missing.iter().map(|it| format!("{}: needs {}", it.what, it.need));
        Ok(Self {
            nodes,
            policies: resident.map(|it| (it.policy, it.bytes)).collect(),
            missing: missing.collect(),
        })
    }
}

/// Reads back where this process is; memory that was there `before` is left out of the sums by node.
pub(super) fn read_back(
    machine: &Machine,
    before: &MemoryNow,
    seen: &mut PlacementSeen,
) -> Result<()> {
    let cpus = sched_getaffinity(0).context("the affinity cannot be read")?;
    seen.cpus = cpus.into_iter().map(CpuId).collect::<CpuSet>().to_string();
    let MemoryNow { nodes, policies, missing } = MemoryNow::read(machine)?;
    let earlier = |node| before.nodes.get(node).copied().unwrap_or_default();
    let added = nodes.iter().map(|(node, bytes)| (*node, bytes.saturating_sub(earlier(node))));
    seen.nodes = added.collect();
    seen.policies = policies;
    seen.obstacles.extend(missing);
    seen.balancing = Balancing::read(&Root::live()).mode;
    Ok(())
}
