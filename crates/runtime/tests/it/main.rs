//! The runtime on machines of 1 to 8 nodes, none of which is the one the tests run on, except in
//! `live`.
//!
//! - `start`: which workers a machine and options make, and that what became of each binding is
//!   what the kernel said, not what was asked.
//! - `spawn`: a future stays on the node it was sent to; dropping a runtime never waits or panics.
//! - `steps`: every task runs once, where it was sent or as near as it may be stolen, and its bytes
//!   land in the right cell.
//! - `failures`: panics, errors and cancels, at every moment; all tasks are joined before a step
//!   returns.
//! - `sequences`: what tight and loose promise.
//! - `confine`: workers that are left only some of their cpus, while they work.
//! - `live`: the affinity of the worker threads according to procfs.

mod confine;
mod failures;
mod live;
mod sequences;
mod spawn;
mod start;
mod steps;
mod support;
