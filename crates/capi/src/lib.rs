//! The C interface, `include/atoll.h`: the primitives over columns in another program's memory, with a plain interface
//! for every language, like BLAS.
//!
//! The header describes each function. All functions validate every argument, wrap the caller's memory in Arrow arrays
//! without copying ([`column`]), wait for the primitive, and convert errors and panics to codes ([`failure`]). The
//! caller's memory is not kept: a primitive returns after its last task has ended, and results own their memory.
//!
//! It is a separate crate because it is a library for C programs, and to confine the `unsafe` code that trusts the
//! caller's pointers.

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
