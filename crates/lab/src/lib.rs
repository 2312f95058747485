//! The lab: emulated NUMA machines with a real Linux kernel. Describe, boot, run, collect.
//!
//! A [`Guest`] is a machine cut to what a laptop emulates. [`run`] packs a program with its libraries
//! and files, boots the guest in QEMU without hardware acceleration, runs the program as root,
//! forwards its output and returns its exit code and the counts of the plugin. Nothing
//! remains: no process, no file.
//!
//! It is a separate crate because all it knows of QEMU, of kernels and of archives is of no
//! concern to any other.

#![forbid(unsafe_code)]

mod boot;
mod describe;
mod error;
mod flows;
pub mod guest;
mod installation;
mod pack;
pub mod record;
mod request;
pub mod setup;
pub mod view;

pub use boot::run;
pub use describe::{DescribeError, Guest, GuestShape};
pub use error::LabError;
pub use flows::flows;
pub use installation::{Installation, MissingTool, data_directory};
pub use request::{RunOutcome, RunRequest, Streams};
