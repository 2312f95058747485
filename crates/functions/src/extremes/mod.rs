//! `min` and `max` in the order of SQL, and aggregates of intervals.

pub(crate) mod intervals;
pub(crate) mod nested;
pub(crate) mod ordered;
