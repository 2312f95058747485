//! The commands as a user runs them, through the `atoll-tools` binary.

mod postgres;
mod run;
mod support;
mod topo;
mod whereabouts;
