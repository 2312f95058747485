//! What tests share: machines that are not there and a kernel that places memory and threads on them.
//!
//! It is a crate of its own because several crates test with it and none ships it: it appears among
//! dev-dependencies only.

pub mod data;
pub mod kernel;
pub mod machines;
pub mod reference;
