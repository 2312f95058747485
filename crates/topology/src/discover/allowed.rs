//! What the process is allowed: `Cpus_allowed_list` and `Mems_allowed_list` in `/proc/self/status`.
//!
//! The first is the affinity mask as cut by the cpuset, so it says what `sched_getaffinity` says
//! (and cpus that are offline, which discovery drops); the second is the cpuset's share of the nodes
//! that have memory, which no other call tells without asking for a policy.

use atoll_sys::Root;

use super::read;
use crate::discover::DiscoverError;
use crate::{CpuSet, NodeId, NodeSet};

/// Cpus and nodes a process may use; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Cpus it may run on; may name cpus that are not online.
    pub cpus: Option<CpuSet>,
    /// Nodes it may allocate from; may leave out nodes that have no memory.
    pub nodes: Option<NodeSet>,
}

impl Allowed {
    /// No bounds: for a tree that describes a machine as a whole.
    pub fn everything() -> Self {
        Self::default()
    }

    /// What `/proc/self/status` under `root` grants. A line that is not there, as on kernels built
    /// without cpusets, is unlimited.
    #[doc(alias = "sched_getaffinity")]
    pub fn of_process(root: &Root) -> Result<Self, DiscoverError> {
        const STATUS: &str = "/proc/self/status";
        let text = root.read_text(STATUS)?;
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let cpus = value("Cpus_allowed_list:").map(|list| read::set_in(root, STATUS, list));
        let nodes = value("Mems_allowed_list:").map(|list| read::set_in(root, STATUS, list));
        Ok(Self { cpus: cpus.transpose()?, nodes: nodes.transpose()? })
    }

    /// Those of the cpus that may be used.
    pub(super) fn cpus_in(&self, cpus: &CpuSet) -> CpuSet {
        self.cpus.as_ref().map_or_else(|| cpus.clone(), |allowed| allowed.intersection(cpus))
    }

    /// Whether the node's memory may be used.
    pub(super) fn has_node(&self, node: NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|allowed| allowed.contains(node))
    }

    /// The cpus for a message.
    pub(super) fn cpus_text(&self) -> String {
        match &self.cpus {
            None => "all".to_owned(),
            Some(cpus) if cpus.is_empty() => "none".to_owned(),
            Some(cpus) => cpus.to_string(),
        }
    }
}
