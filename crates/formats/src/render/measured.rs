//! The sections of figures: links, and matrices of the facts about paths between nodes.

use super::facts::{self, Credit, PathFigures, figure};
use super::matrix::{matrix_of, table};
use super::words::{count, source};
use atoll_topology::Knowledge;

/// Above this number of nodes, the figures are only in JSON and SQL.
const MATRIX_NODES_MAX: usize = 32;
/// Above this number, links are counted.
const LINKS_MAX: usize = 32;

/// Links with their figures; empty if no link is known.
pub(super) fn links(knowledge: &Knowledge) -> String {
    let machine = &knowledge.machine;
    let (figures, credit) = facts::links(knowledge);
    if machine.links.is_empty() {
        return String::new();
    }
    let mut text = format!("Links {}{}\n", source(machine.links_source), origins(&credit));
    for link in machine.links.iter().take(LINKS_MAX) {
        let figures = figures.get(&link.id).copied().unwrap_or_default().text();
        let figures = if figures.is_empty() { figures } else { format!(": {figures}") };
        text.push_str(&format!("  nodes {} and {}, {}{figures}\n", link.a, link.b, link.kind));
    }
    if machine.links.len() > LINKS_MAX {
        text.push_str(&format!("  and {} more\n", machine.links.len() - LINKS_MAX));
    }
    text
}

/// One section for each quantity that has facts.
pub(super) fn matrices(knowledge: &Knowledge) -> Vec<String> {
    facts::matrices(knowledge).iter().map(section).collect()
}

fn section(figures: &PathFigures) -> String {
    let PathFigures { matrix, credit } = figures;
    let sources = format!("({})", credit.sources());
    let title = facts::title(matrix.quantity);
    let head = format!("{title} {sources}, from row to column{}\n", origins(credit));
    if matrix.nodes.len() > MATRIX_NODES_MAX {
        let known = matrix.rows.iter().flatten().flatten().count();
        return format!("{head}  {}\n", count(known, "path"));
    }
    let heads: Vec<u32> = matrix.nodes.iter().map(|node| node.0).collect();
    let text = |value: &Option<f64>| value.map_or("-".to_owned(), figure);
    let rows: Vec<Vec<String>> =
        matrix.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let off_diagonal = |(i, row): (usize, &Vec<Option<f64>>)| {
        row.iter().enumerate().any(|(j, value)| i != j && value.is_some())
    };
    if heads.len() > 1 && !matrix.rows.iter().enumerate().any(off_diagonal) {
        // Only the figures of nodes' own memory are known: one row instead of a matrix of unknowns.
        let own = rows.iter().enumerate().map(|(i, row)| row[i].clone()).collect();
        return head + &table("node", &heads, &[("own".to_owned(), own)]);
    }
    head + &matrix_of("node", &heads, &rows)
}

/// The origins and time of the figures, on a separate line.
fn origins(credit: &Credit) -> String {
    match credit.origins().as_str() {
        "" => String::new(),
        origins => format!("\n  {origins}"),
    }
}
