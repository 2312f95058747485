//! The order in which cores are given and released: Dominico 2018, section 3.2.1 and figure 2.
//!
//! | Mode | Gives | Releases |
//! |---|---|---|
//! | [`dense`] | next to those given: the same domain, the same node, the nearest node | the farthest from most of them |
//! | [`sparse`] | on the node, then in the domain, that has fewest of them | from the node that has most |
//! | [`adaptive`] | on the node with most pages accessed, dense there | from the node with fewest |
//!
//! The paper leaves open which core of a node comes first (here the smallest number whose domain has most of the given
//! cores, so that caches are shared), which node comes first if no pages are known (the first of those with most free
//! cores), and hardware threads (a core is given with all of them).

pub mod adaptive;
mod cores;
pub mod dense;
mod pages;
pub mod sparse;

use std::str::FromStr;

use atoll_topology::{CoreId, NodeId};

pub use cores::{CoreIds, CoreTable, ElasticCore};
pub use pages::{AccessEntry, PageQueue};

/// A mode.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Cores close together.
    Dense,
    /// Cores far apart.
    Sparse,
    /// Cores where the pages are.
    #[default]
    Adaptive,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Dense, Self::Sparse, Self::Adaptive];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::Adaptive => "adaptive",
        }
    }
}

/// There is no such mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode '{0}'; expected dense, sparse or adaptive")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == name);
        named.ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// Picks this many of the cores `offered`, or all if there are fewer, in the order of the mode.
pub fn first_cores(
    table: &CoreTable,
    offered: &CoreIds,
    pages: &PageQueue,
    mode: Mode,
    count: usize,
) -> CoreIds {
    let (mut given, mut free) = (CoreIds::new(), offered.clone());
    let saturated = std::collections::BTreeSet::new();
    while given.len() < count {
        let choice = CoreChoice { table, given: &given, free: &free, pages, saturated: &saturated };
        let Some(core) = choice.give(mode) else { break };
        free.remove(&core);
        given.insert(core);
    }
    given
}

/// Input of a choice.
#[derive(Clone, Copy, Debug)]
pub struct CoreChoice<'a> {
    /// All cores.
    pub table: &'a CoreTable,
    /// The target's cores.
    pub given: &'a CoreIds,
    /// The free cores.
    pub free: &'a CoreIds,
    /// Pages accessed by node.
    pub pages: &'a PageQueue,
    /// Nodes on which another core did not pay: they come last.
    pub saturated: &'a std::collections::BTreeSet<NodeId>,
}

impl CoreChoice<'_> {
    /// The core to give next.
    pub fn give(&self, mode: Mode) -> Option<CoreId> {
        match mode {
            Mode::Dense => dense::give(self),
            Mode::Sparse => sparse::give(self),
            Mode::Adaptive => adaptive::give(self),
        }
    }

    /// The core to release next.
    pub fn release(&self, mode: Mode) -> Option<CoreId> {
        match mode {
            Mode::Dense => dense::release(self),
            Mode::Sparse => sparse::release(self),
            Mode::Adaptive => adaptive::release(self),
        }
    }

    /// A core to release and one to give instead, if that brings cores and pages together.
    pub fn exchange(&self, mode: Mode) -> Option<(CoreId, CoreId)> {
        match mode {
            Mode::Adaptive => adaptive::exchange(self),
            Mode::Dense | Mode::Sparse => None,
        }
    }

    /// Free cores of a node, ordered by number.
    fn free_on(&self, node: NodeId) -> impl Iterator<Item = &ElasticCore> {
        self.free.iter().filter_map(|id| self.table.core(*id)).filter(move |core| core.node == node)
    }

    /// The target's cores on a node.
    fn given_on(&self, node: NodeId) -> impl Iterator<Item = &ElasticCore> {
        let given = self.given.iter().filter_map(|id| self.table.core(*id));
        given.filter(move |core| core.node == node)
    }

    /// The free core of a node that shares its last-level cache with most of the given ones.
    fn beside_given(&self, node: NodeId) -> Option<CoreId> {
        let alone = |core: &&ElasticCore| {
            (usize::MAX - self.table.count_in(self.given, core.domain), core.id)
        };
        self.free_on(node).min_by_key(alone).map(|core| core.id)
    }

    /// The given core of a node that shares its last-level cache with fewest of the others.
    fn loneliest(&self, node: NodeId) -> Option<CoreId> {
        let company = |core: &&ElasticCore| {
            (self.table.count_in(self.given, core.domain), usize::MAX - core.id.index())
        };
        self.given_on(node).min_by_key(company).map(|core| core.id)
    }

    /// Nodes with a free core.
    fn nodes_free(&self) -> std::collections::BTreeSet<NodeId> {
        self.free.iter().filter_map(|id| self.table.core(*id)).map(|core| core.node).collect()
    }

    /// Nodes with a core of the target.
    fn nodes_given(&self) -> std::collections::BTreeSet<NodeId> {
        self.given.iter().filter_map(|id| self.table.core(*id)).map(|core| core.node).collect()
    }
}
