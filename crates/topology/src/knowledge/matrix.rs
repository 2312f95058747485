//! A figure for every pair of nodes.

use std::collections::HashMap;
use std::time::SystemTime;

use super::ask;
use crate::{Conditions, Fact, Knowledge, NodeId, Quantity, Source, Subject};

/// One quantity of the paths between all nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The quantity of the figures, which determines their unit.
    pub quantity: Quantity,
    /// Nodes of the rows (of the cpus) and of the columns (of the memory), by id.
    pub nodes: Vec<NodeId>,
    /// Figures; None for unknown ones.
    pub rows: Vec<Vec<Option<f64>>>,
    /// The least trusted source of a figure; None if no figure is known.
    pub source: Option<Source>,
    /// The time of the oldest figure that has one.
    pub oldest: Option<SystemTime>,
}

impl Matrix {
    /// The figure of a path.
    pub fn get(&self, from: NodeId, to: NodeId) -> Option<f64> {
        let place = |node| self.nodes.binary_search(&node).ok();
        self.rows[place(from)?][place(to)?]
    }

    /// Whether no figure is known.
    pub fn is_empty(&self) -> bool {
        self.source.is_none()
    }

    fn set(&mut self, fact: &Fact) {
        let Subject::Path { from, to } = fact.subject else { return };
        let place = |node| self.nodes.binary_search(&node).ok();
        let (Some(from), Some(to)) = (place(from), place(to)) else { return };
        self.rows[from][to] = Some(fact.value);
        self.source = self.source.max(Some(fact.source));
        self.oldest = match (self.oldest, fact.at) {
            (Some(oldest), Some(at)) => Some(oldest.min(at)),
            (oldest, at) => oldest.or(at),
        };
    }
}

impl Knowledge {
    /// The figures of the paths between all nodes: for a bandwidth the saturated one
    /// ([`bandwidth`](Self::bandwidth)), for everything else the [`best`](Self::best) figure without
    /// conditions.
    pub fn matrix(&self, quantity: Quantity) -> Matrix {
        let nodes: Vec<NodeId> = self.machine.nodes.iter().map(|node| node.id).collect();
        let rows = vec![vec![None; nodes.len()]; nodes.len()];
        let mut matrix = Matrix { quantity, nodes, rows, source: None, oldest: None };
        if quantity == Quantity::Distance {
            super::structure::distances(&self.machine).for_each(|fact| matrix.set(&fact));
        }
        for facts in self.by_path(quantity).into_values() {
            if let Some(best) = best(quantity, &facts) {
                matrix.set(best);
            }
        }
        matrix
    }

    fn by_path(&self, quantity: Quantity) -> HashMap<Subject, Vec<&Fact>> {
        let mut by_path: HashMap<Subject, Vec<&Fact>> = HashMap::new();
        for fact in self.facts.iter().filter(|fact| fact.quantity == quantity) {
            by_path.entry(fact.subject).or_default().push(fact);
        }
        by_path
    }
}

fn best<'a>(quantity: Quantity, facts: &[&'a Fact]) -> Option<&'a Fact> {
    let facts = facts.iter().copied();
    match quantity {
        Quantity::ReadBandwidth | Quantity::WriteBandwidth | Quantity::CopyBandwidth => {
            ask::saturated(facts)
        }
        _ => {
            let plain = facts.filter(|fact| fact.conditions == Conditions::default());
            plain.min_by_key(|fact| ask::trust(fact))
        }
    }
}
