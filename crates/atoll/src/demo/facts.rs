//! Facts that the demo gathers, in the form that `--json` prints.

use atoll_topology::Bytes;
use serde::{Deserialize, Serialize};

use crate::memory::ResidentMemory;

/// All facts.
#[derive(Debug, Serialize)]
pub(super) struct DemoFacts {
    pub(super) settings: DemoSettings,
    /// As `atoll topo --json` prints it.
    pub(super) machine: serde_json::Value,
    pub(super) load: Load,
    pub(super) placement: PlacementFacts,
    pub(super) queries: Vec<QueryFacts>,
    pub(super) plan: PlanFacts,
    pub(super) memory: MemoryFacts,
    /// From the start of the process's work to the end of the last part.
    pub(super) total_seconds: f64,
}

impl DemoFacts {
    /// One document.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// The requested settings.
#[derive(Debug, Serialize)]
pub(super) struct DemoSettings {
    /// Version.
    pub(super) atoll: &'static str,
    pub(super) scale_factor: f64,
    /// Placement strategy of the tables.
    pub(super) placement: String,
    pub(super) strict: bool,
    pub(super) workers: usize,
    pub(super) memory_limit_bytes: Bytes,
}

/// How the tables were loaded: generated on the workers that keep them.
#[derive(Debug, Serialize)]
pub(super) struct Load {
    pub(super) seconds: f64,
    pub(super) rows: u64,
    /// Memory of the tables.
    pub(super) bytes: u64,
    pub(super) tables: Vec<LoadedTable>,
}

#[derive(Debug, Serialize)]
pub(super) struct LoadedTable {
    pub(super) table: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Where tables and threads are, as read back from the kernel.
#[derive(Debug, Default, Serialize)]
pub(super) struct PlacementFacts {
    /// Rows of `atoll.pages`.
    pub(super) pages: Vec<PageRow>,
    /// Rows of `atoll.workers`.
    pub(super) workers: Vec<WorkerRow>,
    /// Pages on the wanted node.
    pub(super) pages_at_home: u64,
    /// Pages on another node.
    pub(super) pages_elsewhere: u64,
    /// Pages without a wanted node.
    pub(super) pages_free: u64,
    /// Pages not written to yet.
    pub(super) pages_untouched: u64,
    /// Placements that failed or could not be verified; empty if there are none.
    pub(super) problems: Vec<String>,
}

/// Pages of a table by node wanted and node found.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PageRow {
    pub(super) table: String,
    /// None if no policy was set.
    pub(super) wanted_node: Option<u32>,
    /// None for pages that were not written to.
    pub(super) found_node: Option<u32>,
    pub(super) pages: u64,
    pub(super) bytes: u64,
    /// Whether the pages were sampled.
    pub(super) sampled: bool,
}

/// A thread of the pools.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct WorkerRow {
    pub(super) worker: u32,
    pub(super) node: u32,
    pub(super) domain: u32,
    pub(super) cpus_wanted: String,
    pub(super) cpus_found: Option<String>,
    pub(super) cpu_seen: Option<u32>,
    pub(super) bound: bool,
    /// In prose.
    pub(super) binding: String,
}

/// A TPC-H query, run once without warm-up, from parsing to the last row.
#[derive(Debug, Serialize)]
pub(super) struct QueryFacts {
    pub(super) number: usize,
    pub(super) milliseconds: f64,
    pub(super) rows: usize,
    pub(super) error: Option<String>,
}

/// A query's plan with its run-time metrics.
#[derive(Debug, Serialize)]
pub(super) struct PlanFacts {
    pub(super) query: usize,
    pub(super) text: String,
    pub(super) error: Option<String>,
}

/// Memory at the end.
#[derive(Debug, Serialize)]
pub(super) struct MemoryFacts {
    /// Of the tables.
    pub(super) tables_bytes: u64,
    /// Of the process; None if procfs is not mounted.
    pub(super) process: Option<ResidentMemory>,
    /// Limit of tables and queries.
    pub(super) limit_bytes: Bytes,
}
