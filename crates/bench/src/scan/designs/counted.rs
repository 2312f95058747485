//! Processor counters of one thread that passes over all rows.

use std::sync::Arc;

use anyhow::Result;
use atoll_sys::{PerfCounter, PerfEvent};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;

use super::super::queries::ScanQueries;
use super::shard::{Shard, ShardPart};
use super::{DesignSetup, random_batch};

/// Counts of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct CountedPass {
    pub(in super::super) queries: usize,
    pub(in super::super) rows: u64,
    pub(in super::super) instructions: u64,
    pub(in super::super) cycles: u64,
    /// Loads that reach the last-level cache, and those that miss it.
    pub(in super::super) llc_loads: u64,
    pub(in super::super) llc_misses: u64,
}

/// Counters of this thread, or why there are none.
struct PassCounters([PerfCounter; 4]);

impl PassCounters {
    fn open() -> Result<Self, String> {
        let open = |event| PerfCounter::open(event).map_err(|error| error.to_string());
        Ok(Self([
            open(PerfEvent::Instructions)?,
            open(PerfEvent::Cycles)?,
            open(PerfEvent::LlcLoads)?,
            open(PerfEvent::LlcLoadMisses)?,
        ]))
    }

    fn read(&self) -> Result<[u64; 4]> {
        let mut counts = [0; 4];
        for (count, counter) in counts.iter_mut().zip(&self.0) {
            *count = counter.read()?;
        }
        Ok(counts)
    }
}

impl DesignSetup {
    /// Counts of a pass that answers this many queries, or why there are no counters.
    pub(in super::super) fn counted_pass(
        &self,
        queries: &ScanQueries,
        batch: usize,
        seed: u64,
    ) -> Result<Result<CountedPass, String>> {
        let counters = match PassCounters::open() {
            Ok(counters) => counters,
            Err(reason) => return Ok(Err(reason)),
        };
        let part = ShardPart { relation_rows: self.rows, seed: self.seed, rows: 0..self.rows };
        let shard = Shard::load(&self.machine, &part, None, Arc::clone(&self.statements))?;
        let mut random = StdRng::seed_from_u64(seed);
        shard.answer(&random_batch(queries, batch, &mut random))?;
        let batch = random_batch(queries, batch, &mut random);
        let before = counters.read()?;
        shard.answer(&batch)?;
        let after = counters.read()?;
        let [instructions, cycles, llc_loads, llc_misses] =
            std::array::from_fn(|at| after[at].saturating_sub(before[at]));
        let (queries, rows) = (batch.len(), self.rows);
        Ok(Ok(CountedPass { queries, rows, instructions, cycles, llc_loads, llc_misses }))
    }
}
