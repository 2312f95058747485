//! Discovery of a machine from sysfs and procfs: one file for each source.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `files` | any | errors in it |
//! | `allowed` | `/proc/self/status` | cpus and nodes the process may use |
//! | `cpuset` | `/proc/self/cpuset`, cgroupfs | the same, if a copied tree lacks `status` |
//! | `nodes` | `/sys/devices/system/node/{online,node*/cpulist}`, `/sys/devices/system/cpu/cpu*/node*` | nodes and the home of each cpu |
//! | `cpus` | `/sys/devices/system/cpu/{online,cpu*/topology}`, `/proc/cpuinfo` | cores, models |
//! | `packages` | `cpu*/topology/{physical_package_id,package_cpus_list}` | packages |
//! | `dies` | `cpu*/topology/{die_id,die_cpus_list}` | dies of packages that have several |
//! | `kinds` | `/sys/devices/cpu_{core,atom}`, `cpu*/cpu_capacity`, `cpu*/cpufreq` | cpus of several kinds |
//! | `caches` | `/sys/devices/system/cpu/cpu*/cache` | caches of every level; the last levels are domains |
//! | `peers` | nothing | the cpus that a cpu may share a core or a cache with |
//! | `memory` | `/sys/devices/system/node/node*/meminfo`, without NUMA `/proc/meminfo` | total and free memory |
//! | `huge_pages` | `/sys/devices/system/node/node*/hugepages` | pools of explicit huge pages |
//! | `side_caches` | `/sys/devices/system/node/node*/memory_side_cache` | caches in front of memory |
//! | `distances` | `/sys/devices/system/node/node*/distance` | SLIT distances |
//! | `hmat` | `/sys/devices/system/node/node*/access{0,1}` | latency and bandwidth from the firmware, and the cpus nearest to memory |
//! | `limits` | `/proc/self/{cgroup,mountinfo}`, cgroupfs | limits of control groups |
//! | `pages` | `/proc/self/auxv`, `/sys/kernel/mm/transparent_hugepage` | page sizes |
//!
//! Discovery never rejects a machine. A file that a kernel may lack has a documented fallback; if files contradict
//! each other or cannot be parsed, [`Machine::assumptions`] lists the file, what was found and what is assumed instead.

mod allowed;
mod caches;
mod cpus;
mod cpuset;
mod dies;
mod distances;
mod error;
mod files;
mod hmat;
mod huge_pages;
mod kinds;
mod limits;
mod memory;
mod nodes;
mod packages;
mod pages;
mod peers;
mod side_caches;

use atoll_sys::Root;

use crate::assemble::{self, MachineParts, NodePart};
use crate::{Bytes, CpuSet, Fact, Hidden, Machine, NodeSet, Source};

pub use allowed::Allowed;
pub use error::DiscoverError;
pub use limits::group_directories;
pub(crate) use memory::MACHINE as MEMINFO;

use cpus::Cpus;
use files::KernelFiles;
use memory::DiscoveredMemory;
use nodes::{Nodes, OnlineNode};

impl Machine {
    /// Discovers the machine this process runs on, restricted to what the process may use.
    ///
    /// The restrictions are those of the process's main thread when this is called (`/proc/self/status`), so call it
    /// before any thread is bound.
    pub fn discover() -> Result<Self, DiscoverError> {
        let root = Root::live();
        Self::discover_at(&root, &Allowed::of_process(&root))
    }

    /// Discovers the machine described by the sysfs and procfs under `root`, restricted to `allowed`. Fails if no file
    /// under `root` describes a cpu.
    pub fn discover_at(root: &Root, allowed: &Allowed) -> Result<Self, DiscoverError> {
        let files = KernelFiles::new(root);
        let online = cpus::online(&files, allowed);
        if online.is_empty() {
            return Err(DiscoverError::NoCpus { root: root.path("")? });
        }
        let usable = cpus::usable(&files, &online, allowed);
        let nodes = Nodes::read(&files, &online.union(&usable));
        let cpus = Cpus::read(&files, &usable, &nodes);
        let (memories, memory_source) = memory::read(&files, &nodes);
        let (kept, hidden_nodes) = nodes_kept(&files, &nodes, memories, &usable, allowed);
        let kept_ids: NodeSet = kept.iter().map(|node| node.id).collect();
        let (distances, distances_source) = distances::read(&files, &nodes, &kept_ids);
        let memory_total = kept.iter().fold(0u64, |sum, node| sum.saturating_add(node.memory.0));
        let (page_size, pages_source) = pages::base(&files);
        let parts = MachineParts {
            name: host_name(&files),
            source: Source::Discovered,
            nodes: kept,
            caches_source: cpus.caches_source(),
            dies: dies::read(&files, &cpus.parts),
            caches: cpus.caches,
            cpus: cpus.parts,
            models: cpus.models,
            links: Vec::new(),
            links_source: Source::Assumed,
            memory_source,
            memory_free_source: match memory_source {
                Source::Discovered => Source::Observed,
                other => other,
            },
            cpu_kinds: kinds::read(&files, &usable),
            distances,
            distances_source,
            hidden: Hidden { cpus: online.difference(&usable), nodes: hidden_nodes },
            limits: limits::read(&files, Bytes(memory_total)),
            pages_source,
            page_size,
            huge_page_size: pages::huge(&files),
            assumptions: Vec::new(),
        };
        let assumptions = [allowed.assumptions.clone(), files.assumptions()].concat();
        Ok(assemble::machine(MachineParts { assumptions, ..parts }))
    }
}

/// The firmware's facts about paths between the machine's nodes; `root` is that of its discovery. Errors are added to
/// the machine's assumptions.
pub(crate) fn firmware_facts(root: &Root, machine: &mut Machine) -> Vec<Fact> {
    let files = KernelFiles::new(root);
    let facts = hmat::read(&files, machine);
    machine.assumptions.extend(files.assumptions());
    facts
}

/// Nodes with usable memory or cpus, and the nodes whose memory exists but is not allowed.
fn nodes_kept(
    files: &KernelFiles<'_>,
    nodes: &Nodes,
    memories: Vec<DiscoveredMemory>,
    usable: &CpuSet,
    allowed: &Allowed,
) -> (Vec<NodePart>, NodeSet) {
    let mut kept = Vec::new();
    let mut hidden = NodeSet::new();
    for (node, mut memory) in nodes.online.iter().zip(memories) {
        if memory.total.0 > 0 && !allowed.has_node(node.id) {
            hidden.insert(node.id);
            memory = DiscoveredMemory::NONE;
        }
        let has_cpus = usable.iter().any(|cpu| nodes.is_home(node.id, cpu));
        if memory.total.0 > 0 || has_cpus {
            kept.push(NodePart {
                id: node.id,
                near: if has_cpus { CpuSet::new() } else { near(files, nodes, node, usable) },
                memory: memory.total,
                memory_free: memory.free,
                huge_pages: match memory.total {
                    Bytes(0) => Vec::new(),
                    _ => huge_pages::read(files, nodes, node.id),
                },
                side_caches: side_caches::read(files, node.id),
            });
        }
    }
    (kept, hidden)
}

/// The usable cpus nearest to a node that has none: those that it lists although they belong to another node, else
/// those of the nodes that the firmware names.
fn near(files: &KernelFiles<'_>, nodes: &Nodes, node: &OnlineNode, usable: &CpuSet) -> CpuSet {
    let listed = node.listed.intersection(usable);
    if !listed.is_empty() {
        return listed;
    }
    let from = hmat::nearest(files, node.id);
    usable.iter().filter(|&cpu| from.contains(&nodes.home(cpu))).collect()
}

fn host_name(files: &KernelFiles<'_>) -> String {
    let text = files.text("/proc/sys/kernel/hostname");
    let name = text.as_deref().map(str::trim).filter(|name| !name.is_empty());
    name.unwrap_or("unnamed").to_owned()
}
