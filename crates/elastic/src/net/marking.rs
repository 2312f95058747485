//! The tokens on all places of a net.

use std::collections::BTreeSet;

/// A token: the values of its fields.
pub type Token = Vec<i64>;

/// The tokens of each place. A place holds each token once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Marking {
    places: Vec<BTreeSet<Token>>,
}

impl Marking {
    /// An empty marking of this many places.
    pub fn empty(places: usize) -> Self {
        Self { places: vec![BTreeSet::new(); places] }
    }

    /// The tokens of a place, ordered; empty for an unknown place.
    pub fn tokens(&self, place: usize) -> impl Iterator<Item = &Token> {
        self.places.get(place).into_iter().flatten()
    }

    /// The number of tokens of a place.
    pub fn count(&self, place: usize) -> usize {
        self.places.get(place).map_or(0, BTreeSet::len)
    }

    /// Adds a token.
    pub fn put(&mut self, place: usize, token: Token) {
        if let Some(tokens) = self.places.get_mut(place) {
            tokens.insert(token);
        }
    }

    /// Removes a token; returns whether it was there.
    pub fn take(&mut self, place: usize, token: &[i64]) -> bool {
        self.places.get_mut(place).is_some_and(|tokens| tokens.remove(token))
    }
}
