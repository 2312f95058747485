//! The database as one value: all names, tables and sequences in a [`DatabaseVersion`] that never changes,
//! and a [`DatabaseChange`] that makes the next one.
//!
//! | file | what |
//! |---|---|
//! | `catalog.rs` | names and what they stand for |
//! | `sequence.rs` | sequences of numbers |
//! | `version.rs` | all that a database holds at one moment |
//! | `change.rs` | what one transaction does |
//! | `apply.rs` | the version after a change |

mod apply;
mod catalog;
mod change;
mod sequence;
mod version;

pub use apply::ApplyError;
pub use catalog::{Relation, RelationName, StoredStatement};
pub use change::{CatalogChange, ChangeStep, DatabaseChange};
pub use sequence::{SequenceDefinition, SequenceState};
pub use version::{DatabaseContents, DatabaseVersion, StoreEnvironment};
