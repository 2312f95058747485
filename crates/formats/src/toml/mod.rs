//! Machines as TOML: short enough to be written by hand for a machine from a paper, and exact enough for everything
//! that discovery and measurement find.
//!
//! Nodes are given either by counts (`domains = 2, cores = 4, threads = 2`), which numbers the cpus, or by the cpus of
//! each core of each domain. The source and origin of a figure come from the figure itself, its section, or the file,
//! in this order; the default source is assumed. `machines/README.md` shows the format by example. These are all keys:
//!
//! | Where | Keys |
//! |---|---|
//! | top | `name`, `description` (prose, not kept), `source`, `origin`, `numbering` (`core-by-core` or `threads-last`), `assumptions` (texts) |
//! | `[sources]` | `structure`, `memory`, `memory_free`, `caches`, `links`, `distances`, `pages`: a source, or `{ source, origin }`; an origin makes facts of memory, last-level caches and distances |
//! | `[pages]` | `size`; `huge`, a size or `"none"` |
//! | `[hidden]`, `[limits]` | `cpus`, `nodes`; `memory = { bytes, file }`, `cpu_time = { cpus, file }` |
//! | `[[package]]` | `id` (a number or a set), `model`, `cpus`, `frequency` |
//! | `[[node]]` | `id` (a number or a set), `package`, `memory`, `memory_free`, `near` (of memory only: the nearest cpus), `huge_pages = [{ size, total, free }]`, `side_caches = [{ level, size, line }]`; `domains`, `cores`, `threads`, or `domain = [{ level, cache, cores = ["0-1", …] }]` |
//! | `[[die]]`, `[[cpu_kind]]` | `id`, `package`, `cpus`; `name`, `cpus` |
//! | `[[cache]]` | `level`, `kind`, `size`, `line`, `ways`; `per` (`cpu`, `core`, `domain`, `node`, `package`) with `nodes`, or `cpus = ["0-3", …]` |
//! | `[[link]]` | `nodes` (a pair or several), `kind`, figures by the names of quantities |
//! | `[distances]` | `matrix` |
//! | `[latency]`, `[read_bandwidth]`, … | figures of that quantity |
//! | `[[fact]]` | figures of its `quantity` |
//!
//! Figures are `value` with `subject` (one or several), `values = [{ subject, value, min, max, runs
//! }]`, or a `matrix` over nodes (over cpus for `core_to_core`) with `"-"` for unknown figures;
//! in addition `unit`, `source`, `origin`, `at`, `threads`, `load`.

mod beside;
mod caches;
mod cpus;
mod details;
mod figures;
mod links;
mod node_entry;
pub mod reader;
mod structure;
mod values;
mod write;
mod write_facts;

use crate::FormatError;
use atoll_topology::{Knowledge, Source};
use reader::{TomlTable, read_document};

pub use write::write;

const TOP: [&str; 23] = [
    "name",
    "description",
    "source",
    "origin",
    "numbering",
    "sources",
    "pages",
    "hidden",
    "limits",
    "assumptions",
    "package",
    "die",
    "cpu_kind",
    "node",
    "cache",
    "link",
    "distances",
    "fact",
    "latency",
    "loaded_latency",
    "read_bandwidth",
    "write_bandwidth",
    "copy_bandwidth",
];
/// Quantities with their own section, besides `[[fact]]`.
const SECTIONS_MORE: [&str; 3] = ["cross_traffic_bandwidth", "saturation_threads", "core_to_core"];

/// Parses a machine and its facts. `file` is the name in errors, and the origin of figures that do not name one.
pub fn parse(text: &str, file: &str) -> Result<Knowledge, FormatError> {
    read_document(text, file, |top| {
        let known: Vec<&str> = TOP.into_iter().chain(SECTIONS_MORE).collect();
        top.keys(&known)?;
        let defaults = Defaults::read(&top)?;
        let (machine, origins) = structure::machine(&top, &defaults)?;
        let facts = figures::facts(&top, &defaults, &machine, &origins)?;
        Ok(Knowledge { machine, facts })
    })
}

/// The description in a machine file, prose that a [`Knowledge`] does not keep. Returns None if there is none.
pub fn description(text: &str, file: &str) -> Result<Option<String>, FormatError> {
    read_document(text, file, |top| prose(&top).map(|prose| prose.map(str::to_owned)))
}

fn prose<'a>(top: &TomlTable<'a>) -> Result<Option<&'a str>, FormatError> {
    top.get("description").map(|item| item.prose()).transpose()
}

/// Default source and origin.
#[derive(Clone, Copy)]
struct Defaults<'a> {
    source: Source,
    origin: &'a str,
}

impl<'a> Defaults<'a> {
    fn read(top: &TomlTable<'a>) -> Result<Self, FormatError> {
        prose(top)?;
        Self { source: Source::Assumed, origin: top.document.file }.within(top)
    }

    /// The defaults inside a table, which may override them.
    fn within(self, table: &TomlTable<'a>) -> Result<Self, FormatError> {
        Ok(Self {
            source: table.get("source").map_or(Ok(self.source), |item| item.source())?,
            origin: table.get("origin").map_or(Ok(self.origin), |item| item.text())?,
        })
    }
}
