//! Real kernels on emulated machines: placement, and what `topo` and `where` say of it, against what
//! the kernel says in sysfs and procfs.
//!
//! Each test boots one guest and runs a script of `tests/lab` in it, which prints one line for each
//! finding. They are skipped, with the reason, where QEMU or a kernel image cannot be had.

mod balancing;
mod cpuset;
mod guest;
mod shuffle;
mod strategies;
mod topo;
