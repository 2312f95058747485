//! What an access of a cpu finds where: modelled private caches and DTLB of each core, a last-level
//! cache for each domain with MESIF states, and the memory controllers and links behind them.
//!
//! [`Simulation`] is told every access (cpu, address, size, load or store) and keeps counts; its
//! [`Report`] is what the lab shows. It knows nothing of QEMU: the plugin feeds it, and so do tests.

#![forbid(unsafe_code)]

mod report;
mod setup;

pub use report::{
    Caches, Calibration, Controller, LevelCounts, LinkTraffic, NodeCounts, REPORT_VERSION, Region,
    Report, Series, Slice, Sources, StateCounts, TagCounts, Traffic,
};
pub use setup::{
    CacheShape, Counting, Crossing, NodeMemory, SETUP_VERSION, Seat, Setup, SetupError, TlbShape,
};
