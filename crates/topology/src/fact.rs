//! Facts: a [`Fact`] is one figure about one [`Subject`], with its source, origin and time.

use std::fmt;
use std::time::SystemTime;

use crate::{CpuId, DomainId, LinkId, NodeId, PackageId, Source};

/// The subject of a fact.
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
    /// A cache line transferred from one cpu to another.
    CpuPair {
        /// The cpu that had the line.
        from: CpuId,
        /// The cpu that gets it.
        to: CpuId,
    },
}

/// The quantity of a fact, which determines its unit: see [`Quantity::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Time of one dependent random read from memory on an idle path, ns; of a link, the time that one hop adds.
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
    /// Total memory, bytes.
    Memory,
    /// Memory free, bytes.
    MemoryFree,
    /// Size of the last-level cache, bytes.
    Cache,
    /// Clock frequency, GHz.
    Frequency,
    /// Tuned: rows that a primitive processes at a time.
    BlockRows,
    /// Tuned: maximum number of partitions per pass of radix partitioning, log2.
    FanOutBits,
    /// Tuned: rows in a partition's write-combining buffer.
    BufferRows,
    /// Tuned: rows ahead of a probe that are prefetched.
    PrefetchRows,
    /// Tuned: largest table that a worker keeps nearby, bytes.
    TableBytes,
}

/// The conditions of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Conditions {
    /// Threads that make the accesses, if relevant.
    pub threads: Option<u32>,
    /// Bandwidth that other threads use on the same path at the same time, GB/s.
    pub load: Option<f64>,
}

/// The spread of repetitions.
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
    /// Its subject.
    pub subject: Subject,
    /// Its quantity.
    pub quantity: Quantity,
    /// Its conditions.
    pub conditions: Conditions,
    /// The figure, in [`Quantity::unit`]; the median of repetitions. Finite.
    pub value: f64,
    /// The spread of repetitions, if any.
    pub spread: Option<Spread>,
    /// Its source.
    pub source: Source,
    /// The file, program or paper (with section) that states it.
    pub origin: String,
    /// When it was measured or read; None for declared facts.
    pub at: Option<SystemTime>,
}

impl Quantity {
    /// Every quantity, in display order.
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

    /// Finds a quantity by name.
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
    /// Parses a subject from its display form.
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
    /// The ends of a path. Returns None for other subjects.
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
