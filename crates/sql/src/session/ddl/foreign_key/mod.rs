//! FOREIGN KEY constraints, as statements declare, drop and carry them out. What they demand is checked by the store.
//!
//! | file | what |
//! |---|---|
//! | `declare.rs` | what a statement declares, as the store keeps it |
//! | `depend.rs` | tables and keys that are dropped while others refer to them; TRUNCATE |
//! | `plan.rs` | what rows become that CASCADE, SET NULL and SET DEFAULT change |
//! | `set.rs` | SET CONSTRAINTS |
//! | `text.rs` | a foreign key as SQL |

mod declare;
mod depend;
mod plan;
mod set;

pub(in crate::session) use declare::DeclaredForeignKey;
pub(in crate::session) use depend::{ForeignKeys, WholeTruncate};
pub(in crate::session) use set::SetConstraints;
