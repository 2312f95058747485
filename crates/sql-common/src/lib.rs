//! Shared code of the SQL crates: errors with their SQLSTATEs, session settings, schema names and name resolution,
//! PostgreSQL's types, and helpers for operators.
//!
//! A separate crate, so that parser, semantic rules, operators and file readers compile in parallel.

pub mod error;
pub mod extensions;
pub mod functions;
pub mod logical;
pub mod names;
pub mod offload;
pub mod operator;
pub mod pg_type;
pub mod settings;
pub mod task;
pub mod user_type;
