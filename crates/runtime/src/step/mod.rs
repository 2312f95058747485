//! Steps: sets of tasks run to completion, whose join is the barrier.
//!
//! `task` is a unit of work and its context, `address` assigns tasks to groups,
//! `queues` holds waiting jobs, `steal` decides who may take them, `batch` runs tasks to their join, `report` and
//! `error` are the results, `single` and `sequence` are the caller's interface.

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
