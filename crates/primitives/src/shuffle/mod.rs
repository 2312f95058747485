//! Shuffle: every worker gets from every worker the piece that is meant for it (Li et al. 2013,
//! section 3).
//!
//! N workers hold N pieces each. A [`Shuffle`] says in which [`Order`] each worker takes its turns,
//! what is [`Moved`] (the data, or the threads to the data), and whether all wait for one another
//! between the steps ([`Coordination`]). A [`Schedule`] is the shuffle on a machine: for each worker
//! and step the [`Visit`] to be made. It is pure, so that it can be counted ([`Wiring`]: readers at
//! each memory controller and transfers over each link), simulated, and run ([`Schedule::run`]) with
//! any closure for a visit: aggregation and the sort-merge join go through it.
//!
//! Two shuffles are ready made: of 64-bit integers ([`Integers`], the paper's experiment) and of
//! Arrow batches ([`batches`]).
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
//! let schedule = Schedule::of(&runtime, ring);
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
    /// The data: whom a piece is meant for reads it where it lies.
    Pulled,
    /// The data: who holds a piece writes it into the memory of whom it is meant for.
    Pushed,
    /// The threads: whom a piece is meant for goes on where it lies. Its state stays where it was
    /// allocated unless the visit copies it.
    Threads,
}

/// A shuffle: one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// In which order each worker takes its turns.
    pub order: Order,
    /// What crosses the machine.
    pub moved: Moved,
    /// Whether the workers wait for one another between the steps.
    pub coordination: Coordination,
}

impl Moved {
    /// All of them.
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
