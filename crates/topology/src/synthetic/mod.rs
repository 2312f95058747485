//! Machines from a line of text, as hwloc's synthetic descriptions: `pack:2 node:2 l3:4 core:8 pu:2`.
//!
//! Each level tells how many of it there are in each of the level above. The levels are, from the
//! outside in, `pack` (also `package`, `socket`), `node` (`numa`, `numanode`), `l3` (`l3cache`,
//! `domain`), `core` and `pu` (`cpu`), in upper or lower case; each may be left out, at least one is
//! there. `node` takes the memory of each, `l3` the size of each: `node:2(memory=16GB)`,
//! `l3:4(size=32MiB)`.
//!
//! What is left out: without `node` the machine is one node (as in hwloc), without `pack` every node
//! is a package, and `l3`, `core` and `pu` are one each. Without `memory=` a node has 1 GiB (as in
//! hwloc), which is marked as assumed; so are the distances, 10 local and 20 remote, and without `l3`
//! the caches. Cpus are numbered core by core.

mod cursor;
mod parse;

use std::collections::BTreeMap;

use crate::assemble::{self, CachePart, CpuPart, MachineParts, NodePart};
use crate::builder::{CACHE_LEVEL, HUGE_PAGE_SIZE, PAGE_SIZE};
use crate::{Bytes, CpuId, Hidden, Limits, Machine, NodeId, PackageId, Source};

use parse::{LevelCount, Levels};

/// What hwloc gives a node whose memory is not told.
const NODE_MEMORY_ASSUMED: Bytes = Bytes(1 << 30);

/// Why a text is not a synthetic description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "synthetic machine '{text}': at character {position}: expected {expected}, found {found}; \
     an example is 'node:4(memory=16GiB) l3:2 core:8 pu:2'"
)]
pub struct SyntheticError {
    /// The text, its first 200 characters.
    pub text: String,
    /// Character at which it goes wrong, from 1.
    pub position: usize,
    /// What belongs there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Machine {
    /// A machine from a synthetic description such as `node:4 core:2 pu:1`.
    pub fn synthetic(text: &str) -> Result<Self, SyntheticError> {
        let levels = Levels::parse(text)?;
        let nodes = nodes(&levels);
        let known = |known: bool| if known { Source::Synthetic } else { Source::Assumed };
        Ok(assemble::machine(MachineParts {
            name: text.split_whitespace().collect::<Vec<_>>().join(" "),
            source: Source::Synthetic,
            cpus: cpus(&levels),
            models: BTreeMap::new(),
            memory_source: known(levels.node.size().is_some()),
            memory_free_source: Source::Assumed,
            dies: Vec::new(),
            cpu_kinds: Vec::new(),
            caches_source: known(levels.l3.is_given()),
            caches: Vec::new(),
            links: Vec::new(),
            links_source: Source::Assumed,
            distances: assemble::distances_assumed(nodes.len()),
            distances_source: Source::Assumed,
            hidden: Hidden::default(),
            limits: Limits::default(),
            pages_source: Source::Assumed,
            page_size: PAGE_SIZE,
            huge_page_size: Some(HUGE_PAGE_SIZE),
            assumptions: Vec::new(),
            nodes,
        }))
    }
}

/// Nodes of the machine: one without a `node` level.
fn nodes(levels: &Levels) -> Vec<NodePart> {
    let count = if levels.node.is_given() { levels.pack.count() * levels.node.count() } else { 1 };
    let memory = levels.node.size().unwrap_or(NODE_MEMORY_ASSUMED);
    let node = |id| NodePart::new(NodeId(id), memory);
    (0..count).map(node).collect()
}

/// Cpus, placed by dividing their numbers by the cpus that each level holds.
fn cpus(levels: &Levels) -> Vec<CpuPart> {
    let core = levels.pu.count();
    let domain = core * levels.core.count();
    let node = domain * levels.l3.count();
    let package = node * levels.node.count();
    (0..package * levels.pack.count())
        .map(|cpu| {
            let node = NodeId(if levels.node.is_given() { cpu / node } else { 0 });
            CpuPart {
                id: CpuId(cpu),
                package: PackageId(if levels.pack.is_given() { cpu / package } else { node.0 }),
                node,
                core: CpuId(cpu / core * core),
                cache: cache(&levels.l3, cpu / domain * domain),
            }
        })
        .collect()
}

/// The cache of the cpus from `leader` on; without an `l3` level the node's cpus are one domain.
fn cache(l3: &LevelCount, leader: u32) -> CachePart {
    let level = l3.is_given().then_some(CACHE_LEVEL);
    let leader = CpuId(if l3.is_given() { leader } else { 0 });
    CachePart { leader, level, size: l3.size() }
}
