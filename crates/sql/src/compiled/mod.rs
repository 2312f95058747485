//! What a statement that is compiled once needs to run with other values: its parameters and its select list. Point
//! statements and shared scans are compiled from it.

mod parameters;
mod select_list;

pub(crate) use parameters::{Parameters, has_unknown_types, one_row};
pub(crate) use select_list::{inlined, projected, select_list};
