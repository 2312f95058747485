//! Linux calls that no crate wraps well: memory policy, page homes, mappings and thread affinity.
//!
//! Functions take raw integers and slices and return a [`CallError`] with the errno; the caller interprets errors.
//! Functions have the name of the system call. An address is a plain `usize` if the kernel checks it and does not
//! change the contents: such a call cannot break memory safety, so it is not `unsafe`.

mod bitmap;
mod children;
mod clock;
mod error;
mod files;
mod library;
mod memory;
mod pages;
mod perf;
mod policy;
mod shared;
mod signals;
mod sockets;
mod threads;
mod usage;

pub use bitmap::{BITMAP_NUMBER_MAX, Bitmap, BitmapError};
pub use children::{
    EndedChild, Ending, ended_child, kill_group, kill_process, pass_on, tie_to_parent,
};
pub use clock::{process_cpu_time, process_cpu_time_of, thread_cpu_time, thread_cpu_time_of};
pub use error::{CallError, CallErrorKind, errno_name};
pub use files::{
    linkat_unnamed, open_unnamed, raise_open_files, sync_file_range_write, take_standard_output,
};
pub use library::{LibraryError, SharedLibrary};
pub use memory::{
    madvise_hugepage, madvise_populate_write, mincore, mmap, munmap, page_size, touch_pages,
};
pub use pages::{migrate_pages, move_pages, page_nodes, page_nodes_of};
pub use perf::{PerfCounter, PerfEvent};
pub use policy::{
    PolicyMode, TaskPolicy, get_mempolicy, mbind, mems_allowed, policy_at, set_mempolicy,
    set_mempolicy_balancing,
};
pub use shared::{SharedWords, futex_wait, futex_wake};
pub use signals::{
    SignalMask, TakenSignal, block_signals, default_signal, is_signal_ignored, set_signal_mask,
    signal, signal_name, wait_signal,
};
pub use sockets::{KeepAlive, set_keep_alive};
pub use threads::{CpuAndNode, getcpu, gettid, sched_getaffinity, sched_setaffinity};
pub use usage::{ProcessUsage, process_usage};

/// The value, or None if a container forbids the call: tests then report it and pass.
#[cfg(test)]
fn permitted<T>(result: Result<T, CallError>) -> Option<T> {
    match result {
        Err(error)
            if matches!(error.kind(), CallErrorKind::Refused | CallErrorKind::Unsupported) =>
        {
            atoll_testkit::skip(atoll_testkit::Need::Permission, error);
            None
        }
        result => Some(result.unwrap()),
    }
}
