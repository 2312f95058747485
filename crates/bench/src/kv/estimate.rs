//! What a run will take, said before it starts.

use std::path::Path;

use anyhow::Result;
use atoll_topology::Bytes;

use super::case::{KvCase, KvWork};
use super::plan::KvPlan;
use crate::trials::progress::{available_memory, free_bytes, time};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_round_numbers() {
        let rounded = [0, 1, 4, 7, 1999, 2000, 49_999].map(round_down);
        assert_eq!(rounded, [1, 1, 2, 5, 1000, 2000, 20_000]);
    }
}
