//! `min` and `max` in SQL's order, and aggregates of intervals.

pub(crate) mod intervals;
pub(crate) mod nested;
pub(crate) mod ordered;
mod texts;
