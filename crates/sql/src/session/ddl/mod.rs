//! Definition statements: tables, views, sequences, macros, rights and roles.

pub(super) mod alter;
pub(super) mod column_notes;
pub(super) mod comments;
pub(super) mod create;
pub(super) mod declared_table;
pub(super) mod drop;
pub(super) mod foreign_key;
pub(super) mod index;
pub(super) mod like;
pub(super) mod macros;
pub(super) mod materialized;
pub(super) mod rights;
pub(super) mod roles;
pub(super) mod routines;
pub(super) mod sequence;
pub(super) mod statement_reads;
pub(super) mod table_definition;
pub(super) mod temporary;
pub(super) mod types;
mod view_dependents;
pub(super) mod view_text;
pub(super) mod views;
