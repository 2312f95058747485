//! Flow-level simulation: threads that read and write memory over a declared interconnect, step by
//! step, and the time that takes.
//!
//! This is a fluid model: at any moment all threads share the memory controllers, both directions of each link and the
//! cores max-min fairly ([`Interconnect::run`]), and the rates are constant until one of them completes its [`Work`]. A
//! thread has as many lines in flight as its core has buffers, each for the latency of the path. Coherence uses part of
//! the links ([`Protocol`]): with source snooping every line that is read or written, local or remote, sends a snoop to
//! each other node, and each replies to the home (Li et al. 2013, sections 2 and 4.1.1).
//!
//! What no data sheet contains (bytes of a header, of a snoop and its reply, the loss where flows of several nodes
//! meet) is fitted by [`calibrate`] to measurements of single flows and of all nodes at once; it uses none of the
//! predicted figures.
//!
//! It is independent of shuffles: the owner of a schedule converts it to work.

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
