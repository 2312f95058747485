//! The libraries that make up the `atoll` binary, under one name.
//!
//! [`topology`] describes the machine, [`placement`] puts memory and threads on its nodes, [`runtime`] keeps one pool
//! of workers on each, [`sql`] answers queries over tables that have a home. This package has only the command line, so
//! that the libraries know neither terminals nor flags.

#![forbid(unsafe_code)]

pub use atoll_placement as placement;
pub use atoll_runtime as runtime;
pub use atoll_sql as sql;
pub use atoll_topology as topology;
