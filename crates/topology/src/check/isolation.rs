//! Cpus isolated from the scheduler (`isolcpus`) or without its tick (`nohz_full`).

use super::{Finding, scene::Scene};
use crate::CpuId;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let isolated = one(
        scene,
        "isolated",
        "isolcpus",
        "are isolated from the scheduler",
        "Threads run there only when bound to one of them by number, and are never balanced among \
         them: a database bound to the whole set crowds the first.",
    );
    let tickless = one(
        scene,
        "nohz_full",
        "nohz_full",
        "run without the scheduler's tick",
        "That suits one busy thread on each; with more threads than cpus every system call and \
         switch costs more.",
    );
    isolated.into_iter().chain(tickless).collect()
}

fn one(
    scene: &Scene<'_>,
    name: &'static str,
    option: &str,
    what: &str,
    why: &str,
) -> Option<Finding> {
    let (cpus, reading) = scene.set::<CpuId>(&format!("/sys/devices/system/cpu/{name}"))?;
    let finding = || Finding::note(name, format!("Cpus {cpus} {what}"), why).from([reading]);
    let advice = format!(
        "Take '{option}=' from the kernel's command line and start the machine again, unless it is \
         meant so."
    );
    (!cpus.is_empty()).then(|| finding().advice(advice))
}
