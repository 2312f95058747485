//! The report. Matrices are indexed by position in [`Setup::nodes`], row = node of the cpu.

use serde::{Deserialize, Serialize};

use crate::Setup;

/// Version of [`Report`]'s JSON.
pub const REPORT_VERSION: u32 = 1;

/// The counts of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The set-up.
    pub setup: Setup,
    /// The result of the calibration; nothing is counted if it failed.
    pub calibration: CalibrationReport,
    /// The total counts.
    pub total: Traffic,
    /// The same by region, in the order in which the regions were first opened; only regions that
    /// were opened.
    pub regions: Vec<Region>,
    /// The counts over time.
    pub series: RunSeries,
}

/// Whether host addresses of the guest's RAM could be told apart by node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationReport {
    /// Number of pages reported.
    pub witnesses: u64,
    /// Why it failed; `None` if it did not.
    pub failure: Option<String>,
}

/// Counts of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Its number.
    pub number: u8,
    /// How often it went from closed to open.
    pub opened: u64,
    /// Counts while it was the open region.
    pub traffic: Traffic,
    /// The counts over time.
    #[serde(default)]
    pub series: RunSeries,
}

/// A set of counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Instructions of user space, by node of the cpu.
    pub instructions: Vec<u64>,
    /// Loads of user space by (node of the cpu, node of the page).
    pub loads: Vec<Vec<u64>>,
    /// Stores, the same way.
    pub stores: Vec<Vec<u64>>,
    /// Bytes loaded, the same way.
    pub load_bytes: Vec<Vec<u64>>,
    /// Bytes stored, the same way.
    pub store_bytes: Vec<Vec<u64>>,
    /// Lines that missed the last-level cache, by (node of the cpu, node of the page), whether memory
    /// or another cache supplied them.
    pub lines: Vec<Vec<u64>>,
    /// Loads and stores of each cpu, by its number: how many cpus worked side by side.
    #[serde(default)]
    pub cpus: Vec<u64>,
    /// What the caches did, by node of the cpu.
    pub caches: Vec<CacheCounts>,
    /// Bytes through each memory controller, by node.
    pub controllers: Vec<ControllerCounts>,
    /// Bytes over each link, by number.
    pub links: Vec<LinkTraffic>,
    /// Accesses to tagged pages; only tags that were met.
    pub tags: Vec<TagCounts>,
}

/// Counts of one node's cpus.
pub type NodeCounts = Vec<u64>;

/// What the caches of one node's cpus did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Hits in the private caches, by level.
    pub private: LevelCounts,
    /// Hits in the domain's last-level cache by the state in which the line was found.
    pub llc_hits: StateCounts,
    /// Accesses that hit no cache of the domain.
    pub llc_misses: u64,
    /// Stores that found their line in the domain but had to take it from other caches' holders.
    pub upgrades: u64,
    /// Who supplied the lines missed.
    pub sources: SupplierCounts,
    /// Dirty lines written back to memory: evicted, or read by another domain.
    pub writebacks: u64,
    /// Translations missing in the DTLB.
    pub dtlb_misses: u64,
}

/// Hits in the private caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelCounts {
    /// First level.
    pub l1: u64,
    /// Second level.
    pub l2: u64,
}

/// Lines by state of the MESIF protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateCounts {
    /// Written, in no other domain.
    pub modified: u64,
    /// Clean, in no other domain.
    pub exclusive: u64,
    /// Clean, also in other domains.
    pub shared: u64,
    /// Clean, also in other domains; this one forwards it.
    pub forward: u64,
}

/// Lines by who supplied them: by node, of the memory or of the supplying domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SupplierCounts {
    /// From memory of each node.
    pub memory: NodeCounts,
    /// From a clean line in another domain's cache.
    pub clean: NodeCounts,
    /// From a written line in another domain's cache.
    pub dirty: NodeCounts,
}

/// Bytes through a memory controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerCounts {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Bytes of lines over a link; requests and snoops are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkTraffic {
    /// From its smaller node to its larger one.
    pub forward: u64,
    /// The other way.
    pub backward: u64,
}

/// Accesses to pages of a tag, by (node of the cpu, node of the page).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TagCounts {
    /// The tag.
    pub tag: u8,
    /// Pages that have it at the end, by node.
    pub pages: Vec<u64>,
    /// Loads and stores.
    pub accesses: Vec<Vec<u64>>,
    /// Lines that missed the last-level cache.
    pub lines: Vec<Vec<u64>>,
}

/// Counts over the run. The emulator has no clock worth reading: its axis is counted accesses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSeries {
    /// Accesses in each slice but the last, give or take a few hundred for each cpu.
    /// Doubles when slices get too many.
    pub accesses_per_slice: u64,
    /// The slices.
    pub slices: Vec<RunSlice>,
}

/// A slice of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSlice {
    /// Region open at its end, if any.
    pub region: Option<u8>,
    /// Accesses in it.
    pub accesses: u64,
    /// Hits in last-level caches, by node of the cpu.
    pub llc_hits: NodeCounts,
    /// Misses of last-level caches, by node of the cpu.
    pub llc_misses: NodeCounts,
    /// Bytes through each controller, read and written.
    pub controllers: NodeCounts,
    /// Bytes over each link, both directions.
    pub links: Vec<u64>,
}
