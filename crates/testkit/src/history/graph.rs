//! Dependencies between transactions, and the cycles in them.

use std::collections::{BTreeSet, VecDeque};

use super::{Anomaly, HistoryKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dependency {
    /// The second overwrote what the first wrote.
    Ww,
    /// The second read what the first wrote.
    Wr,
    /// The second overwrote what the first read.
    Rw,
}

use Dependency::{Rw, Wr, Ww};

/// From each transaction to those that depend on it.
pub(super) struct DependencyGraph {
    after: Vec<BTreeSet<(usize, Dependency, HistoryKey)>>,
}

impl DependencyGraph {
    pub(super) fn new(transactions: usize) -> Self {
        Self { after: vec![BTreeSet::new(); transactions] }
    }

    pub(super) fn add(
        &mut self,
        from: Option<usize>,
        to: Option<usize>,
        kind: Dependency,
        key: HistoryKey,
    ) {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            self.after[from].insert((to, kind, key));
        }
    }

    fn edges(&self) -> impl Iterator<Item = (usize, usize, Dependency, HistoryKey)> {
        let of = |(from, after): (usize, &BTreeSet<_>)| {
            let each = after.iter().map(move |(to, kind, key)| (from, *to, *kind, *key));
            each.collect::<Vec<_>>()
        };
        self.after.iter().enumerate().flat_map(of)
    }

    pub(super) fn cycles(&self) -> BTreeSet<Anomaly> {
        let mut found = BTreeSet::new();
        for (from, to, kind, key) in self.edges() {
            let back = |kinds: &[Dependency]| self.reaches(to, from, kinds);
            let each = [
                (kind == Ww && back(&[Ww]), Anomaly::G0),
                (kind == Wr && back(&[Ww, Wr]), Anomaly::G1c),
                (kind == Rw && back(&[Ww, Wr]), Anomaly::GSingle),
                (kind == Rw && self.after[to].contains(&(from, Ww, key)), Anomaly::LostUpdate),
                (kind == Rw && self.returns_without_rw_in_a_row(from, to), Anomaly::GSi),
                (kind == Rw && back(&[Ww, Wr, Rw]), Anomaly::G2Item),
            ];
            found.extend(each.into_iter().filter(|(is_there, _)| *is_there).map(|(_, of)| of));
        }
        found
    }

    fn reaches(&self, from: usize, to: usize, kinds: &[Dependency]) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut pending = VecDeque::from([from]);
        while let Some(at) = pending.pop_front() {
            if at == to {
                return true;
            }
            let next = self.after[at].iter().filter(|(_, kind, _)| kinds.contains(kind));
            pending.extend(next.map(|(next, ..)| *next).filter(|next| seen.insert(*next)));
        }
        false
    }

    /// Whether the rw between two transactions is in a cycle in which no other rw is next to one.
    fn returns_without_rw_in_a_row(&self, from: usize, to: usize) -> bool {
        let start = (to, true);
        let mut seen = BTreeSet::from([start]);
        let mut pending = VecDeque::from([start]);
        while let Some((at, was_rw)) = pending.pop_front() {
            if at == from && !was_rw {
                return true;
            }
            for (next, kind, _) in &self.after[at] {
                let state = (*next, *kind == Rw);
                if !(was_rw && *kind == Rw) && seen.insert(state) {
                    pending.push_back(state);
                }
            }
        }
        false
    }
}
