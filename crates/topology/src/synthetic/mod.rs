//! Machines from a line of text, as hwloc's synthetic descriptions: `pack:2 node:2 l3:4 core:8 pu:2`.
//!
//! Each level gives the number of its objects in each object of the level above, from the outside in: `pack`
//! (also `package`, `socket`), `die`, `group` (also `tile`, `module`), `node` (`numa`, `numanode`), caches
//! (`l1` to `l5`, with `d`, `i` or `u` for data, instructions or both, as in `l1d` or `L1iCache`; `domain`
//! is `l3`), `core` and `pu` (`cpu`), in upper or lower case. The cpus come last. Alternatively, nodes are in
//! brackets after the level whose objects have them: `pack:2 [numa] [numa(memory=1GB)]`. A description of only
//! numbers (`2 4 2`) gets the levels that hwloc gives it.
//!
//! In parentheses: `memory=` and `memorysidecachesize=` of a node, `size=` of a cache, `indexes=` for the numbering of
//! objects: see `indexes`.
//!
//! Defaults: without nodes the machine is one node (as in hwloc), without `pack` every node is a
//! package, without `core` the innermost level above the cpus is a core, and `pu` is one. Without
//! `memory=` a node has 1 GiB (as in hwloc), which is marked as assumed; so are the distances, 10 local
//! and 20 remote, and without a cache the domains. If several nodes cover the same cpus, the smallest is their home,
//! and the others are memory near to them.

mod cursor;
mod indexes;
mod level;
mod parse;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::assemble::{self, CachePart, CpuPart, MachineParts, NodePart};
use crate::builder::{CPUS_MAX, HUGE_PAGE_SIZE, PAGE_SIZE};
use crate::{
    Bytes, Cache, CacheKind, CpuId, CpuSet, Die, Hidden, Limits, Machine, NodeId, PackageId,
    SideCache, Source,
};

use cursor::TextCursor;
use level::{IndexesText, Level, LevelKind};
use parse::Description;

/// hwloc's default for a node's memory.
const NODE_MEMORY_ASSUMED: Bytes = Bytes(1 << 30);
/// Limit for the total number of near cpus of all nodes, since nodes may overlap.
const NEAR_CPUS_MAX: u64 = 16 * CPUS_MAX as u64;

/// Why a text is not a synthetic description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "synthetic machine '{text}': at character {position}: expected {expected}, found {found}; \
     an example is 'node:4(memory=16GiB) l3:2 core:8 pu:2'"
)]
pub struct SyntheticError {
    /// The text, its first 200 characters.
    pub text: String,
    /// Character of the error, from 1.
    pub position: usize,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl Machine {
    /// A machine from a synthetic description such as `node:4 core:2 pu:1`.
    pub fn synthetic(text: &str) -> Result<Self, SyntheticError> {
        let description = Description::parse(text)?;
        let plan = Plan::from_description(text, &description)?;
        let known = |known: bool| if known { Source::Synthetic } else { Source::Assumed };
        let has_caches = plan.levels.iter().any(|level| plan.is_last_level(level));
        let cpus = plan.cpu_parts();
        Ok(assemble::machine(MachineParts {
            name: text.split_whitespace().collect::<Vec<_>>().join(" "),
            source: Source::Synthetic,
            models: BTreeMap::new(),
            memory_source: known(plan.nodes.iter().all(|node| node.memory.is_some())),
            memory_free_source: Source::Assumed,
            dies: plan.dies(&cpus),
            cpus,
            cpu_kinds: Vec::new(),
            caches_source: known(has_caches),
            caches: plan.caches(),
            links: Vec::new(),
            links_source: Source::Assumed,
            distances: assemble::distances_assumed(plan.nodes.len()),
            distances_source: Source::Assumed,
            hidden: Hidden::default(),
            limits: Limits::default(),
            pages_source: Source::Assumed,
            page_size: PAGE_SIZE,
            huge_page_size: Some(HUGE_PAGE_SIZE),
            assumptions: Vec::new(),
            nodes: plan.node_parts(),
        }))
    }
}

/// A node and the cpus, by their order, to which its memory is local.
struct PlannedNode {
    id: NodeId,
    cpus: Range<u32>,
    memory: Option<Bytes>,
    side_cache: Option<Bytes>,
}

/// All objects with their numbers. Cpus are in order, and each object of a level has a consecutive range.
struct Plan<'a> {
    levels: &'a [Level<'a>],
    cpus: Vec<CpuId>,
    nodes: Vec<PlannedNode>,
    packages: Option<Vec<u32>>,
    dies: Vec<u32>,
}

impl<'a> Plan<'a> {
    fn from_description(
        text: &str,
        description: &'a Description<'a>,
    ) -> Result<Self, SyntheticError> {
        let levels = &description.levels[..];
        let of_kind = |kind| levels.iter().find(|level| level.kind == kind);
        let number = |indexes, total| indexes::numbers(text, indexes, total, levels);
        let numbers = |level: &Level<'a>| number(level.attributes.indexes, level.total);
        let cpus = levels.last().map(numbers).transpose()?.unwrap_or_default();
        let mut plan = Self {
            levels,
            cpus: cpus.into_iter().map(CpuId).collect(),
            nodes: Vec::new(),
            packages: of_kind(LevelKind::Package).map(numbers).transpose()?,
            dies: of_kind(LevelKind::Die).map(numbers).transpose()?.unwrap_or_default(),
        };
        plan.nodes = plan.planned_nodes(description);
        let indexes: Option<IndexesText<'_>> = match of_kind(LevelKind::Node) {
            Some(level) => level.attributes.indexes,
            None => description.attached_indexes,
        };
        let ids = number(indexes, plan.nodes.len() as u32)?;
        for (node, id) in plan.nodes.iter_mut().zip(ids) {
            node.id = NodeId(id);
        }
        let near: u64 = plan.nodes.iter().map(|node| node.cpus.len() as u64).sum();
        match near > NEAR_CPUS_MAX {
            true => Err(TextCursor::new(text).error_at(0, "fewer nodes over the same cpus")),
            false => Ok(plan),
        }
    }

    fn count(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// The cpus of each object of a level, by their order.
    fn ranges(&self, total: u32) -> impl Iterator<Item = Range<u32>> + use<> {
        let width = self.count() / total;
        (0..total).map(move |object| object * width..(object + 1) * width)
    }

    fn set(&self, range: Range<u32>) -> CpuSet {
        self.cpus[range.start as usize..range.end as usize].iter().copied().collect()
    }

    /// The nodes in hwloc's order: those of inner levels before those of the level around them.
    fn planned_nodes(&self, description: &Description<'_>) -> Vec<PlannedNode> {
        let id = NodeId(0);
        if let Some(level) = self.levels.iter().find(|level| level.kind == LevelKind::Node) {
            let (memory, side_cache) = (level.attributes.size, level.attributes.side_cache);
            let node = |cpus| PlannedNode { id, cpus, memory, side_cache };
            return self.ranges(level.total).map(node).collect();
        }
        let mut nodes = Vec::new();
        for (order, attached) in description.attached.iter().enumerate() {
            let level = attached.depth.checked_sub(1).map(|depth| &self.levels[depth]);
            let (memory, side_cache) = (attached.memory, attached.side_cache);
            for cpus in self.ranges(level.map_or(1, |level| level.total)) {
                let key = (cpus.end, std::cmp::Reverse(attached.depth), order);
                nodes.push((key, PlannedNode { id, cpus, memory, side_cache }));
            }
        }
        if nodes.is_empty() {
            let (memory, side_cache) = (description.machine.size, description.machine.side_cache);
            return vec![PlannedNode { id, cpus: 0..self.count(), memory, side_cache }];
        }
        nodes.sort_by_key(|(key, _)| *key);
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    fn node_parts(&self) -> Vec<NodePart> {
        let part = |node: &PlannedNode| NodePart {
            near: self.set(node.cpus.clone()),
            side_caches: node
                .side_cache
                .map(|size| SideCache { level: 1, size, line: None })
                .into_iter()
                .collect(),
            ..NodePart::new(node.id, node.memory.unwrap_or(NODE_MEMORY_ASSUMED))
        };
        self.nodes.iter().map(part).collect()
    }

    /// The home of each cpu: the node with the fewest cpus, and of those the smallest number.
    fn homes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<&PlannedNode> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| std::cmp::Reverse((node.cpus.len(), node.id)));
        let mut homes = vec![NodeId(0); self.cpus.len()];
        for node in nodes {
            homes[node.cpus.start as usize..node.cpus.end as usize].fill(node.id);
        }
        homes
    }

    fn cpu_parts(&self) -> Vec<CpuPart> {
        let homes = self.homes();
        let last_level = self.levels.iter().filter(|level| self.is_last_level(level));
        let last_level = last_level.max_by_key(|level| cache_level(level.kind));
        let core = self.levels.iter().rev().find(|level| level.kind == LevelKind::Core);
        let core = core.or_else(|| self.levels.iter().rev().nth(1));
        // The first cpu of the object that a cpu lies in; without a level, of the machine.
        let leader = |position: u32, level: Option<&Level<'_>>| {
            let width = self.count() / level.map_or(1, |level| level.total);
            self.cpus[(position / width * width) as usize]
        };
        let part = |(position, node): (u32, NodeId)| CpuPart {
            id: self.cpus[position as usize],
            package: match &self.packages {
                Some(numbers) => {
                    let width = self.count() / numbers.len() as u32;
                    PackageId(numbers[(position / width) as usize])
                }
                None => PackageId(node.0),
            },
            node,
            core: leader(position, core),
            cache: CachePart {
                leader: leader(position, last_level),
                level: last_level.map(|level| cache_level(level.kind)),
                size: last_level.and_then(|level| level.attributes.size),
            },
        };
        (0..).zip(homes).map(part).collect()
    }

    /// Whether the level may be the cache that defines domains.
    fn is_last_level(&self, level: &Level<'_>) -> bool {
        matches!(level.kind, LevelKind::Cache { kind, .. } if kind != CacheKind::Instruction)
    }

    fn caches(&self) -> Vec<Cache> {
        let mut caches = Vec::new();
        for each in self.levels {
            if let LevelKind::Cache { level, kind } = each.kind {
                let size = each.attributes.size;
                caches.extend(self.ranges(each.total).map(|cpus| Cache {
                    level,
                    kind,
                    cpus: self.set(cpus),
                    size,
                    line: None,
                    ways: None,
                }));
            }
        }
        caches
    }

    /// `cpus` are the parts in their order.
    fn dies(&self, cpus: &[CpuPart]) -> Vec<Die> {
        let die = |(range, &id): (Range<u32>, &u32)| {
            let package = cpus[range.start as usize].package;
            Die { id, package, cpus: self.set(range) }
        };
        match self.dies.len() as u32 {
            0 => Vec::new(),
            total => self.ranges(total).zip(&self.dies).map(die).collect(),
        }
    }
}

fn cache_level(kind: LevelKind) -> u32 {
    match kind {
        LevelKind::Cache { level, .. } => level,
        _ => 0,
    }
}
