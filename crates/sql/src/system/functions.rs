//! `atoll.functions`: the callable functions, from their own documentation.

use super::column::ColumnSpecs;
use super::{SystemTable, now};
use crate::pg_catalog::{FunctionRow, listed_functions};

/// One row per function, ordered by name.
pub(super) fn functions() -> SystemTable {
    ColumnSpecs::<FunctionRow>::new()
        .column("name", |row| row.name.clone())
        .column("kind", |row| row.kind)
        .column("arguments", |row| row.arguments.clone())
        .column("description", |row| row.description.clone())
        .column("example", |row| row.example.clone())
        .column("aliases", |row| row.aliases.clone())
        .table("functions", |session| now(listed_functions(session)))
}
