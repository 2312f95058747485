//! Renders a machine as text ([`tree`]), as pictures ([`svg`] and [`ascii`]) and for programs ([`json`]).

mod ascii;
mod blocks;
mod facts;
mod facts_json;
mod json;
mod matrix;
mod measured;
mod outline;
mod sections;
mod svg;
mod words;

pub use ascii::ascii;
pub use facts_json::facts_json;
pub use json::json;
pub use svg::svg;

use atoll_topology::{Knowledge, Machine};

/// The machine as `atoll topo` prints it, at most 80 columns wide unless a name is longer: totals, then packages,
/// nodes, domains and cores as a tree, then the distances, then what is hidden, limited or assumed. Every section
/// shows the source of its facts; [`json`] has everything that is abbreviated here.
pub fn tree(machine: &Machine) -> String {
    joined([vec![sections::totals(machine)], structure(machine), bounds(machine)])
}

/// [`tree`], and after the distances the links and a matrix for each quantity with facts about the paths between
/// nodes, with origin and time of its figures.
pub fn tree_with_facts(knowledge: &Knowledge) -> String {
    let machine = &knowledge.machine;
    let mut figures = vec![measured::links(knowledge)];
    figures.extend(measured::matrices(knowledge));
    joined([vec![sections::totals(machine)], structure(machine), figures, bounds(machine)])
}

/// Only the links and the matrices of [`tree_with_facts`]; empty if there are no such facts.
pub fn figures(knowledge: &Knowledge) -> String {
    let links = vec![measured::links(knowledge)];
    joined([links, measured::matrices(knowledge)])
}

fn structure(machine: &Machine) -> Vec<String> {
    vec![
        outline::outline(machine),
        sections::dies(machine),
        sections::cpu_kinds(machine),
        sections::distances(machine),
    ]
}

fn bounds(machine: &Machine) -> Vec<String> {
    vec![sections::hidden(machine), sections::limits(machine), sections::assumptions(machine)]
}

/// The sections that are not empty.
fn joined<const N: usize>(sections: [Vec<String>; N]) -> String {
    let sections = sections.into_iter().flatten();
    sections.filter(|section| !section.is_empty()).collect::<Vec<_>>().join(
        "
",
    )
}
