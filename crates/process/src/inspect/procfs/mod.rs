//! Readers of the kernel's files: one for each file or pair of files of `/proc`.

pub(super) mod kernel;
pub(super) mod maps;
pub(super) mod numa_maps;
pub(super) mod read;
pub(super) mod sched;
pub(super) mod stat;
pub(super) mod status;
