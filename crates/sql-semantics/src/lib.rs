//! What makes DataFusion's answers those of SQL: arithmetic that is right or fails, canonical floats, types of literals,
//! time zones, volatile calls, and rewrites of logical plans that DataFusion refuses or answers wrongly.
//!
//! It is a crate of its own because it is about meaning alone: plans in, plans out, wherever their rows are.

pub mod arithmetic;
pub mod float;
pub mod rewrite;
pub mod sql_to_plan;
pub mod timezone;
pub mod type_resolution;
pub mod volatile;
