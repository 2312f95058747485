//! Linux as Atoll needs it: [system calls](CallError) that no crate wraps well (memory policy, page
//! homes, mappings, thread affinity), and [`Root`], which reads sysfs, procfs and cgroupfs under a
//! root that can be moved.
//!
//! Raw integers go in, typed errors come out; nodes, cpus and policies get their meaning above. It is
//! a crate of its own because it holds nearly all unsafe code and the only raw calls of the project,
//! so that both can be read and audited in one place.

mod calls;
mod root;

pub use calls::{
    BITMAP_NUMBER_MAX, Bitmap, BitmapError, CallError, CallErrorKind, CpuAndNode, PolicyMode,
    TaskPolicy, errno_name, get_mempolicy, getcpu, gettid, madvise_hugepage,
    madvise_populate_write, mbind, mems_allowed, mincore, mmap, move_pages, munmap, page_nodes,
    page_size, policy_at, sched_getaffinity, sched_setaffinity, set_mempolicy, touch_pages,
};
pub use root::{DIRECTORY_ENTRIES_MAX, FILE_BYTES_MAX, Root, RootError};
