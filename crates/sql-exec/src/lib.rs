//! NUMA-aware operators for DataFusion, with the rules that plan them: scans of placed tables, exchanges that keep work at
//! its home, aggregates by the primitives, joins that are right, memory that is accounted for.
//!
//! It is a crate of its own for those who use the operators with a DataFusion of their own; [`rules::physical_rules`]
//! is where to begin.

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
