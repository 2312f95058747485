//! The C interface, `include/atoll.h`: the primitives over columns that lie in another program's memory,
//! as BLAS has a plain interface for every language.
//!
//! Each function is described in the header. What it does here is the same for all: check every argument,
//! put Arrow arrays over the caller's memory without copying ([`column`]), wait for the primitive, and
//! turn errors and panics into codes ([`failure`]). Nothing of the caller's memory is kept: a primitive
//! returns after its last task has ended, and results are built in memory of their own.
//!
//! It is a crate of its own because it is a library for C programs, and because every pointer it is given
//! has to be trusted: `unsafe` is everywhere here, and only here.

mod aggregate;
mod column;
mod context;
mod failure;
mod foreign;
mod join;
mod part;
mod partition;
mod result;
mod shuffle;
mod sort;

pub use aggregate::{Aggregation, Function, atoll_aggregate, atoll_aggregate_sum_i64};
pub use column::Column;
pub use context::{
    Context, atoll_cancel, atoll_close, atoll_memory_used, atoll_open, atoll_set_memory_limit,
    atoll_threads,
};
pub use failure::{Code, atoll_error};
pub use join::{BlockFn, Side, atoll_join, atoll_join_blocks};
pub use part::RowsPart;
pub use partition::{atoll_partition_u64, atoll_piece_u64};
pub use result::{
    Rows, atoll_free_result, atoll_result_blocks, atoll_result_column, atoll_result_columns,
    atoll_result_reason, atoll_result_rows,
};
pub use shuffle::atoll_shuffle;
pub use sort::{atoll_sort_f64, atoll_sort_i64, atoll_sort_u64};

/// The page for engineers of other engines, whose examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/primitives.md")]
mod page {}
