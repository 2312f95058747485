//! Discovery of a machine from sysfs and procfs: one file for each source.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `allowed` | `/proc/self/status` | cpus and nodes the process may use |
//! | `nodes` | `/sys/devices/system/node/{online,node*/cpulist}` | nodes and the home of each cpu |
//! | `cpus` | `/sys/devices/system/cpu/{online,cpu*/topology}`, `/proc/cpuinfo` | packages, cores, models |
//! | `caches` | `/sys/devices/system/cpu/cpu*/cache` | caches of every level; the last levels are domains |
//! | `memory` | `/sys/devices/system/node/node*/meminfo`, `/proc/meminfo` | memory, in all and free |
//! | `huge_pages` | `/sys/devices/system/node/node*/hugepages` | pools of explicit huge pages |
//! | `distances` | `/sys/devices/system/node/node*/distance` | SLIT distances |
//! | `hmat` | `/sys/devices/system/node/node*/access{0,1}` | latency and bandwidth that the firmware tells |
//! | `limits` | `/proc/self/{cgroup,mountinfo}`, cgroupfs | what control groups grant |
//! | `pages` | `/proc/self/auxv`, `/sys/kernel/mm/transparent_hugepage` | page sizes |
//!
//! A file that a kernel may lack has a documented fallback; a file that is there and cannot be
//! understood is an error that names it, because a guess would look like knowledge.

mod allowed;
mod caches;
mod cpus;
mod distances;
mod error;
mod hmat;
mod huge_pages;
mod limits;
mod memory;
mod nodes;
mod pages;
mod read;

use atoll_sys::Root;

use crate::assemble::{self, MachineParts, NodePart};
use crate::{Bytes, CpuSet, Fact, Hidden, Machine, NodeSet, Source};

pub use allowed::Allowed;
pub use error::DiscoverError;
pub use limits::group_directories;

use cpus::Cpus;
use memory::DiscoveredMemory;
use nodes::Nodes;

impl Machine {
    /// The machine this process runs on, as far as the process may use it.
    ///
    /// The bounds are those of the process's first thread when this is called (`/proc/self/status`),
    /// so call it before any thread is bound.
    pub fn discover() -> Result<Self, DiscoverError> {
        let root = Root::live();
        Self::discover_at(&root, &Allowed::of_process(&root)?)
    }

    /// The machine described by the sysfs and procfs under `root`, bounded by `allowed`.
    pub fn discover_at(root: &Root, allowed: &Allowed) -> Result<Self, DiscoverError> {
        let online = cpus::online(root)?;
        let usable = allowed.cpus_in(&online);
        if usable.is_empty() {
            return Err(DiscoverError::NoCpus { online, allowed: allowed.clone() });
        }
        let nodes = Nodes::read(root, &online)?;
        let cpus = Cpus::read(root, &usable, &nodes)?;
        let (kept, hidden_nodes) = nodes_kept(root, &nodes, &usable, allowed)?;
        let kept_ids: NodeSet = kept.iter().map(|node| node.id).collect();
        let (distances, distances_source) = distances::read(root, &nodes, &kept_ids)?;
        let memory_total = kept.iter().fold(0u64, |sum, node| sum.saturating_add(node.memory.0));
        let (page_size, pages_source) = pages::base(root)?;
        Ok(assemble::machine(MachineParts {
            name: host_name(root)?,
            source: Source::Discovered,
            nodes: kept,
            caches_source: cpus.caches_source(),
            caches: cpus.caches,
            links: Vec::new(),
            links_source: Source::Assumed,
            cpus: cpus.parts,
            models: cpus.models,
            memory_source: Source::Discovered,
            distances,
            distances_source,
            hidden: Hidden { cpus: online.difference(&usable), nodes: hidden_nodes },
            limits: limits::read(root, Bytes(memory_total))?,
            pages_source,
            page_size,
            huge_page_size: pages::huge(root)?,
        }))
    }
}

/// What the firmware tells of the paths between the machine's nodes; `root` is that of its discovery.
pub(crate) fn firmware_facts(root: &Root, machine: &Machine) -> Result<Vec<Fact>, DiscoverError> {
    hmat::read(root, machine)
}

/// Nodes with usable memory or usable cpus, and the nodes whose memory is there but not allowed.
fn nodes_kept(
    root: &Root,
    nodes: &Nodes,
    usable: &CpuSet,
    allowed: &Allowed,
) -> Result<(Vec<NodePart>, NodeSet), DiscoverError> {
    let mut kept = Vec::new();
    let mut hidden = NodeSet::new();
    for (node, mut memory) in nodes.online.iter().zip(memory::read(root, nodes)?) {
        if memory.total.0 > 0 && !allowed.has_node(node.id) {
            hidden.insert(node.id);
            memory = DiscoveredMemory::NONE;
        }
        if memory.total.0 > 0 || node.cpus.iter().any(|cpu| usable.contains(cpu)) {
            kept.push(NodePart {
                id: node.id,
                memory: memory.total,
                memory_free: memory.free,
                huge_pages: match memory.total {
                    Bytes(0) => Vec::new(),
                    _ => huge_pages::read(root, nodes, node.id)?,
                },
            });
        }
    }
    Ok((kept, hidden))
}

fn host_name(root: &Root) -> Result<String, DiscoverError> {
    let text = root.read_text_if_present("/proc/sys/kernel/hostname")?;
    let name = text.as_deref().map(str::trim).filter(|name| !name.is_empty());
    Ok(name.unwrap_or("unnamed").to_owned())
}
