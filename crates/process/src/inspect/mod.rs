//! Inspecting processes: where their threads run and where their memory is.
//!
//! [`find`] turns a user's [`Target`] into processes; a [`Watcher`] inspects them as often
//! as requested and returns a [`Snapshot`] each time; [`skew::warnings`] reports problems and
//! the commands that fix them. [`ThreadReader`] and [`memory::read`] are the two halves of a snapshot, for
//! callers that need only one.
//!
//! Everything is read through [`Root`](atoll_sys::Root), so a copied or synthetic `/proc` works as well as the
//! live one, and through [`PageHomes`], for the one question that no file answers.
//!
//! | File | Reads | Finds |
//! |---|---|---|
//! | `target` | `/proc/*/{stat,cmdline}`, `cgroup.procs` | the target processes |
//! | `procfs::{stat, status}` | `/proc/PID/{stat,status}` | name, state, start time, cpu, resident bytes |
//! | `procfs::sched` | `/proc/PID/task/TID/{sched,schedstat}` | time on cpus, migrations |
//! | `threads` | all of these for each thread | [`Thread`] |
//! | `procfs::{maps, numa_maps}` | `/proc/PID/{maps,numa_maps}` | mappings, their kinds, policies, pages |
//! | `residency::{exact, sample}` | every page table entry, or some pages by `move_pages` | [`ProcessMemory`] |
//! | `segment`, `union` | the same pages in several processes, by `move_pages` | [`Union`] |
//! | `procfs::kernel` | `/proc/sys/kernel/numa_balancing`, `/proc/vmstat` | [`Balancing`] |
//!
//! Resident does not mean accessed: memory figures show where pages are, not who reads them.
//! Processes may end and threads may come and go during a reading: those that vanished are left out, and a number
//! reused by another process (with a different start time) is not mistaken for the old one.

mod bytes;
mod error;
pub mod memory;
mod missing;
mod node_row;
mod nodes;
mod pace;
mod process;
mod process_memory;
mod procfs;
mod residency;
mod segment;
pub mod skew;
mod snapshot;
mod target;
mod threads;
mod union;
mod watcher;

pub use bytes::NodeBytes;
pub use error::InspectError;
pub use missing::Missing;
pub use node_row::NodeRow;
pub use nodes::NodeMap;
pub use process::Process;
pub use process_memory::{MemoryOptions, Method, PolicyUse, ProcessMemory};
pub use procfs::kernel::Balancing;
pub use procfs::maps::MappingKind;
pub use residency::homes::{LivePages, PageHomes, PagesError};
pub use skew::Warning;
pub use snapshot::Snapshot;
pub use target::{ProcessId, Target, descendants, find, identify};
pub use threads::{Thread, ThreadReader};
pub use union::Union;
pub use watcher::{ProcessSource, WatchOptions, Watcher};
