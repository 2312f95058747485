//! Merges facts of several origins: newer facts replace older ones.

use std::collections::HashMap;

use crate::{Conditions, Fact, Knowledge, Quantity, Source, Subject};

/// The key of a fact. Loads compare by their bits: they come from one list of steps, so nearly equal ones are
/// different.
#[derive(PartialEq, Eq, Hash)]
struct FactKey {
    subject: Subject,
    quantity: Quantity,
    threads: Option<u32>,
    load: Option<u64>,
    source: Source,
    origin: String,
}

impl FactKey {
    fn from_fact(fact: &Fact) -> Self {
        let Conditions { threads, load } = fact.conditions;
        Self {
            subject: fact.subject,
            quantity: fact.quantity,
            threads,
            load: load.map(|load| (load + 0.0).to_bits()),
            source: fact.source,
            origin: fact.origin.clone(),
        }
    }
}

impl Knowledge {
    /// Adds facts. Of facts with the same subject, quantity, conditions, source and origin, only the newest is kept. A
    /// fact without a time is older than any with one; of two with the same time the one added later is kept.
    pub fn merge(&mut self, facts: impl IntoIterator<Item = Fact>) {
        let mut places: HashMap<FactKey, usize> = HashMap::new();
        for fact in std::mem::take(&mut self.facts).into_iter().chain(facts) {
            match places.get(&FactKey::from_fact(&fact)) {
                Some(&place) if self.facts[place].at <= fact.at => self.facts[place] = fact,
                Some(_) => {}
                None => {
                    places.insert(FactKey::from_fact(&fact), self.facts.len());
                    self.facts.push(fact);
                }
            }
        }
    }
}
