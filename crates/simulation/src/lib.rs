//! Simulates the memory accesses of cpus: private caches and DTLB of each core, a last-level
//! cache for each domain with MESIF states, and the memory controllers and links below them.
//!
//! [`Simulation`] receives every access (cpu, address, size, load or store) and keeps counts; the lab shows
//! its [`Report`]. It knows nothing of QEMU: the plugin feeds it, and so do tests.
//! It is a crate of its own so that the model can be read, and tested, without an emulator.
//!
//! # The model
//!
//! It is deliberately simple. Its assumptions:
//!
//! - Only loads and stores of user space exist: no instruction fetches, no kernel, no devices, no page
//!   walks, no prefetching, no non-temporal stores. Accesses of one cpu happen one after the other.
//! - All caches are set-associative with true LRU, write-allocate and write-back, have lines of one
//!   size, and choose the set by the line's number in RAM modulo the number of sets, unhashed.
//! - The private levels contain neither each other; a line from further away goes into both, and
//!   leaves each silently. The last level contains all lines of its domain's private caches.
//! - A store needs permission, which a core has from its own store until another core reads or writes
//!   the line. A store to a line that no other core of the machine has is a hit in the private cache
//!   and makes the line modified in the last level at once.
//! - Between domains MESIF holds, line by line as the table in `coherence.rs` says. Every domain is
//!   asked at no cost: requests, snoops and acknowledgements are not counted, lines are.
//! - A line is charged to the memory controller of its home when memory supplies it or it is written
//!   back, and to each link on the route of the machine in the direction in which it travels.
//! - The DTLB holds pages of 4 KiB, both levels as one, by virtual address only: two processes on one
//!   core find each other's translations. Its misses are counted and cost nothing.
//! - An access over a line boundary is one access and looks up both lines, over a page boundary only
//!   those of the first page.
//! - Counts belong to the cpu whose access caused them, write-backs too.
//!
//! # Cost
//!
//! Most accesses are to a line that the cpu has just used: `filter.rs` answers them with one compare,
//! without a lock and without changing what the model counts. The rest take the lock of their core,
//! and those that miss in the core take one of the locks of the last-level caches.

#![forbid(unsafe_code)]

mod calibration;
mod coherence;
mod core;
mod counters;
mod cpu;
mod filter;
mod layout;
mod llc;
mod lru;
mod ram;
mod regions;
mod report;
mod series;
mod setup;
mod simulation;
mod summary;
mod tags;

pub use calibration::CalibrationError;

pub use report::{
    CacheCounts, CalibrationReport, ControllerCounts, LevelCounts, LinkTraffic, NodeCounts,
    REPORT_VERSION, Region, Report, RunSeries, RunSlice, StateCounts, SupplierCounts, TagCounts,
    Traffic,
};
pub use setup::{
    CacheShape, Counting, CpuSeat, Crossing, NodeMemory, SETUP_VERSION, Setup, SetupError, TlbShape,
};
pub use simulation::Simulation;

use setup::PAGE;
