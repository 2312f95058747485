//! NUMA-aware operators for DataFusion, with the rules that plan them: scans of placed tables, exchanges that keep work
//! at its home, aggregates by the primitives, corrected joins, and memory accounting.
//!
//! It is a separate crate so that the operators work with any DataFusion session; start at
//! [`rules::physical_rules`].

pub mod admission;
pub mod exchange;
pub mod group;
pub mod join;
pub mod lab;
pub mod memory;
pub mod rules;
pub mod sample;
pub mod scan;
pub mod trace;
pub mod watch;
pub mod window;
