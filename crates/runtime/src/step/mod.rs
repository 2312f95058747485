//! Steps: sets of tasks run to completion, whose join is the barrier.
//!
//! `task` is what runs and what it is told, `address` turns where a task wants to go into a group,
//! `queues` holds what waits, `steal` says who may take it, `batch` runs tasks to their join, `report` and
//! `error` are what comes back, `single` and `sequence` are what a caller holds.

mod address;
mod batch;
mod error;
mod queues;
mod report;
mod sequence;
mod single;
mod steal;
mod task;

pub use error::StepError;
pub use report::StepReport;
pub use sequence::{Coordination, Sequence, SequenceOutcome};
pub use single::{Step, StepOutcome};
pub use steal::Steal;
pub use task::{Task, TaskContext};
