//! A placement strategy that a process applies to itself, and its reading back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use atoll_placement::Strategy;
use atoll_process::inspect::{Balancing, LivePages, MappingKind, MemoryOptions, NodeMap, memory};
use atoll_process::launch::{InstancePlan, LaunchPlan, LaunchRequest, LiveCalls, apply, probe};
use atoll_sys::{Root, page_size, sched_getaffinity};
use atoll_topology::{CpuId, CpuSet, Machine};
use serde::{Deserialize, Serialize};

/// The placement that the kernel reports after the work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PlacementSeen {
    /// What was asked for.
    pub(crate) asked: String,
    /// Settings that the kernel refused, and why.
    pub(crate) obstacles: Vec<String>,
    /// Cpus on which the process may run.
    pub(crate) cpus: String,
    /// Bytes of resident memory under each policy, in the kernel's words.
    pub(crate) policies: BTreeMap<String, u64>,
    /// Bytes of resident memory on each node, beside those of the program itself.
    pub(crate) nodes: BTreeMap<u32, u64>,
    /// Threads of the work on each node at their end.
    #[serde(alias = "readers")]
    pub(crate) threads: BTreeMap<u32, u32>,
    /// `kernel.numa_balancing`; None where this kernel has none.
    pub(crate) balancing: Option<u32>,
    /// Pages that balancing moved on the whole machine meanwhile.
    pub(crate) pages_migrated: Option<u64>,
}

impl PlacementSeen {
    /// Shares of the pages on the nodes in words.
    pub(crate) fn shares(&self) -> String {
        let all: u64 = self.nodes.values().sum();
        let share = |(node, bytes): (&u32, &u64)| {
            format!("{node}: {:.0} %", 100.0 * *bytes as f64 / all.max(1) as f64)
        };
        self.nodes.iter().map(share).collect::<Vec<_>>().join(", ")
    }
}

/// The strategy by its name.
///
/// # Errors
/// For an unknown one, and for `replicate`, which needs an engine that copies its data.
pub(crate) fn strategy(text: &str) -> Result<Strategy, String> {
    match text.parse() {
        Ok(Strategy::Replicate) => {
            Err("the engine has one copy of its data; use another strategy".to_owned())
        }
        Ok(strategy) => Ok(strategy),
        Err(error) => Err(error.to_string()),
    }
}

/// Applies a strategy to the calling thread, which all later threads inherit.
///
/// # Errors
/// When the strategy has no plan on this machine.
pub(crate) fn applied(machine: &Machine, arm: &str) -> Result<PlacementSeen> {
    let plan = plan(machine, arm)?;
    let instance = plan.instances.first().context("a plan has an instance")?;
    let obstacles = apply(instance, &LiveCalls).into_iter().chain(plan.obstacles.clone());
    Ok(PlacementSeen {
        asked: asked(instance),
        obstacles: obstacles.map(|it| it.to_string()).collect(),
        ..PlacementSeen::default()
    })
}

/// What a program that starts under a strategy asks for, and what of it the kernel refuses.
///
/// # Errors
/// When the strategy has no plan on this machine.
pub(crate) fn planned(machine: &Machine, arm: &str) -> Result<PlacementSeen> {
    let plan = plan(machine, arm)?;
    let instance = plan.instances.first().context("a plan has an instance")?;
    let obstacles = probe(machine, &plan, &LiveCalls);
    Ok(PlacementSeen {
        asked: asked(instance),
        obstacles: obstacles.iter().map(ToString::to_string).collect(),
        ..PlacementSeen::default()
    })
}

fn plan(machine: &Machine, arm: &str) -> Result<LaunchPlan> {
    let strategy = strategy(arm).map_err(anyhow::Error::msg)?;
    let request = LaunchRequest { strategy: Some(strategy), ..LaunchRequest::default() };
    let plan = LaunchPlan::new(machine, &request)?;
    ensure!(plan.instances.len() == 1, "{arm} starts more than one process");
    Ok(plan)
}

fn asked(instance: &InstancePlan) -> String {
    let cpus = instance.cpus.as_ref().map(|cpus| format!("threads on cpus {cpus}"));
    let memory = instance.memory.as_ref().map(|policy| format!("memory {policy}"));
    let (cpus, memory) = (cpus.as_deref(), memory.as_deref());
    format!("{}, {}", cpus.unwrap_or("threads free"), memory.unwrap_or("no memory policy"))
}

/// What a look at the memory of a process found.
pub(crate) struct MemoryNow {
    /// Bytes on each node; the program and its libraries, which many processes share, are left out.
    nodes: BTreeMap<u32, u64>,
    /// Bytes under each policy.
    policies: BTreeMap<String, u64>,
    /// What could not be read, and why.
    missing: Vec<String>,
}

impl MemoryNow {
    /// Looks at a process; a server of several processes is looked at one by one.
    ///
    /// # Errors
    /// When it is gone, or belongs to another user.
    pub(crate) fn read(machine: &Machine, pid: u32) -> Result<Self> {
        let (root, options) = (Root::live(), MemoryOptions::default());
        let (map, mut missing) = (NodeMap::read(&root, machine), Vec::new());
        let page = page_size() as u64;
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

/// Reads back where a process is; memory that was there `before` is left out of the sums by node.
///
/// # Errors
/// When it is gone, or belongs to another user.
pub(crate) fn read_back(
    machine: &Machine,
    pid: u32,
    before: &MemoryNow,
    seen: &mut PlacementSeen,
) -> Result<()> {
    let cpus = sched_getaffinity(pid.cast_signed()).context("the affinity cannot be read")?;
    seen.cpus = cpus.into_iter().map(CpuId).collect::<CpuSet>().to_string();
    let MemoryNow { nodes, policies, missing } = MemoryNow::read(machine, pid)?;
    let earlier = |node| before.nodes.get(node).copied().unwrap_or_default();
    let added = nodes.iter().map(|(node, bytes)| (*node, bytes.saturating_sub(earlier(node))));
    seen.nodes = added.collect();
    seen.policies = policies;
    seen.obstacles.extend(missing);
    seen.balancing = Balancing::read(&Root::live()).mode;
    Ok(())
}
