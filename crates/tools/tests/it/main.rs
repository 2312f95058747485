//! The commands as a user runs them, through the `atoll-tools` binary.

mod bench;
mod lab;
mod postgres;
mod report;
mod run;
mod support;
mod topo;
mod whereabouts;
