//! Programs started under a placement: one, or one for each node or domain.
//!
//! Affinity and memory policy belong to a thread and are inherited over fork and exec. So a thread of
//! Atoll asks the kernel for both and then becomes the program ([`replace`]) or starts it
//! ([`supervise`]); running programs are not changed.
//!
//! | Step | Where |
//! |---|---|
//! | the request: strategy or numactl's flags, and number of instances | [`LaunchRequest`] |
//! | the plan on a machine: cpus and policy of each instance | [`LaunchPlan`] |
//! | obstacles, found before or during the start | [`Obstacle`], [`probe`] |
//! | the system calls, as a trait that tests implement | [`PlacementCalls`], [`LiveCalls`] |
//! | the program of an instance, with `{i}` and other placeholders replaced | [`Program`] |
//! | started, watched, stopped together | [`supervise`], [`LaunchOutcome`] |
//! | where its pages were, and the machine's counters | [`Sampled`], [`MachineCounters`] |

mod calls;
mod counters;
mod error;
mod obstacle;
mod output;
mod plan;
mod plan_error;
mod policy;
mod program;
mod request;
mod sample;
mod seats;
mod start;
mod supervise;

pub use calls::{LiveCalls, PlacementCalls, apply, probe};
pub use counters::MachineCounters;
pub use error::LaunchError;
pub use obstacle::{Obstacle, ObstacleCause};
pub use output::{OutputSink, SharedWrite};
pub use plan::{InstancePlan, LaunchPlan};
pub use plan_error::LaunchPlanError;
pub use policy::{MemoryPolicy, mode_name};
pub use program::{Program, replace};
pub use request::{INSTANCES_MAX, Instances, InstancesError, LaunchRequest, MemoryFlag};
pub use sample::{NodePages, Sampled};
pub use supervise::{InstanceOutcome, LaunchOutcome, Supervision, supervise};
