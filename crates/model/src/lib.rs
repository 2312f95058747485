//! Cost model: estimates time from the facts about a machine and the traffic on it.
//!
//! [`Costs`] are the time of each event (a line from memory, a hit in a cache, an instruction) and the bandwidth of
//! each controller and link, from the facts of a [`Knowledge`](atoll_topology::Knowledge) or else from [`Assumptions`].
//! [`Estimate`] multiplies them with [`Flows`], the counts of a run.
//!
//! The model is deliberately simple enough to check by hand:
//!
//! - The cpus of a node share its work evenly; nodes, controllers and links work in parallel.
//! - A cpu computes and waits for lines. With k accesses in flight each waits 1/k of its latency; k is 1 if each
//!   address depends on the previous load ([`Estimate::dependent`]).
//! - The time of a controller or link is its bytes divided by its bandwidth; reads and writes count equally.
//! - The run takes at least the time of the busiest resource alone, and at most that of the slowest node
//!   plus the busiest controller or link: the asymptotic bounds of a closed
//!   queueing network (Lazowska, Zahorjan, Graham, Sevcik: "Quantitative system performance", 1984,
//!   chapter 5).
//!
//! Where many threads share controllers and links at once, [`simulate`] divides their bandwidth among
//! them moment by moment.
//!
//! It ignores prefetching, queueing and lock waits.
//!
//! It is a separate crate because experiments, the lab and planners all use it, and none of them may depend on how the
//! counts were obtained.

#![forbid(unsafe_code)]

mod assumptions;
mod bandwidths;
mod costs;
mod estimate;
mod figures;
mod flows;
mod latencies;
pub mod simulate;

pub use assumptions::{Assumption, AssumptionError, Assumptions};
pub use costs::Costs;
pub use estimate::{
    ControllerTime, Estimate, LinkTime, NodeTime, PerAccess, Resource, TimeBounds, Waits,
};
pub use figures::Figure;
pub use flows::{ControllerFlow, Flows, FlowsError, LinkFlow, NodeFlow};
