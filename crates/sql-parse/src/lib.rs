//! Turns the text of one statement into the syntax tree for DataFusion's planner: splits it, parses it in the
//! session's dialect, and rewrites forms of other SQL dialects as those that DataFusion supports.
//!
//! It is a separate crate because it does not depend on sessions, tables or operators.

pub mod dialect;
pub mod parse;
pub mod syntax;
