//! SQL semantics on top of DataFusion: exact or failing arithmetic, canonical floats, literal types,
//! time zones, volatile calls, and rewrites of logical plans that DataFusion rejects or answers wrongly.
//!
//! A separate crate because it only transforms plans, independent of where their rows are stored.

pub mod arithmetic;
pub mod domains;
pub mod enums;
pub mod float;
mod marks;
pub mod rewrite;
pub mod sql_to_plan;
pub mod timezone;
pub mod type_resolution;
pub mod volatile;
pub mod zoned_ranges;
