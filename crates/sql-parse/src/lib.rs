//! From the text of one statement to the syntax tree that DataFusion's planner is given: splitting, parsing in the
//! session's dialect, and the forms of other SQL dialects as what DataFusion knows.
//!
//! It is a crate of its own because nothing of it knows of sessions, tables or operators.

pub mod dialect;
pub mod parse;
pub mod syntax;
