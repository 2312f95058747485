//! The knowledge base: a [`Machine`] and its [`Fact`]s, each with source and age.
//!
//! | File | Owns |
//! |---|---|
//! | `structure` | the facts of the machine's structure |
//! | `ask` | the most trusted figure about a subject |
//! | `matrix` | a figure for every pair of nodes |
//! | `routes`, `links` | routes between nodes over the interconnect |
//! | `costs`, `nearest`, `best_cores` | queries of applications: where to compute on these data |
//! | `live` | discovery of the machine that this process runs on |
//! | `fingerprint` | which machine measured facts belong to |
//! | `age` | ages as text |
//!
//! Applications query and decide; nothing here decides for them.

mod age;
mod ask;
mod best_cores;
mod costs;
mod fingerprint;
mod links;
mod live;
mod matrix;
mod merge;
mod nearest;
mod routes;
mod structure;

pub use age::{Age, rfc3339};
pub use best_cores::BestCores;
pub use costs::{CostBasis, QuestionError};
pub use fingerprint::Fingerprint;
pub use links::{LINKS_ASSUMED_NODES_MAX, links_assumed};
pub use matrix::Matrix;
pub use nearest::Nearest;
pub use routes::Route;

use crate::{Fact, Machine};

/// A machine and the facts about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Knowledge {
    /// The structure.
    pub machine: Machine,
    /// Facts, in no particular order.
    pub facts: Vec<Fact>,
}

impl Knowledge {
    /// A machine without facts beyond its structure.
    pub fn from_machine(machine: Machine) -> Self {
        Self { machine, facts: Vec::new() }
    }
}
