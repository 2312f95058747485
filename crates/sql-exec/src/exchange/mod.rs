//! Keeps work where its data is, even across exchanges.
//!
//! Partition i of every operator runs on worker i modulo the number of workers; the node of that
//! worker is the partition's *home*. tokio would lose it wherever one task polls several
//! partitions, because what is spawned goes to the spawner's runtime. So, on a machine with more
//! than one pool,
//!
//! - [`ExchangeExec`](exec::ExchangeExec) replaces DataFusion's `RepartitionExec`: each input partition is
//!   polled and split at its own home, and only the split rows travel;
//! - [`HomeExec`](home::HomeExec) is placed under every other operator that gathers partitions, and on top of the plan;
//! - [`PlaceOnHomes`] is the optimizer rule that plans both.
//!
//! On a machine with one pool none of them is planned.

mod bytes;
mod exec;
#[cfg(test)]
mod exec_tests;
mod feed;
mod gate;
#[cfg(test)]
mod gate_tests;
mod home;
mod homes;
mod outlet;
mod producer;
mod progress;
mod rule;
#[cfg(test)]
mod rule_tests;
mod run;
mod split;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use homes::{PartitionHomes, home_of, worker_of};
pub(crate) use rule::PlaceOnHomes;
