//! What the process may use: `Cpus_allowed_list` and `Mems_allowed_list` in `/proc/self/status`.
//!
//! The first is the affinity mask restricted by the cpuset, like `sched_getaffinity` (plus offline cpus, which
//! discovery drops); the second is the cpuset's nodes with memory, which no other call returns without a policy
//! query.

use atoll_sys::Root;

use super::cpuset;
use super::files::KernelFiles;
use crate::{CpuSet, NodeId, NodeSet};

/// Cpus and nodes a process may use; `None` is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Cpus it may run on; may name cpus that are not online.
    pub cpus: Option<CpuSet>,
    /// Nodes it may allocate from; may leave out nodes that have no memory.
    pub nodes: Option<NodeSet>,
    /// What was wrong with the file, and what is assumed instead.
    pub assumptions: Vec<String>,
}

impl Allowed {
    /// No limits: for a tree that describes a whole machine.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Reads what `/proc/self/status` under `root` allows. A missing line, as on kernels built without cpusets, means
    /// unlimited. If the file is missing, as in a copied tree, the files of the cpuset are read instead.
    #[doc(alias = "sched_getaffinity")]
    pub fn of_process(root: &Root) -> Self {
        const STATUS: &str = "/proc/self/status";
        let files = KernelFiles::new(root);
        let Some(text) = files.text(STATUS) else {
            let (cpus, nodes) = cpuset::read(&files);
            return Self { cpus, nodes, assumptions: files.assumptions() };
        };
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let cpus = value("Cpus_allowed_list:").and_then(|list| files.set_in(STATUS, list));
        let nodes = value("Mems_allowed_list:").and_then(|list| files.set_in(STATUS, list));
        Self { cpus, nodes, assumptions: files.assumptions() }
    }

    /// Whether the node's memory may be used.
    pub(super) fn has_node(&self, node: NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|allowed| allowed.contains(node))
    }
}
