//! A launch request, in terms of the command line.

use std::fmt;
use std::str::FromStr;

use atoll_placement::Strategy;
use atoll_sys::PolicyMode;
use atoll_topology::SetSpec;

/// Maximum number of instances of a launch: each has a process, a thread and up to two pipes.
pub const INSTANCES_MAX: u32 = 1024;

/// A requested placement. Everything that is `None` is left unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Which instances to start; `None` for the program alone.
    pub instances: Option<Instances>,
    /// Where threads and memory go. Instances without a strategy are [`Strategy::Aligned`].
    pub strategy: Option<Strategy>,
    /// Nodes whose cpus are used (`-N`); under a strategy and for instances, the nodes to choose from.
    pub cpu_nodes: Option<SetSpec>,
    /// Cpus to use, out of those selected otherwise (`-C`).
    pub cpus: Option<SetSpec>,
    /// The memory policy, instead of the strategy's.
    pub memory: Option<MemoryFlag>,
    /// Automatic NUMA balancing among the nodes of [`PolicyMode::Bind`] (`-b`).
    pub balancing: bool,
}

/// A requested memory policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFlag {
    /// The kernel's mode.
    pub mode: PolicyMode,
    /// Its nodes; `None` for modes without nodes.
    pub nodes: Option<SetSpec>,
}

/// Which instances to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// This many, assigned in turn to the nodes with cpus.
    Count(u32),
    /// One for each node with cpus (Kiefer 2013, section 4).
    Nodes,
    /// One for each domain.
    Domains,
}

/// The text is not a valid set of instances.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid number of instances '{text:.40}'; expected 1 to {INSTANCES_MAX}, nodes or \
         domains"
)]
pub struct InstancesError {
    /// The text as given.
    pub text: String,
}

impl FromStr for Instances {
    type Err = InstancesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "nodes" => Ok(Self::Nodes),
            "domains" => Ok(Self::Domains),
            _ => match text.parse() {
                Ok(count @ 1..=INSTANCES_MAX) => Ok(Self::Count(count)),
                _ => Err(InstancesError { text: text.to_owned() }),
            },
        }
    }
}

impl fmt::Display for Instances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Nodes => f.write_str("nodes"),
            Self::Domains => f.write_str("domains"),
        }
    }
}
