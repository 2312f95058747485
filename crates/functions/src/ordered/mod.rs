//! Aggregates that respect the ORDER BY of their call.

pub(crate) mod any_value;
pub(crate) mod array_agg;
pub(crate) mod string_agg;
