//! Kinds of cpus, from the first of these sources that distinguishes several: the PMU devices (`/sys/devices/cpu_core`
//! has the P cores, `cpu_atom` the E cores and `cpu_lowpower` the low-power E cores), the scheduler's capacity
//! (`cpu*/cpu_capacity`, on Arm), and the highest frequency (`cpu*/cpufreq/cpuinfo_max_freq`).
//!
//! Frequencies of equal cores differ by a step or two (Intel's favored cores), so cpus within 10 % of the fastest are
//! one kind.

use std::collections::BTreeMap;

use super::files::{KernelFiles, cpu_file};
use crate::{CpuKind, CpuSet};

/// The devices and the names of their cpus.
const DEVICES: [(&str, &str); 3] =
    [("cpu_core", "P cores"), ("cpu_atom", "E cores"), ("cpu_lowpower", "low-power E cores")];

/// The kinds of the usable cpus; fewer than two if they do not differ.
pub(super) fn read(files: &KernelFiles<'_>, usable: &CpuSet) -> Vec<CpuKind> {
    let several = |kinds: &Vec<CpuKind>| kinds.len() > 1;
    Some(devices(files, usable))
        .filter(several)
        .or_else(|| Some(capacities(files, usable)).filter(several))
        .unwrap_or_else(|| frequencies(files, usable))
}

fn devices(files: &KernelFiles<'_>, usable: &CpuSet) -> Vec<CpuKind> {
    let kind = |(device, name): (&str, &str)| {
        let cpus: CpuSet = files.list_set(&format!("/sys/devices/{device}/cpus"))?;
        let cpus = cpus.intersection(usable);
        (!cpus.is_empty()).then(|| CpuKind { name: name.to_owned(), cpus })
    };
    DEVICES.into_iter().filter_map(kind).collect()
}

fn capacities(files: &KernelFiles<'_>, usable: &CpuSet) -> Vec<CpuKind> {
    let kinds = by_number(files, usable, "cpu_capacity", "a capacity");
    let kind = |(capacity, cpus)| CpuKind { name: format!("capacity {capacity}"), cpus };
    kinds.into_iter().map(kind).collect()
}

fn frequencies(files: &KernelFiles<'_>, usable: &CpuSet) -> Vec<CpuKind> {
    let mut kinds = by_number(files, usable, "cpufreq/cpuinfo_max_freq", "a frequency in kHz");
    let Some(mut fastest) = kinds.pop_last() else { return Vec::new() };
    let near: Vec<u32> =
        kinds.range(fastest.0 - fastest.0 / 10..).map(|(&kilohertz, _)| kilohertz).collect();
    for cpus in near.iter().filter_map(|kilohertz| kinds.remove(kilohertz)) {
        fastest.1 = fastest.1.union(&cpus);
    }
    kinds.extend([fastest]);
    let name = |kilohertz: u32| format!("up to {:.1} GHz", f64::from(kilohertz) * 1e-6);
    kinds.into_iter().map(|(kilohertz, cpus)| CpuKind { name: name(kilohertz), cpus }).collect()
}

/// Cpus by a number from a file of each; empty if a file is missing.
fn by_number(
    files: &KernelFiles<'_>,
    usable: &CpuSet,
    file: &str,
    expected: &str,
) -> BTreeMap<u32, CpuSet> {
    let mut kinds: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in usable.iter() {
        let Some(number) = files.count(&cpu_file(cpu, file), expected) else {
            return BTreeMap::new();
        };
        kinds.entry(number).or_default().insert(cpu);
    }
    kinds
}
