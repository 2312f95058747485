//! What is known: one [`Fact`] is one figure about one [`Subject`], with where it comes from and when.

use std::fmt;
use std::time::SystemTime;

use crate::{CpuId, DomainId, LinkId, NodeId, PackageId, Source};

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The machine as a whole.
    Machine,
    /// A package.
    Package(PackageId),
    /// A node.
    Node(NodeId),
    /// A domain.
    Domain(DomainId),
    /// An interconnect link, one direction of it.
    Link(LinkId),
    /// Accesses by cpus of one node to memory of another, or of the same.
    Path {
        /// The node of the cpus.
        from: NodeId,
        /// The home of the memory.
        to: NodeId,
    },
    /// A cache line handed from one cpu to another.
    CpuPair {
        /// The cpu that had the line.
        from: CpuId,
        /// The cpu that gets it.
        to: CpuId,
    },
}

/// What is known of a subject. The unit belongs to the quantity: see [`Quantity::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Time of one dependent random read from memory on an idle path, ns; of a link, what one
    /// crossing adds.
    Latency,
    /// The same while the path carries [`Conditions::load`], ns.
    LoadedLatency,
    /// Bytes read a second, GB/s.
    ReadBandwidth,
    /// Bytes written a second, GB/s.
    WriteBandwidth,
    /// Bytes copied a second, GB/s; each counts once although it is read and written.
    CopyBandwidth,
    /// Bytes read a second while other nodes load the same links, GB/s.
    CrossTrafficBandwidth,
    /// Fewest threads that reach 95 % of the path's largest read bandwidth.
    SaturationThreads,
    /// Time for a cache line to go from one cpu to another, ns one way.
    CoreToCore,
    /// Relative distance (SLIT); 10 is local.
    Distance,
    /// Memory in all, bytes.
    Memory,
    /// Memory free, bytes.
    MemoryFree,
    /// Size of the last-level cache, bytes.
    Cache,
    /// Clock frequency, GHz.
    Frequency,
    /// Tuned: rows that a primitive works on at a time.
    BlockRows,
    /// Tuned: most partitions of one pass of radix partitioning, as a power of two.
    FanOutBits,
    /// Tuned: rows that a partition's write-combining buffer holds.
    BufferRows,
    /// Tuned: rows ahead of a probe that are prefetched.
    PrefetchRows,
    /// Tuned: largest table that a worker keeps near it, bytes.
    TableBytes,
}

/// Under which conditions a figure holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Conditions {
    /// Threads that make the accesses, where that matters.
    pub threads: Option<u32>,
    /// Bandwidth that other threads draw from the same path meanwhile, GB/s.
    pub load: Option<f64>,
}

/// How far repetitions differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Number of repetitions.
    pub runs: u32,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is about.
    pub subject: Subject,
    /// What it tells of it.
    pub quantity: Quantity,
    /// When it holds.
    pub conditions: Conditions,
    /// The figure, in [`Quantity::unit`]; the median where there are repetitions. Finite.
    pub value: f64,
    /// How far repetitions differ, where there are some.
    pub spread: Option<Spread>,
    /// How far it can be trusted.
    pub source: Source,
    /// The file, program or paper (with its section) that says so.
    pub origin: String,
    /// When it was measured or read; none for what is declared.
    pub at: Option<SystemTime>,
}

impl Quantity {
    /// Every quantity, in the order in which they are listed.
    pub const ALL: [Self; 18] = [
        Self::Latency,
        Self::LoadedLatency,
        Self::ReadBandwidth,
        Self::WriteBandwidth,
        Self::CopyBandwidth,
        Self::CrossTrafficBandwidth,
        Self::SaturationThreads,
        Self::CoreToCore,
        Self::Distance,
        Self::Memory,
        Self::MemoryFree,
        Self::Cache,
        Self::Frequency,
        Self::BlockRows,
        Self::FanOutBits,
        Self::BufferRows,
        Self::PrefetchRows,
        Self::TableBytes,
    ];

    /// Its name in files, JSON and SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::LoadedLatency => "loaded_latency",
            Self::ReadBandwidth => "read_bandwidth",
            Self::WriteBandwidth => "write_bandwidth",
            Self::CopyBandwidth => "copy_bandwidth",
            Self::CrossTrafficBandwidth => "cross_traffic_bandwidth",
            Self::SaturationThreads => "saturation_threads",
            Self::CoreToCore => "core_to_core",
            Self::Distance => "distance",
            Self::Memory => "memory",
            Self::MemoryFree => "memory_free",
            Self::Cache => "cache",
            Self::Frequency => "frequency",
            Self::BlockRows => "block_rows",
            Self::FanOutBits => "fan_out_bits",
            Self::BufferRows => "buffer_rows",
            Self::PrefetchRows => "prefetch_rows",
            Self::TableBytes => "table_bytes",
        }
    }

    /// The quantity of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Latency | Self::LoadedLatency | Self::CoreToCore => "ns",
            Self::ReadBandwidth
            | Self::WriteBandwidth
            | Self::CopyBandwidth
            | Self::CrossTrafficBandwidth => "GB/s",
            Self::SaturationThreads => "threads",
            Self::Distance => "relative",
            Self::Memory | Self::MemoryFree | Self::Cache | Self::TableBytes => "bytes",
            Self::Frequency => "GHz",
            Self::BlockRows | Self::BufferRows | Self::PrefetchRows => "rows",
            Self::FanOutBits => "bits",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Subject {
    /// The subject that displays as this text.
    pub fn named(text: &str) -> Option<Self> {
        if text == "machine" {
            return Some(Subject::Machine);
        }
        let (kind, ids) = text.split_once(' ')?;
        let id = || ids.parse::<u32>().ok();
        let pair = || {
            let (from, to) = ids.split_once('-')?;
            Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?))
        };
        Some(match kind {
            "package" => Subject::Package(PackageId(id()?)),
            "node" => Subject::Node(NodeId(id()?)),
            "domain" => Subject::Domain(DomainId(id()?)),
            "link" => Subject::Link(LinkId(id()?)),
            "path" => {
                pair().map(|(from, to)| Subject::Path { from: NodeId(from), to: NodeId(to) })?
            }
            "cpus" => {
                pair().map(|(from, to)| Subject::CpuPair { from: CpuId(from), to: CpuId(to) })?
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Subject {
    /// `machine`, `node 0`, `path 0-1`, `link 3`, `cpus 0-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => write!(f, "machine"),
            Self::Package(id) => write!(f, "package {id}"),
            Self::Node(id) => write!(f, "node {id}"),
            Self::Domain(id) => write!(f, "domain {id}"),
            Self::Link(id) => write!(f, "link {id}"),
            Self::Path { from, to } => write!(f, "path {from}-{to}"),
            Self::CpuPair { from, to } => write!(f, "cpus {from}-{to}"),
        }
    }
}

impl Fact {
    /// The ends of the path that it is about; none where it is about something else.
    pub fn path(&self) -> Option<(NodeId, NodeId)> {
        match self.subject {
            Subject::Path { from, to } => Some((from, to)),
            _ => None,
        }
    }

    /// A fact without conditions, spread or time.
    pub fn new(
        subject: Subject,
        quantity: Quantity,
        value: f64,
        source: Source,
        origin: impl Into<String>,
    ) -> Self {
        let conditions = Conditions::default();
        let origin = origin.into();
        Self { subject, quantity, conditions, value, spread: None, source, origin, at: None }
    }
}
