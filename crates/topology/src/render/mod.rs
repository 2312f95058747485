//! A machine for people ([`tree`]) and for programs ([`json`]).

mod json;
mod matrix;
mod outline;
mod sections;
mod words;

pub use json::json;

use crate::Machine;

/// The machine as `atoll topo` prints it, at most 80 columns wide unless a name is longer: totals,
/// then packages, nodes, domains and cores as a tree, then the distances, then what is hidden or
/// limited. Every section says where its facts come from; [`json`] has all that is shortened here.
pub fn tree(machine: &Machine) -> String {
    let sections = [
        sections::totals(machine),
        outline::outline(machine),
        sections::distances(machine),
        sections::hidden(machine),
        sections::limits(machine),
    ];
    let sections: Vec<String> =
        sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}
