//! Frequency governors other than `performance`.

use std::collections::BTreeMap;

use super::{FileReading, Finding, scene::Scene};
use crate::{CpuId, CpuSet};

/// Drivers whose `powersave` lets the processor choose its clock instead of keeping the lowest.
const CHOOSING_DRIVERS: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd-pstate"];
const COMMAND: &str =
    "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut by_governor: BTreeMap<String, (CpuSet, Vec<FileReading>)> = BTreeMap::new();
    for cpu in &scene.machine().cpus {
        let Some(reading) = scene.reading(&file(cpu.id, "scaling_governor")) else { continue };
        let (cpus, readings) = by_governor.entry(reading.value.clone()).or_default();
        cpus.insert(cpu.id);
        if readings.is_empty() {
            readings.push(reading);
            readings.extend(scene.reading(&file(cpu.id, "scaling_driver")));
        }
    }
    by_governor.remove("performance");
    by_governor.iter().map(|(governor, (cpus, read))| finding(governor, cpus, read)).collect()
}

fn file(cpu: CpuId, name: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

fn finding(governor: &str, cpus: &CpuSet, read: &[FileReading]) -> Finding {
    let driver = read.get(1).map_or("", |reading| reading.value.as_str());
    let what = format!("Cpus {cpus} run under the governor '{governor}'");
    let finding = if governor == "powersave" && !CHOOSING_DRIVERS.contains(&driver) {
        let why = "With this driver 'powersave' holds the lowest clock: everything is slower, and \
                   so is every measurement.";
        Finding::warning("governor", what, why)
    } else {
        let why = "The clock rises only after load has been seen, so short queries run slow and \
                   measurements scatter.";
        Finding::note("governor", what, why)
    };
    finding.from(read.iter().cloned()).command(COMMAND)
}
