//! What tests share: machines that are not there, a kernel that places memory and threads on them, the
//! word for a test that cannot run here, programs that take signals by default and what they did, a checker of what
//! sessions saw of each other, and random calls of functions.
//!
//! It is a crate of its own because several crates test with it and none ships it: it appears among
//! dev-dependencies only.

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
pub use ran::{Ran, without_settings};
pub use signals::default_signals;
pub use skip::{Need, skip};
pub use svg::svg_texts;
