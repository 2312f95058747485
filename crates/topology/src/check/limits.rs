//! Control groups that grant less than the machine has.

use super::{FileReading, Finding, scene::Scene};
use crate::{CpuTimeLimit, MemoryLimit};

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let limits = &scene.machine().limits;
    let cpus = scene.machine().cpus.len() as f64;
    let cpu_time = limits.cpu_time.iter().filter(|limit| limit.cpus < cpus).map(cpu_time);
    limits.memory.iter().map(|limit| memory(scene, limit)).chain(cpu_time).collect()
}

fn memory(scene: &Scene<'_>, limit: &MemoryLimit) -> Finding {
    let machine = scene.machine().memory();
    let what = format!("A control group grants {} of the machine's {machine}", limit.bytes);
    let why = "A database that sizes its buffers by the machine's memory is killed, or reclaims its \
               own pages all the time, once it reaches the limit.";
    Finding::note("memory_limit", what, why)
        .from([FileReading { file: limit.file.clone(), value: limit.bytes.0.to_string() }])
        .command(format!("echo {} > {}", unlimited(&limit.file), quoted(&limit.file)))
}

fn cpu_time(limit: &CpuTimeLimit) -> Finding {
    let what = format!("A control group grants the time of {:.2} cpus", limit.cpus);
    let why = "With a thread for every cpu the quota is used up early in each period, and then all \
               threads stand still until the next one, also those that hold locks.";
    Finding::note("cpu_limit", what, why)
        .from([FileReading { file: limit.file.clone(), value: format!("{:.2} cpus", limit.cpus) }])
        .command(format!("echo {} > {}", unlimited(&limit.file), quoted(&limit.file)))
}

/// The value that removes the limit, in version 2 and version 1 of control groups.
fn unlimited(file: &str) -> &'static str {
    let version_two = file.ends_with(".max") || file.ends_with(".high");
    if version_two { "max" } else { "-1" }
}

/// The path quoted for a shell.
pub(super) fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-,:@+=".contains(c);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}
