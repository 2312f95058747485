//! Aggregates that need all values of a group at once: `mode`, `quantile_disc`, `histogram`, `max(x, n)`.
//!
//! | file | what |
//! |---|---|
//! | `function` | an aggregate as an entry of a table, and DataFusion's function made of it |
//! | `rows` | the rows of all groups, in the order in which they came |
//! | `groups` | the rows of each group side by side, out of which results are made |
//! | `picks` | results that are values of the group: mode, the n largest, the value at the largest other |
//! | `quantiles` | quantiles and the median: a value of the group, or what lies between two |
//! | `figures` | results that are numbers: entropy, the median of distances; and the histogram |
//!
//! The rows count as memory of the query as they come, so that they spill like those of any aggregation.

mod figures;
mod function;
mod groups;
mod picks;
mod quantiles;
mod rows;

pub(super) use function::{Gathered, GatheredEntry};

/// All of them.
pub(super) fn entries() -> impl Iterator<Item = &'static GatheredEntry> {
    [picks::ENTRIES, quantiles::ENTRIES, figures::ENTRIES].into_iter().flatten()
}
