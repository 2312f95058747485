//! Comparisons: of row values, with the elements of lists, and of sort keys with offsets.

pub(crate) mod quantified;
pub(crate) mod range_key;
pub(crate) mod rows;
