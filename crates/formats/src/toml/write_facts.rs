//! Writes facts as `[[fact]]` entries, in order: adjacent facts that differ only in subject and value share an entry,
//! as a matrix if they fill enough of one.

use super::figures::matrix_subjects;
use super::values::{quoted, time_written};
use atoll_topology::{Fact, Knowledge, Machine, Subject};

/// Appends the facts.
pub(super) fn write(text: &mut String, knowledge: &Knowledge) {
    for group in knowledge.facts.chunk_by(alike) {
        text.push_str(&common(&group[0]));
        let matrix = matrix(&knowledge.machine, group);
        text.push_str(&matrix.unwrap_or_else(|| values(group)));
    }
}

fn alike(a: &Fact, b: &Fact) -> bool {
    a.quantity == b.quantity
        && a.conditions == b.conditions
        && a.source == b.source
        && a.origin == b.origin
        && a.at == b.at
}

fn common(fact: &Fact) -> String {
    let quantity = fact.quantity;
    let mut text =
        format!("\n[[fact]]\nquantity = \"{quantity}\"\nunit = \"{}\"\n", quantity.unit());
    let mut key = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{key} = {value}\n"));
        }
    };
    key("threads", fact.conditions.threads.map(|threads| threads.to_string()));
    key("load", fact.conditions.load.map(|load| format!("{load:?}")));
    key("source", Some(format!("\"{}\"", fact.source.name())));
    key("origin", Some(quoted(&fact.origin)));
    key("at", fact.at.map(time_written));
    text
}

fn values(facts: &[Fact]) -> String {
    let row = |fact: &Fact| {
        let spread = fact.spread.map_or(String::new(), |spread| {
            format!(", min = {:?}, max = {:?}, runs = {}", spread.min, spread.max, spread.runs)
        });
        format!("  {{ subject = \"{}\", value = {:?}{spread} }},\n", fact.subject, fact.value)
    };
    format!("values = [\n{}]\n", facts.iter().map(row).collect::<String>())
}

/// The facts as a matrix, if they are cells of one in row-major order and fill at least half of it.
fn matrix(machine: &Machine, facts: &[Fact]) -> Option<String> {
    if facts.iter().any(|fact| fact.spread.is_some()) {
        return None;
    }
    let pairs =
        |fact: &&Fact| matches!(fact.subject, Subject::Path { .. } | Subject::CpuPair { .. });
    facts.iter().all(|fact| pairs(&fact)).then_some(())?;
    let subjects = matrix_subjects(machine, facts[0].quantity);
    let size = subjects.len();
    if facts.len() < 2 || facts.len() * 2 < size * size {
        return None;
    }
    let mut rest = facts.iter().peekable();
    let mut text = String::from("matrix = [\n");
    for from in 0..size {
        let mut row = Vec::new();
        for to in 0..size {
            let fact = rest.next_if(|fact| fact.subject == subjects.pair(from, to));
            row.push(fact.map_or("\"-\"".to_owned(), |fact| format!("{:?}", fact.value)));
        }
        text.push_str(&format!("  [{}],\n", row.join(", ")));
    }
    text.push_str("]\n");
    rest.next().is_none().then_some(text)
}
