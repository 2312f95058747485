//! The SQL engine as a user meets it.
//!
//! - `tpch`: all 22 queries give the committed answers (made with another engine), under every
//!   strategy and on machines of several shapes.
//! - `logic`: the sqllogictest suite, on one node and on uneven nodes.

mod common;
mod logic;
mod tpch;
