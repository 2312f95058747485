//! Programs started under a placement: one, or one for each node or domain.
//!
//! Affinity and memory policy belong to a thread and are inherited over fork and exec. So a thread of
//! Atoll asks the kernel for both and then becomes the program ([`replace`]) or starts it
//! ([`supervise`]); nothing is done to a program that runs.
//!
//! | Step | Where |
//! |---|---|
//! | what is asked for: strategy or numactl's flags, and how many instances | [`LaunchRequest`] |
//! | what that means on a machine: cpus and policy of each instance | [`LaunchPlan`] |
//! | what stands in its way, found before or met on the way | [`Obstacle`], [`probe`] |
//! | the calls, behind a trait that tests answer | [`PlacementCalls`], [`LiveCalls`] |
//! | the program of an instance, `{i}` and the like filled in | [`Program`] |
//! | started, watched, stopped together | [`supervise`], [`LaunchOutcome`] |
//! | where its pages were meanwhile, and what the machine counted | [`Sampled`], [`MachineCounters`] |

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
