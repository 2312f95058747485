//! Comparisons: of row values, with list elements, and of sort keys with offsets.

pub(crate) mod quantified;
pub(crate) mod range_key;
pub(crate) mod rows;
