//! The sections around the tree: totals, distances, hidden parts, limits. A section without content is empty.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::matrix::matrix;
use super::words::{count, joined, list, source};
use atoll_topology::{Bytes, Die, Machine, Source};

/// Above this number of nodes, the distances are counted instead of printed.
const MATRIX_NODES_MAX: usize = 32;

/// Above this number, the dies of a package are counted instead of listed.
const DIES_LISTED_MAX: usize = 16;

/// Above this number of kinds, last-level caches are only shown in the tree.
const CACHE_KINDS_MAX: usize = 3;

/// Name, counts, memory, caches and pages.
pub(super) fn totals(machine: &Machine) -> String {
    let counts = [
        count(machine.packages.len(), "package"),
        count(machine.nodes.len(), "node"),
        count(machine.domains.len(), "domain"),
        count(machine.cores.len(), "core"),
        count(machine.cpus.len(), "cpu"),
    ];
    let mut text = format!("Machine {} {}\n", machine.name, source(machine.source));
    let _ = writeln!(text, "  {}", joined(counts, ", "));
    let memory = memory(machine, machine.memory(), machine.memory_free());
    let _ = writeln!(text, "  memory {}: {memory}", source(machine.memory_source));
    let _ = writeln!(text, "  caches {}: {}", source(machine.caches_source), caches(machine));
    let _ = writeln!(text, "  pages {}: {}", source(machine.pages_source), pages(machine));
    text
}

/// `32.0 GiB, 1.5 GiB free`; only the former if free memory is unknown.
pub(super) fn memory(machine: &Machine, all: Bytes, free: Bytes) -> String {
    match machine.memory_free_source {
        Source::Assumed => all.to_string(),
        _ => format!("{all}, {free} free"),
    }
}

/// Kinds of cpus, if there are several.
pub(super) fn cpu_kinds(machine: &Machine) -> String {
    let kinds = machine.cpu_kinds.iter();
    let text =
        kinds.map(|kind| format!("  {}: {}\n", kind.name, list("cpu", &kind.cpus))).collect();
    headed(&format!("Kinds of cpus {}", source(machine.source)), text)
}

/// Dies of packages that have several.
pub(super) fn dies(machine: &Machine) -> String {
    let of_package = |dies: &[Die]| match dies.len() {
        ..=DIES_LISTED_MAX => dies.iter().map(die).collect(),
        dies_count => format!("  package {}: {}\n", dies[0].package, count(dies_count, "die")),
    };
    let packages = machine.dies.chunk_by(|a, b| a.package == b.package);
    headed(&format!("Dies {}", source(machine.source)), packages.map(of_package).collect())
}

fn die(die: &Die) -> String {
    format!("  package {}, die {}: {}\n", die.package, die.id, list("cpu", &die.cpus))
}

/// What was assumed because it was missing or wrong in the machine's files.
pub(super) fn assumptions(machine: &Machine) -> String {
    let lines = machine.assumptions.iter().map(|line| format!("  {line}\n"));
    headed("Assumed, because the kernel's files do not say", lines.collect())
}

fn caches(machine: &Machine) -> String {
    let mut counts: BTreeMap<(Option<u32>, Option<Bytes>), usize> = BTreeMap::new();
    for domain in &machine.domains {
        *counts.entry((domain.cache_level, domain.cache)).or_default() += 1;
    }
    if counts.keys().all(|(level, _)| level.is_none()) {
        return "unknown, so the cpus of a node count as one domain".to_owned();
    }
    if counts.len() > CACHE_KINDS_MAX {
        return format!("{} kinds, see each domain", counts.len());
    }
    joined(
        counts.into_iter().map(|((level, size), n)| format!("{n} × {}", cache(level, size))),
        ", ",
    )
}

/// `L3 32.0 MiB`
pub(super) fn cache(level: Option<u32>, size: Option<Bytes>) -> String {
    match (level, size) {
        (None, _) => "cache unknown".to_owned(),
        (Some(level), None) => format!("L{level}"),
        (Some(level), Some(size)) => format!("L{level} {size}"),
    }
}

fn pages(machine: &Machine) -> String {
    match machine.huge_page_size {
        Some(huge) => format!("{}, transparent huge pages {huge}", machine.page_size),
        None => format!("{}, no transparent huge pages", machine.page_size),
    }
}

/// The distance matrix.
pub(super) fn distances(machine: &Machine) -> String {
    let from = source(machine.distances_source);
    if machine.nodes.len() > MATRIX_NODES_MAX {
        return format!("Distances {from}\n  {}\n", distance_counts(machine));
    }
    let heads: Vec<u32> = machine.nodes.iter().map(|node| node.id.0).collect();
    let rows = matrix("node", &heads, &machine.distances);
    format!("Distances {from}, from row to column\n{rows}")
}

fn distance_counts(machine: &Machine) -> String {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for &distance in machine.distances.iter().flatten() {
        *counts.entry(distance).or_default() += 1;
    }
    joined(
        counts.into_iter().map(|(distance, n)| format!("{distance} for {}", count(n, "pair"))),
        ", ",
    )
}

/// What the process may not use.
pub(super) fn hidden(machine: &Machine) -> String {
    let hidden = &machine.hidden;
    let mut text = String::new();
    if !hidden.cpus.is_empty() {
        let cpus = list("cpu", &hidden.cpus);
        let _ = writeln!(text, "  {cpus}: outside the affinity mask or the cpuset");
    }
    if !hidden.nodes.is_empty() {
        let nodes = list("node", &hidden.nodes);
        let _ = writeln!(text, "  memory of {nodes}: outside the cpuset");
    }
    headed(&format!("Hidden {}", source(machine.source)), text)
}

/// The limits of control groups.
pub(super) fn limits(machine: &Machine) -> String {
    let mut text = String::new();
    if let Some(limit) = &machine.limits.memory {
        let _ = writeln!(text, "  memory, at most {}: {}", limit.bytes, limit.file);
    }
    if let Some(limit) = &machine.limits.cpu_time {
        let _ =
            writeln!(text, "  cpu time, that of at most {:.2} cpus: {}", limit.cpus, limit.file);
    }
    headed(&format!("Limits {}", source(machine.source)), text)
}

fn headed(head: &str, text: String) -> String {
    if text.is_empty() { text } else { format!("{head}\n{text}") }
}
