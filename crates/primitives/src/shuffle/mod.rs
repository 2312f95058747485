//! Shuffle: every worker gets its piece from every worker (Li et al. 2013, section 3).
//!
//! N workers hold N pieces each. A [`Shuffle`] has the [`Order`] of each worker's turns, what is [`Moved`] (the data,
//! or the threads to the data), and whether all wait for each other between steps ([`Coordination`]). A [`Schedule`] is
//! the shuffle on a machine: the [`Visit`] of each worker in each step. It is pure, so that it can be counted
//! ([`Wiring`]: readers at each memory controller and transfers over each link), simulated, and run ([`Schedule::run`])
//! with any closure for a visit: aggregation and the sort-merge join use it.
//!
//! Two shuffles are included: of 64-bit integers ([`Integers`], the paper's experiment) and of Arrow batches
//! ([`batches`]).
//!
//! ```
//! use std::sync::Arc;
//! use atoll_placement::{Arena, LiveKernel};
//! use atoll_primitives::Context;
//! use atoll_primitives::shuffle::{Coordination, Integers, Moved, Order, Schedule, Shuffle};
//! use atoll_runtime::{Runtime, RuntimeOptions};
//! use atoll_topology::Machine;
//!
//! let machine = Arc::new(Machine::discover()?);
//! let kernel = Arc::new(LiveKernel::new());
//! let options = RuntimeOptions { threads: Some(4), ..RuntimeOptions::default() };
//! let runtime = Runtime::start(machine.clone(), kernel.clone(), options)?;
//! let context = Context::new(runtime.clone(), Arena::new(machine, kernel, None));
//! let ring =
//!     Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Tight };
//! let schedule = Schedule::for_runtime(&runtime, ring);
//! let (means, report) = runtime.block_on(async {
//!     let integers = Integers::random(&context, 100_000, 7).await?;
//!     integers.means(&context, &schedule).await
//! })?;
//! assert_eq!((means.len(), report.steps.len()), (4, 4));
//! assert_eq!(report.bytes().total().0, 8 * 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batches;
mod integers;
mod order;
mod report;
mod run;
mod schedule;
mod wiring;

use std::fmt;

pub use atoll_runtime::Coordination;
pub use batches::batches;
pub use integers::{Inbox, Integers};
pub use order::Order;
pub use report::{ShuffleReport, Shuffled};
pub use schedule::{Schedule, Transfer, Visit};
pub use wiring::{LinkBound, LinkLoad, StepLoad, Wiring};

/// What crosses the machine in a shuffle (Li et al. 2013, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// The data: the recipient of a piece reads it in place.
    Pulled,
    /// The data: the holder of a piece writes it into the recipient's memory.
    Pushed,
    /// The threads: the recipient of a piece moves to it. Its state stays in place unless the visit copies it.
    Threads,
}

/// A shuffle: order, what moves, and coordination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// The order of each worker's turns.
    pub order: Order,
    /// What crosses the machine.
    pub moved: Moved,
    /// Whether the workers wait for each other between steps.
    pub coordination: Coordination,
}

impl Moved {
    /// All shuffles.
    pub const ALL: [Self; 3] = [Self::Pulled, Self::Pushed, Self::Threads];

    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pulled => "pulled",
            Self::Pushed => "pushed",
            Self::Threads => "threads",
        }
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Shuffle {
    /// `ring, pulled, tight`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coordination = match self.coordination {
            Coordination::Tight => "tight",
            Coordination::Loose => "loose",
        };
        f.pad(&format!("{}, {}, {coordination}", self.order.name(), self.moved))
    }
}
