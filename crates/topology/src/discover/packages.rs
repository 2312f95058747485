//! Packages: `/sys/devices/system/cpu/cpu*/topology/{physical_package_id,package_cpus_list}` (before
//! Linux 5.3 `core_siblings_list`).
//!
//! The firmware's number may be -1 for all packages (POWER, s390) or the same for several (IA-64). So the sets of cpus
//! decide if they are consistent, and otherwise the numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::files::{KernelFiles, cpu_file};
use crate::{CpuId, CpuSet, PackageId};

/// The package of each usable cpu; cpus without any information are left out.
pub(super) fn read(files: &KernelFiles<'_>, usable: &CpuSet) -> HashMap<CpuId, PackageId> {
    let numbers: HashMap<CpuId, u32> =
        usable.iter().filter_map(|cpu| Some((cpu, number(files, cpu)?))).collect();
    let Some(sets) = sets(files, usable) else {
        return numbers.into_iter().map(|(cpu, number)| (cpu, PackageId(number))).collect();
    };
    let ids = ids(files, &sets, &numbers);
    let members = sets.iter().zip(ids);
    members.flat_map(|(cpus, id)| cpus.iter().map(move |cpu| (cpu, id))).collect()
}

/// The firmware's number; the kernel reports -1 if there is none.
fn number(files: &KernelFiles<'_>, cpu: CpuId) -> Option<u32> {
    let name = cpu_file(cpu, "topology/physical_package_id");
    let number = files.number(&name).filter(|&number| number != -1)?;
    let id = u32::try_from(number).ok();
    if id.is_none() {
        files.malformed(&name, "a package number or -1", &number.to_string());
    }
    id
}

/// Usable cpus by package, ordered by the first of each. Returns None if a cpu has no set or two sets contradict each
/// other.
fn sets(files: &KernelFiles<'_>, usable: &CpuSet) -> Option<Vec<CpuSet>> {
    let mut sets: BTreeMap<CpuId, CpuSet> = BTreeMap::new();
    let mut left = usable.clone();
    for cpu in usable.iter() {
        let set = ["package_cpus", "core_siblings"].iter().find_map(|name| {
            let mask = cpu_file(cpu, &format!("topology/{name}"));
            files.list_or_mask(&format!("{mask}_list"), &mask)
        })?;
        let set: CpuSet = usable.intersection(&set);
        let known = sets.entry(set.first()?).or_insert_with(|| set.clone());
        if *known != set || !set.contains(cpu) {
            return None;
        }
        left.remove(cpu);
    }
    let apart = sets.values().map(CpuSet::len).sum::<usize>() == usable.len();
    (left.is_empty() && apart).then(|| sets.into_values().collect())
}

/// A number for each set: the firmware's if it is the same for all of its cpus and unique to the set, else the next
/// free one.
fn ids(files: &KernelFiles<'_>, sets: &[CpuSet], numbers: &HashMap<CpuId, u32>) -> Vec<PackageId> {
    let told = |cpus: &CpuSet| cpus.first().and_then(|cpu| numbers.get(&cpu)).copied();
    let mut taken = BTreeSet::new();
    let own: Vec<Option<u32>> =
        sets.iter().map(|cpus| told(cpus).filter(|&number| taken.insert(number))).collect();
    if own.iter().any(Option::is_none) && sets.len() > 1 {
        let name = cpu_file(CpuId(0), "topology/physical_package_id");
        let found = "packages have no unique numbers";
        files.assume(&name, found, "numbered in the order of their cpus");
    }
    let mut next = (0..).filter(|number| !taken.contains(number));
    own.iter().map(|number| PackageId(number.or_else(|| next.next()).unwrap_or_default())).collect()
}
