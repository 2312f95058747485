//! Options of a measurement: what to measure, for how long, and how to cancel it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atoll_topology::Bytes;

use crate::MeasureError;

/// A repetition extends beyond its window while a side has made no progress (more threads than cpus, a busy machine),
/// up to this time.
pub(crate) const STARVED: Duration = Duration::from_secs(2);

/// Minimum buffer size: below it, slices of many threads would not hold a block each.
pub const BUFFER_MIN: Bytes = Bytes(1 << 20);

/// Maximum number of repetitions: more would only take time.
pub const REPETITIONS_MAX: u32 = 1000;

/// Maximum window of one repetition.
pub const WINDOW_MAX: Duration = Duration::from_secs(60);

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeasurementKind {
    /// Dependent random reads on every idle path.
    Latency,
    /// Reading, writing and copying on every path, by number of threads.
    Bandwidth,
    /// Latency while the same path carries a load.
    Loaded,
    /// A flow while other nodes load its destination.
    CrossTraffic,
    /// A cache line transferred from cpu to cpu.
    CoreToCore,
}

impl MeasurementKind {
    /// Every part, in the order of measurement.
    pub const ALL: [Self; 5] =
        [Self::Latency, Self::Bandwidth, Self::Loaded, Self::CrossTraffic, Self::CoreToCore];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Loaded => "loaded",
            Self::CrossTraffic => "cross-traffic",
            Self::CoreToCore => "core-to-core",
        }
    }

    /// Finds a part by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

impl fmt::Display for MeasurementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to measure and for how long. Start from [`MeasureOptions::full`] or [`MeasureOptions::quick`].
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// What to measure.
    pub parts: BTreeSet<MeasurementKind>,
    /// Whether every number of threads (1, 2, 4, …), load and path is visited; otherwise one thread
    /// and all, three loads, and of the paths of a loaded or crossed node the local and the farthest.
    pub thorough: bool,
    /// Size of the chain and of the stream on each node; by default four times the relevant last-level caches and at
    /// least 64 MiB.
    pub buffer: Option<Bytes>,
    /// Repetitions of each figure.
    pub repetitions: u32,
    /// Warm-up time of each measurement.
    pub warm_up: Duration,
    /// Time of one repetition.
    pub window: Duration,
    /// Maximum number of pairs of cpus between which a cache line is bounced.
    pub pairs_max: u32,
    /// Seed of the order in which lines are read.
    pub seed: u64,
    /// Set it, from any thread, to end within about ten milliseconds; the figures so far are reported.
    pub cancel: Arc<AtomicBool>,
}

impl MeasureOptions {
    /// Everything, with five repetitions of 100 ms.
    pub fn full() -> Self {
        Self {
            parts: MeasurementKind::ALL.into(),
            thorough: true,
            buffer: None,
            repetitions: 5,
            warm_up: Duration::from_millis(100),
            window: Duration::from_millis(100),
            pairs_max: 8192,
            seed: 1,
            cancel: Arc::default(),
        }
    }

    /// Everything in brief: three repetitions of 20 ms, and fewer conditions.
    pub fn quick() -> Self {
        Self {
            thorough: false,
            repetitions: 3,
            warm_up: Duration::from_millis(20),
            window: Duration::from_millis(20),
            pairs_max: 512,
            ..Self::full()
        }
    }

    /// Whether it was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: only the flag matters, nothing is published through it.
        self.cancel.load(Ordering::Relaxed)
    }

    /// Time of one measurement with all its repetitions.
    pub(crate) fn run_time(&self) -> Duration {
        self.warm_up + self.window * self.repetitions
    }

    /// Upper bound for the time of a measurement, even if every repetition waits for a starved thread.
    pub(crate) fn run_time_max(&self) -> Duration {
        2 * self.run_time() + STARVED * (self.repetitions + 1)
    }

    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let fail = |what: String| Err(MeasureError::Options { what });
        if self.parts.is_empty() {
            let parts = MeasurementKind::ALL.map(MeasurementKind::name).join(", ");
            return fail(format!("no part is chosen; choose among {parts}"));
        }
        if !(1..=REPETITIONS_MAX).contains(&self.repetitions) {
            let given = self.repetitions;
            return fail(format!("{given} repetitions; choose 1 to {REPETITIONS_MAX}"));
        }
        if self.window.is_zero() || self.window.max(self.warm_up) > WINDOW_MAX {
            let (window, warm_up) = (self.window, self.warm_up);
            return fail(format!(
                "a window of {window:?} after {warm_up:?}; choose a window above 0 and both up to \
                 {WINDOW_MAX:?}"
            ));
        }
        match self.buffer.filter(|buffer| *buffer < BUFFER_MIN) {
            Some(buffer) => fail(format!("a buffer of {buffer}; choose {BUFFER_MIN} or more")),
            None => Ok(()),
        }
    }
}
