//! Lists, arrays, structs and maps.

pub(super) mod aggregated;
pub(super) mod arrays;
pub(super) mod elements;
pub(super) mod lists;
pub(super) mod structs;
