//! One thread: warm up, access, migrate.

use std::sync::atomic::{AtomicU8, AtomicU64};
use std::time::Instant;

use atoll_placement::Kernel;
use atoll_topology::CpuSet;
use serde::{Deserialize, Serialize};

use super::{RunBarriers, RunPart};
use crate::access::{AccessSequence, LINE, chase, read, touch, write};
use crate::counters::{CacheCounters, CounterReading};
use crate::schedule::RunSchedule;
use crate::{CpuRoute, ExperimentError, Operation};

/// Random accesses of the warm-up for each line of the array, so that the caches hold what they hold
/// in the long run.
const WARM_PER_LINE: u64 = 2;

/// The outcome of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadRun {
    pub(crate) repetitions: Vec<Repetition>,
    /// Why there are no counters of the last-level cache.
    pub(crate) cache_missing: Option<String>,
}

/// A repetition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Repetition {
    pub(crate) slices: Vec<SliceRun>,
    pub(crate) migrations: Option<u64>,
    pub(crate) switches: Option<u64>,
}

/// A slice of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SliceRun {
    pub(crate) accesses: u64,
    pub(crate) nanos: u64,
    /// Loads of the last-level cache and its misses.
    pub(crate) llc: Option<(u64, u64)>,
}

impl Repetition {
    pub(crate) fn nanos(&self) -> u64 {
        self.slices.iter().map(|slice| slice.nanos).sum()
    }
}

/// The accessed array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Array<'a> {
    Bytes(&'a [AtomicU8]),
    /// Linked.
    Chain(&'a [AtomicU64]),
}

/// A thread and all it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) kernel: &'a dyn Kernel,
    pub(crate) part: &'a RunPart,
    pub(crate) meetings: RunBarriers<'a>,
    pub(crate) array: Array<'a>,
    pub(crate) way: &'a CpuRoute,
    /// Among all threads of the arm.
    pub(crate) number: usize,
}

/// Where a thread stands in its array.
#[derive(Clone, Copy, Debug)]
struct Position {
    random: AccessSequence,
    line: usize,
}

impl Runner<'_> {
    pub(crate) fn run(&self) -> Result<ThreadRun, ExperimentError> {
        let random = AccessSequence::new(self.part.seed, self.number as u64);
        let mut position = Position { random, line: 0 };
        let counters = CacheCounters::open();
        let cache_missing = counters.missing().map(str::to_owned);
        let repetitions =
            (0..self.part.repetitions).map(|_| self.repetition(&counters, &mut position));
        Ok(ThreadRun { repetitions: repetitions.collect::<Result<_, _>>()?, cache_missing })
    }

    fn repetition(
        &self,
        counters: &CacheCounters,
        position: &mut Position,
    ) -> Result<Repetition, ExperimentError> {
        self.go_to(0)?;
        self.warm(position)?;
        self.meetings.all.wait()?;
        self.meetings.all.wait()?;
        let before = counters.read();
        let slices = self.timed(counters, before, position)?;
        let counted = counters.read().since(before);
        self.meetings.all.wait()?;
        Ok(Repetition { slices, migrations: counted.migrations, switches: counted.switches })
    }

    /// Touches every line, then random ones, in step with the others.
    fn warm(&self, position: &mut Position) -> Result<(), ExperimentError> {
        if let Array::Bytes(bytes) = self.array {
            std::hint::black_box(touch(bytes, self.part.arm.operation == Operation::Write));
        }
        let accesses = (self.lines() * WARM_PER_LINE).clamp(1, self.part.accesses.max(1));
        let schedule = RunSchedule { accesses, migrations: 0, slices: 1, turn: self.turn() };
        for stretch in schedule.stretches() {
            self.access(position, stretch.accesses);
            if stretch.meets {
                self.meetings.threads.wait()?;
            }
        }
        Ok(())
    }

    /// The measurement.
    fn timed(
        &self,
        counters: &CacheCounters,
        before: CounterReading,
        position: &mut Position,
    ) -> Result<Vec<SliceRun>, ExperimentError> {
        let schedule = self.schedule();
        let mut slices = Vec::with_capacity(self.part.slices as usize);
        let (mut accesses, mut moves, mut last) = (0, 0, before);
        let mut start = Instant::now();
        for stretch in schedule.stretches() {
            self.access(position, stretch.accesses);
            accesses += stretch.accesses;
            if stretch.meets && self.part.arm.threads() > 1 {
                self.meetings.threads.wait()?;
            }
            if stretch.migrates {
                moves += 1;
                self.go_to(moves)?;
            }
            if stretch.ends_slice {
                let now = Instant::now();
                let reading = if counters.has_llc() { counters.read() } else { last };
                let counted = reading.since(last);
                let nanos = u64::try_from((now - start).as_nanos()).unwrap_or(u64::MAX);
                slices.push(SliceRun {
                    accesses,
                    nanos,
                    llc: counted.llc_loads.zip(counted.llc_misses),
                });
                (accesses, start, last) = (0, now, reading);
            }
        }
        Ok(slices)
    }

    fn schedule(&self) -> RunSchedule {
        let RunPart { accesses, slices, arm, .. } = self.part;
        RunSchedule {
            accesses: *accesses,
            migrations: u64::from(arm.migrations),
            slices: u64::from(*slices),
            turn: self.turn(),
        }
    }

    /// Accesses between two waits for the others, where there are others to wait for.
    fn turn(&self) -> u64 {
        if self.part.arm.shares_cache { self.part.turn } else { 0 }
    }

    fn access(&self, position: &mut Position, accesses: u64) {
        match (self.array, self.part.arm.operation) {
            (Array::Bytes(bytes), Operation::Read) => {
                std::hint::black_box(read(bytes, &mut position.random, accesses));
            }
            (Array::Bytes(bytes), Operation::Write) => {
                write(bytes, &mut position.random, accesses);
            }
            (Array::Chain(words), _) => position.line = chase(words, position.line, accesses),
        }
    }

    fn lines(&self) -> u64 {
        self.part.arm.size_run.0.div_ceil(LINE as u64)
    }

    /// Binds the thread to the cpu it is on after this many migrations.
    fn go_to(&self, migrations: u64) -> Result<(), ExperimentError> {
        match self.way.at(migrations) {
            Some(cpu) => Ok(self.kernel.bind_thread(&CpuSet::from_iter([cpu]))?),
            None => Err(ExperimentError::Part("a thread has no cpu".to_owned())),
        }
    }
}
