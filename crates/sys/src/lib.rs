//! The Linux interface of Atoll: [system calls](CallError) that no crate wraps well (memory policy, page homes,
//! mappings, thread affinity), [`Root`], which reads sysfs, procfs and cgroupfs under a configurable root, and
//! [`WholeFile`], which replaces a file atomically. [`SplitMix64`] is a simple random number generator.
//!
//! Functions take raw integers and return typed errors; higher crates define nodes, cpus and policies. It is a separate
//! crate because it contains nearly all unsafe code and the only raw calls of the project, so that both can be audited
//! in one place.

mod calls;
mod random;
mod root;
mod tree;
mod whole;

pub use calls::{
    BITMAP_NUMBER_MAX, Bitmap, BitmapError, CallError, CallErrorKind, CpuAndNode, EndedChild,
    Ending, KeepAlive, LibraryError, PerfCounter, PerfEvent, PolicyMode, ProcessUsage,
    SharedLibrary, SharedWords, SignalMask, TakenSignal, TaskPolicy, block_signals, default_signal,
    ended_child, errno_name, futex_wait, futex_wake, get_mempolicy, getcpu, gettid,
    is_signal_ignored, kill_group, kill_process, linkat_unnamed, madvise_hugepage,
    madvise_populate_write, mbind, mems_allowed, migrate_pages, mincore, mmap, move_pages, munmap,
    open_unnamed, page_nodes, page_nodes_of, page_size, pass_on, policy_at, process_cpu_time,
    process_cpu_time_of, process_usage, raise_open_files, sched_getaffinity, sched_setaffinity,
    set_keep_alive, set_mempolicy, set_mempolicy_balancing, set_signal_mask, signal, signal_name,
    sync_file_range_write, take_standard_output, thread_cpu_time, thread_cpu_time_of,
    tie_to_parent, touch_pages, wait_signal,
};
pub use random::SplitMix64;
pub use root::{DIRECTORY_ENTRIES_MAX, FILE_BYTES_MAX, Root, RootError};
pub use tree::{MemoryTree, TREE_ENTRIES_MAX, TREE_NAME_BYTES_MAX, TreeError};
pub use whole::{WholeFile, place_all, write_whole};
