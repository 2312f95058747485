//! The knowledge base: a [`Machine`] and the [`Fact`]s known of it, each with its source and age.
//!
//! | File | Owns |
//! |---|---|
//! | `structure` | what the machine itself tells, as facts |
//! | `ask` | the most trusted figure on a subject |
//! | `matrix` | a figure for every pair of nodes |
//! | `routes`, `links` | ways between nodes over the interconnect |
//! | `costs`, `nearest`, `best_cores` | questions of applications: where to compute on these data |
//! | `live` | what discovery tells of the machine that this process runs on |
//! | `fingerprint` | which machine measured facts belong to |
//! | `age` | ages for people |
//!
//! Applications ask and decide; nothing here decides for them.

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
