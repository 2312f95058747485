//! The parts of a topology file.

use super::scan::XmlPosition;
use atoll_topology::CacheKind;

/// The type of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Machine,
    Package,
    Die,
    Node,
    /// A cache in front of the memory of the node inside it.
    MemoryCache,
    Cache {
        level: u32,
        kind: CacheKind,
    },
    Core,
    Pu,
    /// Groups and devices: only part of the tree.
    Other,
}

/// An `<object>`.
#[derive(Debug)]
pub(super) struct XmlObject<'a> {
    pub(super) kind: ObjectKind,
    /// Index of the parent object.
    pub(super) parent: Option<usize>,
    pub(super) os_index: Option<u32>,
    pub(super) gp_index: Option<u64>,
    /// The mask as written.
    pub(super) cpuset: Option<String>,
    pub(super) nodeset: Option<String>,
    /// Includes nodes that are not allowed.
    pub(super) complete_nodeset: Option<String>,
    /// Level of a cache in front of memory.
    pub(super) depth: u32,
    pub(super) cache_size: u64,
    pub(super) cache_line: u64,
    pub(super) cache_ways: i64,
    pub(super) memory: u64,
    /// `<page_type>`: size and count.
    pub(super) pages: Vec<(u64, u64)>,
    pub(super) infos: Vec<XmlInfo<'a>>,
    /// Whether an info marks it as a domain.
    pub(super) is_domain: bool,
    pub(super) place: XmlPosition<'a>,
}

/// An `<info>`.
#[derive(Debug)]
pub(super) struct XmlInfo<'a> {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: XmlPosition<'a>,
}

/// A `<distances2>` between objects of one type.
#[derive(Debug)]
pub(super) struct Distances<'a> {
    pub(super) name: Option<String>,
    /// Type of the objects.
    pub(super) of: String,
    /// hwloc's `hwloc_distances_kind_e`.
    pub(super) kind: u64,
    /// Whether objects are named by their `gp_index`.
    pub(super) by_gp_index: bool,
    pub(super) count: usize,
    pub(super) indexes: String,
    pub(super) values: String,
    pub(super) place: XmlPosition<'a>,
}

/// A `<memattr_value>`.
#[derive(Debug)]
pub(super) struct AttributeValue<'a> {
    /// Index of the `<memattr>` in [`ATTRIBUTES`](super::facts::ATTRIBUTES).
    pub(super) attribute: usize,
    /// `gp_index` of a NUMANode.
    pub(super) target: Option<u64>,
    pub(super) value: u64,
    /// The mask as written.
    pub(super) initiator_cpuset: Option<String>,
    pub(super) initiator_gp_index: Option<u64>,
    pub(super) place: XmlPosition<'a>,
}

/// A `<cpukind>`.
#[derive(Debug)]
pub(super) struct XmlCpuKind<'a> {
    /// The mask as written.
    pub(super) cpuset: String,
    pub(super) infos: Vec<XmlInfo<'a>>,
    pub(super) place: XmlPosition<'a>,
}
