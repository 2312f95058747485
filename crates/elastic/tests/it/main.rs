//! The elastic mechanism on fake machines and systems, and on threads of this one.

mod affinity;
mod decide;
mod fake;
mod group;
mod journal;
mod knob;
mod mode;
mod mover;
mod net;
mod session;
mod share;
