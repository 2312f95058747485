//! The only `unsafe` code: loops without bounds checks, streaming stores and prefetches, each with a safe interface.

pub(crate) mod arrays;
pub(crate) mod copy;
pub(crate) mod direct;
pub(crate) mod fan_out;
pub(crate) mod groups;
pub(crate) mod pieces;
pub(crate) mod placed_vec;
pub(crate) mod scatter;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod words;
