//! Two records side by side.

use std::collections::BTreeSet;

use atoll_simulation::Traffic;
use atoll_topology::{Bytes, Nanos};
use serde::Serialize;

use super::counts::{
    accesses, controller_bytes, hit_rate, link_bytes, local_share, lookups, sum, total,
};
use super::table::TextTable;
use super::words::{self, NOTHING, count, digits, line, percent};
use crate::record::RunRecord;

/// Two runs, measure by measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// Differences of the runs besides their counts.
    pub remarks: Vec<String>,
    /// The measures.
    pub lines: Vec<MeasureLine>,
}

/// A measure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasureLine {
    /// Region; None for the whole run.
    pub region: Option<u8>,
    /// Name of the measure.
    pub name: String,
    /// Its unit.
    pub unit: MeasureUnit,
    /// In the first run; None if missing there.
    pub a: Option<f64>,
    /// In the second run.
    pub b: Option<f64>,
    /// The second divided by the first; None if the first is zero or missing.
    pub ratio: Option<f64>,
}

/// Units of measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasureUnit {
    /// A number of events.
    Count,
    /// From 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Estimated time, ns.
    Nanos,
}

/// Name, unit and value of a measure.
type Measure = (String, MeasureUnit, Option<f64>);

impl RunComparison {
    /// Compares two records; regions with the same number are taken for the same.
    pub fn from_records(a: &RunRecord, b: &RunRecord) -> Self {
        let numbers = |record: &RunRecord| -> BTreeSet<u8> {
            record.report.regions.iter().map(|region| region.number).collect()
        };
        let mut lines = side_by_side(None, &measures(Some(a)), &measures(Some(b)));
        for number in numbers(a).union(&numbers(b)) {
            let (a, b) = (a.of_region(*number), b.of_region(*number));
            lines.extend(side_by_side(Some(*number), &measures(a.as_ref()), &measures(b.as_ref())));
        }
        Self { remarks: remarks(a, b), lines }
    }

    /// The comparison as a table; `names` are those of the two runs.
    pub fn text(&self, names: [&str; 2]) -> String {
        let [a, b] = names.map(line);
        let mut text = format!("A: {a}\nB: {b}\n");
        text.extend(self.remarks.iter().map(|remark| format!("  {remark}\n")));
        for group in self.lines.chunk_by(|a, b| a.region == b.region) {
            let mut table = TextTable::new(["", "A", "B", "B/A"]);
            for line in group {
                let ratio = line.ratio.map_or(NOTHING.to_owned(), digits);
                let [a, b] = [line.a, line.b].map(|value| line.unit.text(value));
                table.row([line.name.clone(), a, b, ratio]);
            }
            let title = group[0].region.map_or("Whole run".to_owned(), |n| format!("Region {n}"));
            text.push_str(&format!("\n{title}\n{}", table.text()));
        }
        text
    }
}

impl MeasureUnit {
    fn text(self, value: Option<f64>) -> String {
        let Some(value) = value else { return NOTHING.to_owned() };
        match self {
            Self::Count => count(value as u64),
            Self::Share => percent(Some(value)),
            Self::Bytes => Bytes(value as u64).to_string(),
            Self::Nanos => words::time(Nanos(value)),
        }
    }
}

/// Measures of both by name, in the order of the first; those that only the second has come last.
fn side_by_side(region: Option<u8>, a: &[Measure], b: &[Measure]) -> Vec<MeasureLine> {
    let names: BTreeSet<&str> = a.iter().map(|(name, ..)| name.as_str()).collect();
    let more = b.iter().filter(|(name, ..)| !names.contains(name.as_str()));
    let value = |list: &[Measure], name: &str| {
        list.iter().find(|(other, ..)| other == name).and_then(|(.., value)| *value)
    };
    let line = |(name, unit, _): &Measure| {
        let (a, b) = (value(a, name), value(b, name));
        let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
        MeasureLine { region, name: name.clone(), unit: *unit, a, b, ratio }
    };
    a.iter().chain(more).map(line).collect()
}

/// The measures of a run; without values if there is no such run.
fn measures(record: Option<&RunRecord>) -> Vec<Measure> {
    let Some(record) = record else { return Vec::new() };
    let traffic = &record.report.total;
    let mut list = counted(traffic);
    let of = |what: &str, name: String, bytes: u64| {
        (format!("{what} {name}"), MeasureUnit::Bytes, Some(bytes as f64))
    };
    let nodes = record.report.setup.nodes.iter().map(|node| node.id.to_string());
    let controllers = nodes.zip(controller_bytes(traffic));
    list.extend(controllers.map(|(id, bytes)| of("memory of node", id, bytes)));
    let links = record.estimate.links.iter().zip(link_bytes(traffic));
    list.extend(links.map(|(link, bytes)| {
        of("link", format!("{} from {} to {}", link.link, link.from, link.to), bytes)
    }));
    let estimate = &record.estimate;
    for (name, time) in [
        ("estimated time, at least", estimate.independent.lower),
        ("estimated time, at most", estimate.independent.upper),
        ("the same of dependent accesses, at least", estimate.dependent.lower),
        ("the same of dependent accesses, at most", estimate.dependent.upper),
    ] {
        list.push((name.to_owned(), MeasureUnit::Nanos, Some(time.0)));
    }
    list
}

fn counted(traffic: &Traffic) -> Vec<Measure> {
    let accesses = accesses(traffic);
    let (hits, misses) = lookups(traffic);
    let of = |part: fn(&atoll_simulation::CacheCounts) -> u64| -> u64 {
        traffic.caches.iter().map(part).fold(0, u64::saturating_add)
    };
    let counts = [
        ("accesses", total(&accesses)),
        ("loads", total(&traffic.loads)),
        ("stores", total(&traffic.stores)),
        ("instructions", sum(&traffic.instructions)),
        ("last-level hits", hits),
        ("last-level misses", misses),
        ("lines from other caches, clean", of(|it| sum(&it.sources.clean))),
        ("lines from other caches, written", of(|it| sum(&it.sources.dirty))),
        ("upgrades", of(|it| it.upgrades)),
        ("lines written back", of(|it| it.writebacks)),
        ("DTLB misses", of(|it| it.dtlb_misses)),
    ];
    let shares = [
        ("local accesses", local_share(&accesses)),
        ("local last-level misses", local_share(&traffic.lines)),
        ("last-level hit rate", hit_rate(traffic)),
    ];
    let counts =
        counts.map(|(name, count)| (name.to_owned(), MeasureUnit::Count, Some(count as f64)));
    let shares = shares.map(|(name, share)| (name.to_owned(), MeasureUnit::Share, share));
    shares.into_iter().chain(counts).collect()
}

/// Differences of the runs that may explain different counts.
fn remarks(a: &RunRecord, b: &RunRecord) -> Vec<String> {
    let (run_a, run_b) = (&a.run, &b.run);
    let (setup_a, setup_b) = (&a.report.setup, &b.report.setup);
    let mut remarks = Vec::new();
    let mut note = |differ: bool, text: String| {
        if differ {
            remarks.push(text);
        }
    };
    let names = [line(&run_a.machine), line(&run_b.machine)];
    let others = names[0] != names[1];
    note(others, format!("different machines: {} and {}", names[0], names[1]));
    let shape = a.machine != b.machine;
    note(shape && !others, "the machine was cut differently, or has other facts".to_owned());
    let caches = (setup_a.l1, setup_a.l2, &setup_a.llc, setup_a.dtlb);
    let differ = caches != (setup_b.l1, setup_b.l2, &setup_b.llc, setup_b.dtlb);
    note(differ, "different modelled caches".to_owned());
    let figures = a.estimate.figures != b.estimate.figures;
    note(figures, "the estimates rest on different figures".to_owned());
    note(setup_a.counting != setup_b.counting, "counted differently: all, and regions".to_owned());
    note(run_a.balancing != run_b.balancing, "different automatic balancing".to_owned());
    note(run_a.command != run_b.command, "different commands".to_owned());
    let codes = (run_a.code, run_b.code);
    note(codes != (0, 0), format!("exit codes {} and {}", codes.0, codes.1));
    for (name, record) in [("A", a), ("B", b)] {
        if let Some(why) = super::nothing::why_nothing(record) {
            remarks.push(format!("{name}: {why}"));
        }
    }
    remarks
}
