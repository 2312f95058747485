//! Cost model: from what is known of a machine and the traffic on it to time.
//!
//! [`Costs`] are what one event takes (a line from memory, a hit in a cache, an instruction) and what
//! each controller and link carries, out of the facts of a
//! [`Knowledge`](atoll_topology::Knowledge) and, where there is none, out of [`Assumptions`].
//! [`Estimate`] multiplies them with [`Flows`], the counts of a run.
//!
//! The model is deliberately one that can be checked by hand:
//!
//! - The cpus of a node share its work evenly; nodes, controllers and links work side by side.
//! - A cpu computes, and beside that waits for lines. With k accesses in flight each waits 1/k of its
//!   latency; k is 1 where each address depends on the load before ([`Estimate::dependent`]).
//! - A controller or link takes the time in which its bytes pass at its bandwidth; bytes read and
//!   written count alike.
//! - The run takes no less than the busiest of all takes alone, and no more than the slowest node and
//!   then the busiest controller or link one after the other: the asymptotic bounds of a closed
//!   queueing network (Lazowska, Zahorjan, Graham, Sevcik: "Quantitative system performance", 1984,
//!   chapter 5).
//!
//! Where many threads share controllers and links at once, [`simulate`] divides their bandwidth among
//! them moment by moment.
//!
//! It knows nothing of prefetching, of queues within a bound, and of waiting for locks.
//!
//! It is a crate of its own because experiments, the lab and planners ask it alike, and none of them
//! may depend on how the counts came about.

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
