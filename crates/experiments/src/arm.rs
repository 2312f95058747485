//! One run of the benchmark: groups of threads, each with an array that they share.

use std::fmt;

use atoll_topology::{Bytes, CpuId, NodeId};
use serde::{Deserialize, Serialize};

/// The access of the threads to random entries of their array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Load a byte, or with [`Kind::Dependent`] the word that holds the next line.
    Read,
    /// Store a byte.
    Write,
}

impl Operation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether an access waits for the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The next place is computed: a processor has many accesses under way (the paper's benchmark).
    #[default]
    Independent,
    /// The next place is read from the array: one access at a time.
    Dependent,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Dependent => "dependent",
        }
    }
}

/// Where an array lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// On one node.
    On(NodeId),
    /// Page by page over these nodes.
    Over(Vec<NodeId>),
    /// The same in proportion to the kernel's weights.
    Weighted(Vec<NodeId>),
    /// Where the group's first thread touches it, under the policy that the process inherited.
    Inherited,
    /// Where the group's first thread touches it, regardless of the inherited policy.
    Local,
}

/// The cpus a thread visits, in order; after the last comes the first. It starts on the first and
/// goes on to the next with every migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuRoute(pub Vec<CpuId>);

impl CpuRoute {
    /// The cpu after this many migrations; None for a route without cpus.
    pub fn at(&self, migrations: u64) -> Option<CpuId> {
        let len = u64::try_from(self.0.len()).ok().filter(|len| *len > 0)?;
        self.0.get((migrations % len) as usize).copied()
    }
}

/// Threads that share an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Where the array lies.
    pub home: Home,
    /// A way for each thread.
    pub threads: Vec<CpuRoute>,
}

/// One run of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Number of Kiefer's experiment; 0 for any other.
    pub experiment: u8,
    /// The work, the same for arms to be compared: `4 threads read 16 MiB`.
    pub name: String,
    /// What distinguishes this arm from those it is compared with: `local`, `100 migrations`.
    pub setting: String,
    /// Reads or writes.
    pub operation: Operation,
    /// Whether accesses wait for each other.
    pub kind: Kind,
    /// Size of each array in the paper, or as asked for.
    pub size: Bytes,
    /// Size of each array as run: `size` divided by the scale.
    pub size_run: Bytes,
    /// The groups.
    pub groups: Vec<Group>,
    /// Times that each thread moves on during the run, equally spaced in its accesses.
    pub migrations: u32,
    /// Whether each group is its own process.
    pub processes: bool,
    /// Whether threads share a last-level cache: only they have to take turns in an emulator.
    pub shares_cache: bool,
    /// Number of the region that is open while it runs; None for the 65th arm and later ones.
    pub region: Option<u8>,
}

impl Arm {
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.groups.iter().map(|group| group.threads.len()).sum()
    }

    /// Name and setting.
    pub fn title(&self) -> String {
        format!("{}, {}", self.name, self.setting)
    }
}
