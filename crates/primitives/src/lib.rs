//! Data-management primitives: partition, shuffle, sort, join and aggregate over columns that have a
//! home, tuned for each machine and used by every engine, as BLAS is for linear algebra (Li, Pandis,
//! Mueller, Raman, Lohman: "NUMA-aware algorithms: the case of data shuffling", CIDR 2013).
//!
//! A primitive takes a [`Context`] (workers, memory, budget, cancel token, [`Tuning`]) and each node's input as
//! [`Part`]s, Arrow batches that are read in place. It allocates from the context's arena, charged to its budget;
//! exceeding it is an error, and the input stays unchanged.
//!
//! It is a separate crate because engines use it without SQL, and because the fast loops need `unsafe`, which is
//! confined to `kernel`.

pub mod aggregate;
mod context;
mod error;
pub mod hash;
pub mod join;
mod kernel;
mod part;
pub mod partition;
pub mod shuffle;
pub mod sort;
mod tuning;
mod work;

pub use context::{Context, TaskFn};
pub use error::PrimitiveError;
pub use kernel::arrays::{place_arrays, trimmed_data};
pub use part::Part;
pub use tuning::Tuning;
