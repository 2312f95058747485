//! The memory policy of an instance.

use std::fmt;

use atoll_sys::PolicyMode;
use atoll_topology::NodeSet;

/// A memory policy for a thread and everything it starts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryPolicy {
    /// The kernel's mode.
    #[serde(serialize_with = "as_name")]
    pub mode: PolicyMode,
    /// Its nodes; empty for modes without nodes.
    pub nodes: NodeSet,
    /// Whether automatic NUMA balancing stays on among the nodes.
    pub balancing: bool,
}

/// The name of a mode, as in numactl's long flags.
pub fn mode_name(mode: PolicyMode) -> &'static str {
    match mode {
        PolicyMode::Default => "default",
        PolicyMode::Preferred => "preferred",
        PolicyMode::Bind => "bind",
        PolicyMode::Interleave => "interleave",
        PolicyMode::Local => "local",
        PolicyMode::PreferredMany => "preferred-many",
        PolicyMode::WeightedInterleave => "weighted-interleave",
    }
}

fn as_name<S: serde::Serializer>(mode: &PolicyMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode_name(*mode))
}

impl fmt::Display for MemoryPolicy {
    /// `interleave on nodes 0-3`, `local`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(mode_name(self.mode))?;
        if !self.nodes.is_empty() {
            let plural = if self.nodes.len() == 1 { "" } else { "s" };
            write!(f, " on node{plural} {}", self.nodes)?;
        }
        if self.balancing {
            f.write_str(", balanced among them")?;
        }
        Ok(())
    }
}
