//! Dies: `/sys/devices/system/cpu/cpu*/topology/{die_id,die_cpus_list}`, on x86 kernels since 5.2. If the firmware
//! does not number them, there is one die in each package.

use std::collections::BTreeMap;

use super::files::{KernelFiles, cpu_file};
use crate::assemble::CpuPart;
use crate::{CpuId, CpuSet, Die, PackageId};

/// Dies with the usable cpus of each.
pub(super) fn read(files: &KernelFiles<'_>, cpus: &[CpuPart]) -> Vec<Die> {
    let mut dies: BTreeMap<(PackageId, u32), CpuSet> = BTreeMap::new();
    for cpu in cpus {
        if let Some(die) = die(files, cpu.id) {
            dies.entry((cpu.package, die)).or_default().insert(cpu.id);
        }
    }
    let dies = dies.into_iter();
    dies.map(|((package, id), cpus)| Die { id, package, cpus }).collect()
}

/// The number of the cpu's die; the kernel reports -1 if the firmware has none.
fn die(files: &KernelFiles<'_>, cpu: CpuId) -> Option<u32> {
    let number = files.number(&cpu_file(cpu, "topology/die_id"))?;
    u32::try_from(number).ok()
}
