//! Processes looked at: where their threads run and where their memory is.
//!
//! [`find`] turns what a user names ([`Target`]) into processes; a [`Watcher`] looks at them as often
//! as asked and returns a [`Snapshot`] each time; [`skew::warnings`] says what is wrong with one and
//! which command mends it. [`ThreadReader`] and [`memory::read`] are the two halves of a look, for
//! who needs only one of them.
//!
//! All is read through [`Root`](atoll_sys::Root), so a copied or written `/proc` serves as well as the
//! live one, and through [`PageHomes`], the one question that no file answers.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `target` | `/proc/*/{stat,cmdline}`, `cgroup.procs` | the processes meant |
//! | `stat`, `status` | `/proc/PID/{stat,status}` | name, state, start time, cpu, resident bytes |
//! | `sched` | `/proc/PID/task/TID/{sched,schedstat}` | time on cpus, migrations |
//! | `threads` | all of these for each thread | [`Thread`] |
//! | `maps`, `numa_maps` | `/proc/PID/{maps,numa_maps}` | mappings, their kinds, policies, pages |
//! | `exact`, `sample` | every page table entry, or some pages by `move_pages` | [`ProcessMemory`] |
//! | `segment`, `union` | the same pages in several processes, by `move_pages` | [`Union`] |
//! | `kernel` | `/proc/sys/kernel/numa_balancing`, `/proc/vmstat` | [`Balancing`] |
//!
//! Resident is not accessed: all that is said of memory is where its pages are, not who reads them.
//! A process may end while it is read, threads come and go: what vanished is left out, and a number
//! that now belongs to another process (its start time differs) is not taken for the old one.

mod bytes;
mod draw;
mod error;
mod exact;
mod homes;
mod kernel;
mod maps;
pub mod memory;
mod missing;
mod node_row;
mod nodes;
mod numa_maps;
mod pace;
mod process;
mod process_memory;
mod read;
mod sample;
mod sched;
mod segment;
pub mod skew;
mod snapshot;
mod stat;
mod status;
mod target;
mod threads;
mod union;
mod watcher;

pub use bytes::NodeBytes;
pub use error::InspectError;
pub use homes::{LivePages, PageHomes, PagesError};
pub use kernel::Balancing;
pub use maps::MappingKind;
pub use missing::Missing;
pub use node_row::NodeRow;
pub use nodes::NodeMap;
pub use process::Process;
pub use process_memory::{MemoryOptions, Method, PolicyUse, ProcessMemory};
pub use skew::Warning;
pub use snapshot::Snapshot;
pub use target::{ProcessId, Target, descendants, find, identify};
pub use threads::{Thread, ThreadReader};
pub use union::Union;
pub use watcher::{ProcessSource, WatchOptions, Watcher};
