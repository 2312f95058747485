//! The knowledge base: a [`Machine`] and the [`Fact`]s known of it, each with its source and age.

mod fact;

pub use fact::{Conditions, Fact, Quantity, Spread, Subject};

use crate::Machine;

/// A machine and what is known of it beyond its structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Knowledge {
    /// The structure.
    pub machine: Machine,
    /// Figures, in no order.
    pub facts: Vec<Fact>,
}

impl Knowledge {
    /// A machine of which nothing is known beyond its structure.
    pub fn of(machine: Machine) -> Self {
        Self { machine, facts: Vec::new() }
    }
}
