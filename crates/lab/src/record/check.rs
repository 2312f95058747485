//! Whether a record that was read is whole: views index by node and link without asking again.

use atoll_model::Estimate;
use atoll_simulation::{Report, RunSlice, TagCounts, Traffic};

use super::RunRecord;

/// Sizes that all lists of a report have.
#[derive(Clone, Copy)]
struct ListSizes {
    nodes: usize,
    links: usize,
    cpus: usize,
}

impl RunRecord {
    /// The fault in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let setup = &self.report.setup;
        setup.check().map_err(|error| format!("its set-up is wrong: {}", error.0))?;
        let sizes =
            ListSizes { nodes: setup.nodes.len(), links: setup.links, cpus: setup.cpus.len() };
        let known = self.known().map_err(|error| error.to_string())?;
        let nodes = known.machine.nodes.iter().map(|node| node.id);
        let alike = nodes.eq(setup.nodes.iter().map(|node| node.id));
        require(alike, "its machine has other nodes than its set-up")?;
        same("links of its machine", known.machine.links.len(), sizes.links)?;
        report(&self.report, sizes)?;
        let regions = self.regions.iter().map(|region| &region.estimate);
        std::iter::once(&self.estimate).chain(regions).try_for_each(|it| estimate(it, sizes))?;
        let numbers = self.regions.iter().map(|region| region.number);
        let alike = numbers.eq(self.report.regions.iter().map(|region| region.number));
        require(alike, "its estimate has other regions than were counted")
    }
}

fn estimate(estimate: &Estimate, sizes: ListSizes) -> Result<(), String> {
    same("nodes of an estimate", estimate.nodes.len(), sizes.nodes)?;
    same("controllers of an estimate", estimate.controllers.len(), sizes.nodes)?;
    same("directions of an estimate", estimate.links.len(), 2 * sizes.links)
}

fn report(report: &Report, sizes: ListSizes) -> Result<(), String> {
    let regions = report.regions.iter().map(|region| &region.traffic);
    std::iter::once(&report.total).chain(regions).try_for_each(|it| traffic(it, sizes))?;
    let series = report.regions.iter().map(|region| &region.series);
    let slices = std::iter::once(&report.series).chain(series).flat_map(|series| &series.slices);
    slices.into_iter().try_for_each(|it| slice(it, sizes))
}

fn traffic(traffic: &Traffic, sizes: ListSizes) -> Result<(), String> {
    same("instructions", traffic.instructions.len(), sizes.nodes)?;
    for (name, rows) in [
        ("loads", &traffic.loads),
        ("stores", &traffic.stores),
        ("load_bytes", &traffic.load_bytes),
        ("store_bytes", &traffic.store_bytes),
        ("lines", &traffic.lines),
    ] {
        matrix(name, rows, sizes)?;
    }
    same("caches", traffic.caches.len(), sizes.nodes)?;
    for caches in &traffic.caches {
        let sources = &caches.sources;
        same("sources.memory", sources.memory.len(), sizes.nodes)?;
        same("sources.clean", sources.clean.len(), sizes.nodes)?;
        same("sources.dirty", sources.dirty.len(), sizes.nodes)?;
    }
    same("controllers", traffic.controllers.len(), sizes.nodes)?;
    same("links", traffic.links.len(), sizes.links)?;
    if !traffic.cpus.is_empty() {
        same("cpus", traffic.cpus.len(), sizes.cpus)?;
    }
    traffic.tags.iter().try_for_each(|it| tag(it, sizes))
}

fn tag(tag: &TagCounts, sizes: ListSizes) -> Result<(), String> {
    same("pages of a tag", tag.pages.len(), sizes.nodes)?;
    matrix("accesses of a tag", &tag.accesses, sizes)?;
    matrix("lines of a tag", &tag.lines, sizes)
}

fn slice(slice: &RunSlice, sizes: ListSizes) -> Result<(), String> {
    same("llc_hits of a slice", slice.llc_hits.len(), sizes.nodes)?;
    same("llc_misses of a slice", slice.llc_misses.len(), sizes.nodes)?;
    same("controllers of a slice", slice.controllers.len(), sizes.nodes)?;
    same("links of a slice", slice.links.len(), sizes.links)
}

fn matrix(name: &str, rows: &[Vec<u64>], sizes: ListSizes) -> Result<(), String> {
    same(name, rows.len(), sizes.nodes)?;
    rows.iter().try_for_each(|row| same(name, row.len(), sizes.nodes))
}

fn same(name: &str, found: usize, expected: usize) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{name} has {found} entries where its set-up has {expected}")),
    }
}

fn require(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
