//! Aggregates that need all values of a group at once: `mode`, `quantile_disc`, `histogram`, `max(x, n)`.
//!
//! | file | contents |
//! |---|---|
//! | `function` | an aggregate as a table entry, and its conversion to a DataFusion function |
//! | `one_group` | an accumulator of one group over that of many |
//! | `rows` | the rows of all groups, in their original order |
//! | `groups` | the rows of each group side by side, from which results are computed |
//! | `picks` | results that are values of the group: mode, the n largest, and the value at another one's maximum |
//! | `quantiles` | quantiles and the median: a value of the group, or an interpolation |
//! | `figures` | numeric results: entropy, median absolute deviation; and the histogram |
//!
//! The query's memory accounting includes the rows, so they spill like those of any aggregation.

mod figures;
mod function;
mod groups;
mod one_group;
mod picks;
mod quantiles;
mod rows;

pub(super) use function::{Gathered, GatheredEntry};
pub(crate) use one_group::{OneGroup, RowGroups};
pub(crate) use rows::{Arranged, GroupRows, kept};

/// All of them.
pub(super) fn entries() -> impl Iterator<Item = &'static GatheredEntry> {
    [picks::ENTRIES, quantiles::ENTRIES, figures::ENTRIES].into_iter().flatten()
}
