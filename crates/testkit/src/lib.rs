//! Shared test support: fake machines, a simulated kernel that places memory and threads on them, skipped tests,
//! results of programs and their signals, a checker of transaction histories, and random calls of functions.
//!
//! It is a separate crate because several crates test with it and none ships it: it appears in dev-dependencies only.

pub mod calls;
pub mod data;
pub mod generated;
pub mod guests;
pub mod history;
pub mod kernel;
pub mod machines;
mod ports;
mod ran;
pub mod reference;
mod signals;
pub mod skip;
mod svg;
pub mod tree;

pub use ports::lasting_address;
pub use ran::{Ran, program_in, run_with, without_settings};
pub use signals::default_signals;
pub use skip::{Need, skip};
pub use svg::svg_texts;
