//! How fast memory can be read: the limit that scans are held against.

use std::sync::Arc;

use anyhow::Result;
use atoll_primitives::Tuning;
use atoll_tools::workload::Rig;
use atoll_topology::{Bytes, Machine};
use serde::Serialize;

use crate::primitives::bandwidth::Meter;

/// Passes over the memory.
const PASSES: usize = 9;

/// How fast memory can be read by as many threads, each reading its own node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ReadBandwidth {
    /// Threads that read.
    pub(crate) threads: usize,
    /// Memory that they read in each pass.
    pub(crate) buffer_bytes: Bytes,
    /// Passes; the fastest counts, since everything else on the machine only slows it down.
    pub(crate) passes: usize,
    /// Bytes per second in the fastest pass.
    pub(crate) bytes_per_second: f64,
}

impl ReadBandwidth {
    /// Measures it with bound threads.
    ///
    /// # Errors
    /// When the threads cannot be started, or the memory cannot be had.
    pub(crate) fn measure(machine: &Arc<Machine>, threads: usize) -> Result<Self> {
        let rig = Rig::start(machine, threads, &Tuning::default())?;
        let meter = Meter::new(&rig)?;
        Ok(Self {
            threads: rig.threads,
            buffer_bytes: Bytes(meter.bytes() as u64),
            passes: PASSES,
            bytes_per_second: meter.fastest_read(PASSES)? * 1e9,
        })
    }

    /// A line of a report's conditions.
    pub(crate) fn to_markdown(self) -> String {
        format!(
            "- memory read with {} threads at {:.1} GB/s (fastest of {} passes over {})\n",
            self.threads,
            self.bytes_per_second / 1e9,
            self.passes,
            self.buffer_bytes
        )
    }
}
