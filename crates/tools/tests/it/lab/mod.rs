//! Real kernels on emulated machines: placement, and what `topo` and `where` say of it, against what
//! the kernel says in sysfs and procfs.
//!
//! Scripts of `tests/lab` run in a few guests and print one line for each finding; each test reads those
//! that are its own. They are skipped, with the reason, where QEMU or a kernel image cannot be had.

mod balancing;
mod cpuset;
mod elastic;
mod flags;
mod guest;
mod killed;
mod shuffle;
mod strategies;
mod topo;

pub(crate) use guest::TURN;
