//! Aggregates that respect the ORDER BY of their call.

pub(crate) mod any_value;
pub(crate) mod array_agg;
mod sorted;
pub(crate) mod string_agg;
