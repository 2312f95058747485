//! Hardware threads: switched off, uneven, or offline one by one.

use std::collections::BTreeSet;

use super::{FileReading, Finding, scene::Scene};
use crate::{CpuId, CpuSet};

const SMT: &str = "/sys/devices/system/cpu/smt/control";
const PRESENT: &str = "/sys/devices/system/cpu/present";
const ONLINE: &str = "/sys/devices/system/cpu/online";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    if let Some(finding) = switched_off(scene) {
        return vec![finding];
    }
    let offline = offline(scene);
    let uneven = if offline.is_none() { uneven(scene) } else { None };
    offline.into_iter().chain(uneven).collect()
}

fn switched_off(scene: &Scene<'_>) -> Option<Finding> {
    let reading = scene.reading(SMT)?;
    let finding = Finding::note(
        "smt_off",
        "The second hardware threads of the cores are switched off",
        "Threads that wait for memory, as joins and index lookups do, gain most from a second \
         thread on their core.",
    );
    match reading.value.as_str() {
        "off" => Some(finding.from([reading]).command(format!("echo on > {SMT}"))),
        "forceoff" => Some(finding.from([reading]).advice(
            "Take 'nosmt=force' from the kernel's command line, or switch hardware threads on in \
             the firmware, and start the machine again.",
        )),
        _ => None,
    }
}

fn offline(scene: &Scene<'_>) -> Option<Finding> {
    let (present, _) = scene.set::<CpuId>(PRESENT)?;
    let (online, reading) = scene.set::<CpuId>(ONLINE)?;
    let offline: CpuSet = present.difference(&online);
    if offline.is_empty() {
        return None;
    }
    let list = offline.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" ");
    let finding = Finding::warning(
        "cpus_offline",
        match offline.len() {
            1 => format!("Cpu {offline} is offline"),
            _ => format!("Cpus {offline} are offline"),
        },
        "Nothing runs there, and nodes that look alike are not: the one with fewer cpus finishes \
         last.",
    );
    let read = [FileReading { file: PRESENT.to_owned(), value: present.to_string() }, reading];
    Some(finding.from(read).command(format!(
        "for cpu in {list}; do echo 1 > /sys/devices/system/cpu/cpu$cpu/online; done"
    )))
}

/// Cores with different numbers of threads, unless hidden cpus explain it.
fn uneven(scene: &Scene<'_>) -> Option<Finding> {
    let machine = scene.machine();
    let counts: BTreeSet<usize> = machine.cores.iter().map(|core| core.cpus.len()).collect();
    if counts.len() < 2 || !machine.hidden.cpus.is_empty() {
        return None;
    }
    let counts = counts.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
    let finding = Finding::note(
        "threads_uneven",
        format!("Cores have {counts} hardware threads"),
        "The cores are of different kinds, or some threads are off: equal shares of work take \
         unequal time on them.",
    );
    Some(finding.advice("Give threads cores of one kind, or let them take work as they finish."))
}
