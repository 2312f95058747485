//! The elastic mechanism on machines and systems that are not there, and on threads of this one.

mod affinity;
mod decide;
mod fake;
mod journal;
mod mode;
mod net;
mod session;
mod share;
