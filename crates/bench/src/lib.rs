//! Benchmarks: Atoll against other engines, paired in one run, with the conditions of every number.
//!
//! This crate owns the scenarios, the rival engines and the reports. It is a crate of its own so
//! that a rival never becomes a dependency of the product. [`tpch`] compares whole queries, each
//! engine in a process of its own ([`worker`]); [`differential`] compares the answers of random ones;
//! [`runtime`] compares the pools with plain tokio.

pub mod cache;
mod compare;
pub mod differential;
mod manifest;
mod memory;
mod process;
mod python;
pub mod runtime;
mod scan;
mod spread;
pub mod tpch;
pub mod worker;

pub use manifest::Manifest;
pub use scan::Bandwidth;
pub use spread::Spread;
