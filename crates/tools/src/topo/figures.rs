//! Measurements as text: matrices by node, then figures with more dimensions.

use std::collections::BTreeMap;

use atoll_formats::render;
use atoll_topology::{CpuId, Fact, Knowledge, NodeId, Quantity, Subject};

/// More cpus than this, and core-to-core times are summed up instead of listed.
const CPUS_LISTED_MAX: usize = 16;

/// More paths than this, and their spread is left to `topo facts`.
const PATHS_LISTED_MAX: usize = 16;

/// Between the least and the most, as a share of the median: beyond it a figure is not steady.
const SPREAD_WIDE: f64 = 0.2;

/// A path between two nodes: cpus, memory.
type Path = (NodeId, NodeId);

/// Matrices; bandwidth by threads; latency by load; times from core to core.
pub(super) fn text(known: &Knowledge) -> String {
    let sections = [
        render::figures(known),
        latencies(known),
        by_threads(known),
        by_load(known),
        core_to_core(known),
        unsteady(known),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    sections.join("\n")
}

/// `17.1 (16.8–17.3)`: the median, the least and the most.
fn with_spread(fact: &Fact) -> String {
    let spread = fact.spread.map(|spread| format!(" ({:.1}–{:.1})", spread.min, spread.max));
    format!("{:.1}{}", fact.value, spread.unwrap_or_default())
}

/// Idle latencies with their spread, which the matrix has no room for.
fn latencies(known: &Knowledge) -> String {
    let facts = known.facts.iter().filter(|fact| fact.quantity == Quantity::Latency);
    let rows: Vec<String> = facts
        .filter_map(|fact| {
            let (from, to) = fact.path()?;
            Some(format!("  {from} → {to}  {}\n", with_spread(fact)))
        })
        .collect();
    match rows.len() {
        1..=PATHS_LISTED_MAX => {
            format!("Latency, ns (cpus of node → memory of node; least–most)\n{}", rows.concat())
        }
        _ => String::new(),
    }
}

/// How many figures cannot be relied on.
fn unsteady(known: &Knowledge) -> String {
    let is_wide = |fact: &&Fact| {
        fact.spread.is_some_and(|it| it.max - it.min > SPREAD_WIDE * fact.value.abs())
    };
    match known.facts.iter().filter(is_wide).count() {
        0 => String::new(),
        wide => format!(
            "{wide} of {} figures differ by more than {:.0} % from run to run; measure again when the \
             machine is idle\n",
            known.facts.len(),
            100.0 * SPREAD_WIDE
        ),
    }
}

/// Bandwidth of each path by number of threads, if there is more than one number.
fn by_threads(known: &Knowledge) -> String {
    let mut rows: BTreeMap<(Quantity, Path), BTreeMap<u32, &Fact>> = BTreeMap::new();
    for fact in known.facts.iter().filter(|fact| fact.quantity.unit() == "GB/s") {
        if let (Some(path), Some(threads)) = (fact.path(), fact.conditions.threads) {
            rows.entry((fact.quantity, path)).or_default().insert(threads, fact);
        }
    }
    rows.retain(|_, row| row.len() > 1);
    if rows.is_empty() {
        return String::new();
    }
    let mut text =
        "Bandwidth by threads, GB/s (cpus of node → memory of node; least–most)\n".to_owned();
    for ((quantity, (from, to)), row) in &rows {
        let enough = saturation(known, *quantity, (*from, *to));
        let cells: Vec<String> =
            row.iter().map(|(threads, fact)| format!("{threads}: {}", with_spread(fact))).collect();
        let name = quantity.name().trim_end_matches("_bandwidth");
        text.push_str(&format!("  {from} → {to}  {name:<6} {}{enough}\n", cells.join("  ")));
    }
    text
}

/// How many threads saturate the path with reads, if known.
fn saturation(known: &Knowledge, quantity: Quantity, (from, to): Path) -> String {
    if quantity != Quantity::ReadBandwidth {
        return String::new();
    }
    let subject = Subject::Path { from, to };
    let fact = known.best(subject, Quantity::SaturationThreads, Default::default());
    fact.map(|fact| format!("  saturated by {}", fact.value)).unwrap_or_default()
}

/// Latency of each path by the load that it carries.
fn by_load(known: &Knowledge) -> String {
    let mut rows: BTreeMap<Path, Vec<(f64, f64)>> = BTreeMap::new();
    for fact in known.facts.iter().filter(|fact| fact.quantity == Quantity::LoadedLatency) {
        if let (Some(path), Some(load)) = (fact.path(), fact.conditions.load) {
            rows.entry(path).or_default().push((load, fact.value));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "Latency under load, ns at GB/s (cpus of node → memory of node)\n".to_owned();
    for ((from, to), mut row) in rows {
        row.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cells: Vec<String> =
            row.iter().map(|(load, value)| format!("{value:.0} at {load:.1}")).collect();
        text.push_str(&format!("  {from} → {to}  {}\n", cells.join(", ")));
    }
    text
}

/// Times from cpu to cpu: all of them on small machines, their range on others.
fn core_to_core(known: &Knowledge) -> String {
    let mut times: Vec<((CpuId, CpuId), &Fact)> = known
        .facts
        .iter()
        .filter(|fact| fact.quantity == Quantity::CoreToCore)
        .filter_map(|fact| match fact.subject {
            Subject::CpuPair { from, to } => Some(((from, to), fact)),
            _ => None,
        })
        .collect();
    if times.is_empty() {
        return String::new();
    }
    let mut text = "Core to core, ns one way\n".to_owned();
    if known.machine.cpus.len() <= CPUS_LISTED_MAX {
        times.sort_by_key(|(pair, _)| *pair);
        for ((from, to), time) in times {
            text.push_str(&format!("  cpu {from} → {to}  {}\n", with_spread(time)));
        }
        return text;
    }
    times.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let at = |share: usize| times[(times.len() - 1) * share / 100].1.value;
    text.push_str(&format!(
        "  {} pairs: least {:.1}, median {:.1}, most {:.1}\n",
        times.len(),
        at(0),
        at(50),
        at(100)
    ));
    text
}
