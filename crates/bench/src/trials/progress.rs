//! How long a run still takes, and what this machine has left for it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::memory;

/// Bytes of memory that programs can still have.
///
/// # Errors
/// If the kernel does not report them.
pub(crate) fn available_memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    memory::of_status(&text, "MemAvailable").context("/proc/meminfo has no MemAvailable")
}

/// Bytes that a file system has left; that of an initial ramdisk does not tell, and has what memory has.
///
/// # Errors
/// If the kernel does not report them.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64> {
    let about = rustix::fs::statvfs(directory);
    let about = about.with_context(|| format!("the free space of {}", directory.display()))?;
    match about.f_blocks {
        0 => available_memory(),
        _ => Ok(about.f_bavail.saturating_mul(about.f_frsize)),
    }
}

/// `40 s`, `12 min`, `3.5 h`
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        short if short < 90.0 => format!("{short:.0} s"),
        middle if middle < 5400.0 => format!("{:.0} min", middle / 60.0),
        long => format!("{:.1} h", long / 3600.0),
    }
}

/// How far a run is, and how long it still takes by the pace so far.
#[derive(Debug)]
pub(crate) struct Progress {
    start: Instant,
    /// Seconds of all cases.
    expected: f64,
    done: f64,
}

impl Progress {
    /// Of cases that are expected to take so many seconds.
    pub(crate) fn new(expected: f64) -> Self {
        Self { start: Instant::now(), expected, done: 0.0 }
    }

    /// Leaves out a case that was measured before.
    pub(crate) fn skip(&mut self, seconds: f64) {
        self.expected -= seconds;
    }

    /// Counts a case; the time left.
    pub(crate) fn add(&mut self, seconds: f64) -> String {
        self.done += seconds;
        time(left(self.start.elapsed(), self.done, self.expected))
    }
}

fn left(elapsed: Duration, done: f64, expected: f64) -> f64 {
    let pace = elapsed.as_secs_f64() / done.max(1e-9);
    (expected - done).max(0.0) * pace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace() {
        assert_eq!(left(Duration::from_secs(20), 10.0, 40.0), 60.0);
        assert_eq!(left(Duration::from_secs(20), 50.0, 40.0), 0.0);
        assert_eq!([20.0, 600.0, 7200.0].map(time), ["20 s", "10 min", "2.0 h"]);
    }
}
