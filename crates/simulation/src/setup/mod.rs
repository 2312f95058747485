//! The input of a simulation. The lab writes it as JSON for the plugin.

mod check;

use std::path::PathBuf;

use atoll_topology::{Bytes, CoreId, DomainId, LinkId, NodeId};
use serde::{Deserialize, Serialize};

/// Version of [`Setup`]'s JSON: a plugin and a lab that differ refuse each other.
pub const SETUP_VERSION: u32 = 1;

/// Bytes of a page, and of a line of the page tables.
pub(crate) const PAGE: u64 = 4096;

/// Tags of a set of the last-level cache at most: two bits of a word are for the state, and one value for no line.
pub(crate) const SET_TAGS: u64 = (1 << 30) - 1;

/// Which accesses count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counting {
    /// All of user space, from the end of the calibration on.
    User,
    /// Those made in user space while a region is open.
    Region,
    /// The same, and nothing else reaches the simulation: outside of regions the guest runs at nearly full speed, and
    /// the caches keep what the region before left there.
    Within,
}

/// Description of the simulated machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// [`SETUP_VERSION`].
    pub version: u32,
    /// Which accesses count.
    pub counting: Counting,
    /// Place of each cpu; the index is the vCPU's number.
    pub cpus: Vec<CpuSeat>,
    /// Nodes in the order of their ids; every matrix of the report has this order.
    pub nodes: Vec<NodeMemory>,
    /// Bytes of a cache line, a power of two. One size for all levels.
    pub line: u64,
    /// First-level data cache of each core.
    pub l1: CacheShape,
    /// Second-level cache of each core, where it has one of its own.
    pub l2: Option<CacheShape>,
    /// Last-level cache of each domain; the index is the domain's number.
    pub llc: Vec<CacheShape>,
    /// Data translation buffer of each core, both levels as one.
    pub dtlb: TlbShape,
    /// Number of links; they are numbered densely.
    pub links: usize,
    /// Way from node i to node j as positions in `nodes`, `routes[i][j]`; empty from a node to itself
    /// and where no links are known.
    pub routes: Vec<Vec<Vec<Crossing>>>,
    /// Guest-physical address at which RAM stops below 4 GiB; the rest goes on at 4 GiB.
    pub low_memory: Bytes,
    /// Where to write the report.
    pub report: PathBuf,
}

/// Place of a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSeat {
    /// Node, as its position in [`Setup::nodes`].
    pub node: usize,
    /// Domain.
    pub domain: DomainId,
    /// Core; cpus of one core share the private caches.
    pub core: CoreId,
}

/// A node and its memory, one piece of the guest's RAM; pieces follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMemory {
    /// The kernel's number.
    pub id: NodeId,
    /// Size, a multiple of the page; zero for a node of cpus only.
    pub memory: Bytes,
}

/// Size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheShape {
    /// Number of sets, at least 1; any number, not only powers of two.
    pub sets: u32,
    /// Lines in each set, at least 1.
    pub ways: u32,
}

/// Size of a translation buffer for pages of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbShape {
    /// Number of sets, at least 1.
    pub sets: u32,
    /// Entries in each set, at least 1.
    pub ways: u32,
}

/// A link crossed in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossing {
    /// The link.
    pub link: LinkId,
    /// Whether from its smaller node to its larger one.
    pub forward: bool,
}

/// Why a simulation cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write the set-up with the `atoll` that belongs to the plugin")]
pub struct SetupError(pub String);
