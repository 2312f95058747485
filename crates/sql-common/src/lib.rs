//! What all crates of the SQL engine use: errors with their SQLSTATEs, the settings of a session, what schemas are called
//! and what a name means, PostgreSQL's types, and what operators of our own have in common.
//!
//! It is a crate of its own so that parser, rules of meaning, operators and files are compiled side by side.

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
