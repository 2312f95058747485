//! Atoll as libraries, under one name: what the `atoll` binary is made of.
//!
//! [`topology`] knows the machine, [`placement`] puts memory and threads on its nodes, [`runtime`]
//! keeps one pool of workers on each, [`sql`] answers queries over tables that have a home. This
//! package owns nothing but the command line; it is a crate of its own so that the libraries know
//! neither terminals nor flags.

#![forbid(unsafe_code)]

pub use atoll_placement as placement;
pub use atoll_runtime as runtime;
pub use atoll_sql as sql;
pub use atoll_topology as topology;
