//! Facts as matrices and link figures, for pictures and tables.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use atoll_topology::{Fact, Knowledge, LinkId, Quantity, Source, Subject};
use atoll_topology::{Matrix, rfc3339};

/// Path quantities that are shown as matrices.
const PATH_QUANTITIES: [Quantity; 5] = [
    Quantity::Latency,
    Quantity::ReadBandwidth,
    Quantity::WriteBandwidth,
    Quantity::CopyBandwidth,
    Quantity::CrossTrafficBandwidth,
];
/// Maximum number of origins that are named; the rest are counted.
const ORIGINS_NAMED_MAX: usize = 2;

/// A quantity of all paths, and the source of its figures.
pub(super) struct PathFigures {
    pub(super) matrix: Matrix,
    pub(super) credit: Credit,
}

/// The sources of figures.
#[derive(Default)]
pub(super) struct Credit {
    sources: BTreeSet<Source>,
    origins: BTreeSet<String>,
    at: Option<SystemTime>,
}

impl Credit {
    fn from_facts<'a>(facts: impl Iterator<Item = &'a Fact>) -> Self {
        let mut credit = Self::default();
        for fact in facts {
            credit.sources.insert(fact.source);
            credit.origins.insert(fact.origin.clone());
            credit.at = credit.at.max(fact.at);
        }
        credit
    }

    /// `measured` or `measured, declared`.
    pub(super) fn sources(&self) -> String {
        self.sources.iter().map(|source| source.name()).collect::<Vec<_>>().join(", ")
    }

    /// `atoll topo measure, 2026-03-01T12:30:00Z`; the time is that of the newest figure.
    pub(super) fn origins(&self) -> String {
        let mut words: Vec<String> = self
            .origins
            .iter()
            .take(ORIGINS_NAMED_MAX)
            .filter(|o| !o.is_empty())
            .cloned()
            .collect();
        if self.origins.len() > ORIGINS_NAMED_MAX {
            words.push(format!("{} more", self.origins.len() - ORIGINS_NAMED_MAX));
        }
        words.extend(self.at.map(rfc3339));
        words.join(", ")
    }
}

/// A matrix for each quantity that has facts.
pub(super) fn matrices(knowledge: &Knowledge) -> Vec<PathFigures> {
    let quantities = PATH_QUANTITIES.into_iter();
    quantities.filter_map(|quantity| figures(knowledge, quantity)).collect()
}

fn figures(knowledge: &Knowledge, quantity: Quantity) -> Option<PathFigures> {
    let matrix = knowledge.matrix(quantity);
    let least_trusted = matrix.source?;
    let used = knowledge.facts.iter().filter(|fact| {
        let of_paths = matches!(fact.subject, Subject::Path { .. });
        of_paths && fact.quantity == quantity && fact.source <= least_trusted
    });
    Some(PathFigures { credit: Credit::from_facts(used), matrix })
}

/// The figures of a link.
#[derive(Clone, Copy, Default)]
pub(super) struct LinkFigures {
    /// GB/s in one direction.
    pub(super) bandwidth: Option<f64>,
    /// ns that one hop adds.
    pub(super) latency: Option<f64>,
}

impl LinkFigures {
    /// `12.8 GB/s, 40 ns`, or nothing.
    pub(super) fn text(self) -> String {
        let bandwidth = self.bandwidth.map(|value| format!("{} GB/s", figure(value)));
        let latency = self.latency.map(|value| format!("{} ns", figure(value)));
        bandwidth.into_iter().chain(latency).collect::<Vec<_>>().join(", ")
    }
}

/// The figures of each link, and their sources.
pub(super) fn links(knowledge: &Knowledge) -> (BTreeMap<LinkId, LinkFigures>, Credit) {
    let mut figures: BTreeMap<LinkId, LinkFigures> = BTreeMap::new();
    let mut facts: Vec<&Fact> =
        knowledge.facts.iter().filter(|fact| matches!(fact.subject, Subject::Link(_))).collect();
    // The most trusted comes last and wins.
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.source));
    for fact in &facts {
        let Subject::Link(id) = fact.subject else { continue };
        let figures = figures.entry(id).or_default();
        match fact.quantity {
            Quantity::Latency => figures.latency = Some(fact.value),
            Quantity::ReadBandwidth | Quantity::CopyBandwidth => {
                figures.bandwidth = Some(fact.value);
            }
            _ => {}
        }
    }
    (figures, Credit::from_facts(facts.into_iter()))
}

/// A figure with three significant digits: `7.25`, `40.1`, `182`.
pub(super) fn figure(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `Latency, ns`, as a title.
pub(super) fn title(quantity: Quantity) -> String {
    let name = quantity.name().replace('_', " ");
    let (first, rest) = name.split_at(1);
    format!("{}{rest}, {}", first.to_uppercase(), quantity.unit())
}
