//! Sorting: runs of rows by a 64-bit word ([`sort_rows`]), and whole inputs by a column ([`sort`]).
//!
//! Values of a column are sorted as words whose unsigned order is that of the values (`order.rs`). A whole input is
//! partitioned into ranges by splitters from a sample; one worker sorts each range into a [`SortedRun`] on its node, so
//! that nothing has to be merged.

mod order;
mod parallel;
mod rows;
mod run;
mod splitters;

pub use order::{SortBy, float_word, integer_word};
pub use parallel::{Sorted, sort};
pub use rows::sort_rows;
pub use run::SortedRun;
pub(crate) use splitters::Splitters;
