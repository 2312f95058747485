//! The time that the machine itself would take, and the figures it is based on.

use atoll_model::{Figure, TimeBounds};
use atoll_topology::Nanos;

use super::super::table::{COLUMNS_MAX, TextTable};
use super::super::words::{NOTHING, cut, digits, line, percent_short, time, trimmed};
use super::by_node;
use crate::record::RunRecord;

/// More figures than this are left to the JSON.
const FIGURES_MAX: usize = 40;
/// Longest origin in full.
const ORIGIN: usize = 400;

/// Computing and waiting of each node's cpus.
pub(super) fn nodes(record: &RunRecord) -> String {
    let estimate = &record.estimate;
    let title = "Estimated time of a cpu on the machine itself, and what it waits for";
    let heads = [
        "busy cpus",
        "computing",
        "waiting",
        "L2",
        "LLC",
        "local memory",
        "remote",
        "caches",
        "page walks",
    ];
    by_node(record, title, &heads, |at| {
        let node = &estimate.nodes[at];
        let waits = &node.waits;
        let sum = waits.sum().0;
        let share = |part: Nanos| percent_short((sum > 0.0).then(|| part.0 / sum));
        (node.compute.0 + sum > 0.0).then(|| {
            vec![
                digits(node.busy_cpus),
                time(node.compute),
                time(Nanos(node.latency(estimate.in_flight).0 - node.compute.0)),
                share(waits.private),
                share(waits.llc),
                share(waits.memory_local),
                share(waits.memory_remote),
                share(waits.caches),
                share(waits.walks),
            ]
        })
    })
}

/// The bounds for independent and dependent accesses.
pub(super) fn bounds(record: &RunRecord) -> String {
    let estimate = &record.estimate;
    let mut table = TextTable::new([
        "accesses",
        "slowest node",
        "busiest pipe",
        "at least",
        "at most",
        "one by one",
        "narrowest",
    ]);
    let mut row = |name: String, bounds: &TimeBounds| {
        table.row([
            name,
            time(bounds.latency),
            time(bounds.bandwidth),
            time(bounds.lower),
            time(bounds.upper),
            time(bounds.serial),
            bounds.narrowest.map_or(NOTHING.to_owned(), |narrowest| narrowest.to_string()),
        ]);
    };
    row(format!("independent, {} in flight", trimmed(estimate.in_flight)), &estimate.independent);
    row("dependent".to_owned(), &estimate.dependent);
    format!(
        "Estimated time of the run: a model's bounds, not a measurement. Pipes are controllers \
         and links; one\n\
         by one is for a program that never does two things at a time\n{}",
        table.text()
    )
}

/// The figures with their sources.
pub(super) fn figures(record: &RunRecord) -> String {
    let figures = &record.estimate.figures;
    let mut text = "Figures of the estimate\n".to_owned();
    for figure in figures.iter().take(FIGURES_MAX) {
        push_wrapped(&mut text, &described(figure));
    }
    if figures.len() > FIGURES_MAX {
        text.push_str(&format!("  and {} more\n", figures.len() - FIGURES_MAX));
    }
    text
}

/// `latency of local memory: 150 ns (assumed: as on nehalem-ex-4)`
fn described(figure: &Figure) -> String {
    let value = match figure.least == figure.most {
        true => trimmed(figure.least),
        false => format!("{} to {}", trimmed(figure.least), trimmed(figure.most)),
    };
    // Many origins of assumed figures begin with the word.
    let origin = cut(&figure.origin, ORIGIN);
    let origin = origin.strip_prefix(figure.source.name()).unwrap_or(&origin);
    let origin = origin.trim_start_matches([':', ' ']);
    let (name, unit) = (line(&figure.name), line(&figure.unit));
    format!("{name}: {value} {unit} ({}: {origin})", figure.source.name())
}

/// Adds a text in lines that fit.
fn push_wrapped(out: &mut String, text: &str) {
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count() + 1;
        let start = if used == 0 { Some("  ") } else { None };
        let start = start.or((used + length > COLUMNS_MAX).then_some("\n      "));
        match start {
            Some(start) => {
                out.push_str(start);
                used = start.len() + length;
            }
            None => {
                out.push(' ');
                used += length;
            }
        }
        out.push_str(word);
    }
    out.push('\n');
}
