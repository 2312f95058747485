//! Workers that stay on their node, and the steps that run on them.
//!
//! A [`Runtime`] has one [`Pool`] per node with cpus; a pool has one [`WorkerGroup`] per domain; a group
//! is one tokio runtime whose threads are bound to the domain's cpus before their first allocation.
//! Work is sent to where its data is: a pipeline with [`Runtime::spawn_on`], bulk work as the tasks
//! of a [`Step`], each addressed to a node or a worker. Inside a node tasks may be stolen, own
//! domain first; across nodes only when asked ([`Steal`]). A step reports its time and the bytes it
//! read by (reader's node, home node), as counted by the code that moves them.
//!
//! Invariants: a task runs at most once; a step returns after its last task has ended; no worker
//! waits on a barrier, because the join of a step is the barrier; the binding of a [`Worker`] is
//! read back from the kernel. States and races are described in [`protocol`].
//!
//! ```
//! use std::sync::Arc;
//! use atoll_placement::LiveKernel;
//! use atoll_runtime::{Cancelled, Runtime, RuntimeOptions, Task, TaskContext};
//! use atoll_topology::{Bytes, Machine};
//!
//! let machine = Arc::new(Machine::discover()?);
//! let kernel = Arc::new(LiveKernel::new());
//! let runtime = Runtime::start(machine, kernel, RuntimeOptions::default())?;
//! let tasks = runtime.pools().iter().map(|pool| {
//!     let home = pool.node();
//!     Task::on_node(home, async move |context: TaskContext| {
//!         let block = vec![1u64; 1000];
//!         context.check()?;
//!         context.count_read(home, Bytes(8 * 1000));
//!         Ok::<u64, Cancelled>(block.iter().sum())
//!     })
//! });
//! let outcome = runtime.block_on(runtime.step("sum", tasks.collect()).run());
//! assert!(outcome.result?.into_iter().all(|sum| sum == 1000));
//! assert_eq!(outcome.report.bytes.remote(), Bytes(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This is a crate of its own because it is the one place that starts threads and that ties tokio
//! to nodes: primitives, store and SQL above it name nodes and workers, never threads.

mod bytes;
mod cancel;
mod error;
mod group;
mod layout;
mod options;
mod pool;
mod reach;
mod runtime;
mod seat;
mod step;
mod worker;

#[doc = include_str!("README.md")]
pub mod protocol {}

pub use bytes::{ByteCounters, ByteMatrix};
pub use cancel::{CancelOnDrop, CancelToken, Cancelled};
pub use error::RuntimeError;
pub use group::WorkerGroup;
pub use options::{Pin, RuntimeOptions, THREADS_MAX};
pub use pool::Pool;
pub use runtime::Runtime;
pub use step::{
    Coordination, Sequence, SequenceOutcome, Steal, Step, StepError, StepOutcome, StepReport, Task,
    TaskContext,
};
pub use worker::{Binding, Worker, WorkerId};
