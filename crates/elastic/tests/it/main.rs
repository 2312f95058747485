//! The elastic mechanism on machines and systems that are not there, and on threads of this one.

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
