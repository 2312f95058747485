//! Queries for the most trusted figure about a subject.

use std::cmp::Reverse;
use std::time::SystemTime;

use crate::{Conditions, Fact, Knowledge, NodeId, Quantity, Source, Subject};

/// Order of trust, best first: by source, then newest first; a fact without a time is the oldest.
pub(super) fn trust(fact: &Fact) -> (Source, Reverse<Option<SystemTime>>) {
    (fact.source, Reverse(fact.at))
}

impl Knowledge {
    /// The most trusted fact under exactly these conditions. Ties are broken by time, newest first, and then by storage
    /// order.
    pub fn best(
        &self,
        subject: Subject,
        quantity: Quantity,
        conditions: Conditions,
    ) -> Option<Fact> {
        let stored = self.on(subject, quantity).filter(|fact| fact.conditions == conditions);
        let stored = stored.min_by_key(|fact| trust(fact)).cloned();
        let structural = match conditions {
            Conditions { threads: None, load: None } => self.structural(subject, quantity),
            _ => None,
        };
        stored.into_iter().chain(structural).min_by_key(trust)
    }

    /// Time of one dependent random read by cpus of `from` from memory of `to` on an idle path, ns.
    pub fn latency(&self, from: NodeId, to: NodeId) -> Option<Fact> {
        self.best(Subject::Path { from, to }, Quantity::Latency, Conditions::default())
    }

    /// Bandwidth of the path in GB/s, without other load: that of the given number of threads, or without `threads` the
    /// saturated one, which is the largest over all numbers of threads. Only facts of the most trusted source that has
    /// any are considered, and for each number of threads the newest.
    pub fn bandwidth(
        &self,
        from: NodeId,
        to: NodeId,
        quantity: Quantity,
        threads: Option<u32>,
    ) -> Option<Fact> {
        let subject = Subject::Path { from, to };
        match threads {
            Some(_) => self.best(subject, quantity, Conditions { threads, load: None }),
            None => saturated(self.on(subject, quantity)).cloned(),
        }
    }

    /// Stored facts about a subject.
    pub(super) fn on(&self, subject: Subject, quantity: Quantity) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(move |fact| fact.subject == subject && fact.quantity == quantity)
    }
}

/// The largest figure of the most trusted source: see [`Knowledge::bandwidth`].
pub(super) fn saturated<'a>(facts: impl Iterator<Item = &'a Fact>) -> Option<&'a Fact> {
    let mut facts: Vec<&Fact> = facts.filter(|fact| fact.conditions.load.is_none()).collect();
    facts.sort_by_key(|fact| (fact.source, fact.conditions.threads, Reverse(fact.at)));
    facts.dedup_by_key(|fact| (fact.source, fact.conditions.threads));
    let source = facts.first()?.source;
    let trusted = facts.into_iter().take_while(|fact| fact.source == source);
    // Of equal figures the one of fewest threads.
    trusted.reduce(|best, fact| if fact.value > best.value { fact } else { best })
}
