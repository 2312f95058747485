//! Flow-level simulation: threads that read and write memory over a declared interconnect, step by
//! step, and the time that takes.
//!
//! Bytes flow like water: at any moment all threads share the memory controllers, both directions of
//! each link and the cores max-min fairly ([`Interconnect::run`]), and nothing changes until one of
//! them is through with its [`Work`]. A thread has as many lines in flight as its core has buffers,
//! each for the latency of the path. Coherence takes its part of the links ([`Protocol`]): under
//! source snooping every line that is read or written, local or remote, sends a snoop to each other
//! node and draws a reply from each to the home (Li et al. 2013, sections 2 and 4.1.1).
//!
//! What no data sheet tells (bytes of a header, of a snoop and its reply, what is lost where flows of
//! several nodes meet) is fitted by [`calibrate`] to what was measured of single flows and of all
//! nodes at once; no figure of what is then predicted goes into it.
//!
//! It knows nothing of shuffles: the owner of a schedule turns it into work.

mod calibrate;
mod error;
mod interconnect;
mod run;
mod share;
mod state;

pub use calibrate::{Observed, calibrate};
pub use error::SimulationError;
pub use interconnect::{Access, AccessKind, Interconnect, Protocol, Work};
pub use run::{SimulationOutcome, Waiting};
pub use state::{StateCosts, ThreadState};
