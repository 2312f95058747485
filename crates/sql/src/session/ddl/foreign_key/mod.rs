//! FOREIGN KEY constraints: declaring, dropping and executing them. The store checks them.
//!
//! | file | what |
//! |---|---|
//! | `declare.rs` | foreign key declarations, and their stored form |
//! | `depend.rs` | tables and keys that are dropped while others refer to them; TRUNCATE |
//! | `plan.rs` | the rows that CASCADE, SET NULL and SET DEFAULT change |
//! | `set.rs` | SET CONSTRAINTS |
//! | `text.rs` | a foreign key as SQL |

mod declare;
mod depend;
mod plan;
mod set;

pub(in crate::session) use declare::DeclaredForeignKey;
pub(in crate::session) use depend::{ForeignKeys, WholeTruncate};
pub(in crate::session) use set::SetConstraints;
