//! Statements that write or lock rows.

pub(super) mod change;
mod inferred_key;
pub(super) mod insert;
pub(super) mod insert_values;
pub(super) mod locking;
pub(super) mod locking_subqueries;
pub(super) mod merge;
mod merge_clause;
pub(super) mod refused_values;
pub(super) mod returning;
pub(super) mod row_assignment;
pub(super) mod unread_columns;
pub(super) mod write;
pub(super) mod write_rules;
