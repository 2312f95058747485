//! What a run will take, said before it starts, and how long is left.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use atoll_topology::Bytes;

use super::case::{KvCase, KvWork};
use super::plan::KvPlan;
use crate::memory;

/// Records of the report's databases, as far as their sizes tell.
const REPORT_RECORDS: u64 = 100_000_000;
/// Files and process together for each byte of data: the most in the report, BerkeleyDB's.
const PEAK: f64 = 5.3;
/// Records a second that loading is assumed to put: the report's engines had 30,000 to 1,500,000.
const LOAD_RATE: f64 = 120_000.0;
/// Seconds of a case beside its work: start, closing, reading all records.
const CASE_SECONDS: f64 = 1.0;

/// As many records as half of the free memory and disk hold, with all that an engine adds: 1, 2 or 5 times a power
/// of ten.
pub(super) fn records_that_fit(directory: &Path, record_bytes: usize) -> Result<u64> {
    let most = available_memory()?.min(free_bytes(directory)?) as f64 / 2.0;
    let records = (most / PEAK / record_bytes as f64) as u64;
    Ok(round_down(records).clamp(1000, REPORT_RECORDS))
}

fn available_memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    memory::of_status(&text, "MemAvailable").context("/proc/meminfo has no MemAvailable")
}

/// Bytes that a file system has left; that of an initial ramdisk does not tell, and has what memory has.
fn free_bytes(directory: &Path) -> Result<u64> {
    let about = rustix::fs::statvfs(directory);
    let about = about.with_context(|| format!("the free space of {}", directory.display()))?;
    match about.f_blocks {
        0 => available_memory(),
        _ => Ok(about.f_bavail.saturating_mul(about.f_frsize)),
    }
}

fn round_down(number: u64) -> u64 {
    let power = 10_u64.pow(number.max(1).ilog10());
    let steps = [5, 2, 1].map(|step| step * power);
    steps.into_iter().find(|step| *step <= number).unwrap_or(power)
}

/// Seconds that a case is expected to take.
pub(super) fn seconds(plan: &KvPlan, case: &KvCase) -> f64 {
    let work = match case.work {
        KvWork::Probe => 0.0,
        KvWork::Load { .. } => plan.records.count as f64 / LOAD_RATE,
        KvWork::ReadWhileWriting { .. } => plan.seconds,
    };
    work + CASE_SECONDS
}

/// Time and memory of a run in words.
pub(super) fn words(plan: &KvPlan, directory: &Path) -> Result<Vec<String>> {
    let cases: Vec<KvCase> = plan.groups().flatten().collect();
    let all: f64 = cases.iter().map(|case| seconds(plan, case)).sum();
    let peak = (plan.records.bytes() as f64 * PEAK) as u64;
    let (memory, disk) = (available_memory()?, free_bytes(directory)?);
    let mut lines = vec![
        format!("{} cases, about {}", cases.len(), time(all)),
        format!(
            "up to {} of memory and files at a time, if engines take what the report's took; {} of memory and \
             {} in {} are free",
            Bytes(peak),
            Bytes(memory),
            Bytes(disk),
            directory.parent().unwrap_or(directory).display()
        ),
    ];
    if peak > memory.min(disk) {
        lines.push("warning: it may not fit; fewer --records are safer".to_owned());
    }
    Ok(lines)
}

/// `40 s`, `12 min`, `3.5 h`
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        short if short < 90.0 => format!("{short:.0} s"),
        middle if middle < 5400.0 => format!("{:.0} min", middle / 60.0),
        long => format!("{:.1} h", long / 3600.0),
    }
}

/// How far a run is, and how long it still takes by the pace so far.
pub(super) struct Progress {
    start: Instant,
    expected: f64,
    done: f64,
}

impl Progress {
    /// Of cases that are expected to take so many seconds.
    pub(super) fn new(expected: f64) -> Self {
        Self { start: Instant::now(), expected, done: 0.0 }
    }

    /// Leaves out a case that was measured before.
    pub(super) fn skip(&mut self, seconds: f64) {
        self.expected -= seconds;
    }

    /// Counts a case; the time left.
    pub(super) fn add(&mut self, seconds: f64) -> String {
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
    fn records_are_round_numbers() {
        let rounded = [0, 1, 4, 7, 1999, 2000, 49_999].map(round_down);
        assert_eq!(rounded, [1, 1, 2, 5, 1000, 2000, 20_000]);
    }

    #[test]
    fn the_time_left_follows_the_pace() {
        assert_eq!(left(Duration::from_secs(20), 10.0, 40.0), 60.0);
        assert_eq!(left(Duration::from_secs(20), 50.0, 40.0), 0.0);
        assert_eq!([20.0, 600.0, 7200.0].map(time), ["20 s", "10 min", "2.0 h"]);
    }
}
