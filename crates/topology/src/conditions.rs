//! The machine and the kernel settings of a measurement, without which figures are not comparable.

use atoll_sys::Root;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Fingerprint, Machine};

/// Machine, kernel and settings of a measurement. Unreadable values are None.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineConditions {
    /// Version of Atoll.
    pub atoll: String,
    /// Name of the machine.
    #[serde(rename = "machine")]
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Models of the cpus, one for each package.
    pub cpu_models: Vec<String>,
    /// Revision of the cpu's microcode.
    pub microcode: Option<String>,
    /// Nodes that the process may use.
    pub nodes: usize,
    /// Cpus that the process may use.
    pub cpus: usize,
    /// Last-level caches together.
    pub caches_bytes: Bytes,
    /// Memory of those nodes.
    pub memory_bytes: Bytes,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Automatic NUMA balancing: 0 is off.
    pub numa_balancing: Option<String>,
    /// Frequency governor of the first cpu.
    pub governor: Option<String>,
    /// Whether it is the lab, where times are those of the emulator and meaningless.
    pub is_lab: bool,
}

impl MachineConditions {
    /// Reads the conditions of a machine from the kernel's files under `root`.
    pub fn read(machine: &Machine, root: &Root, is_lab: bool) -> Self {
        let models = machine.packages.iter().filter_map(|package| package.model.clone());
        let caches = machine.domains.iter().filter_map(|domain| domain.cache);
        let line = |file: &str| {
            let text = root.read_text(file).ok()?;
            Some(text.lines().next()?.trim().to_owned())
        };
        Self {
            atoll: env!("CARGO_PKG_VERSION").to_owned(),
            name: machine.name.clone(),
            fingerprint: Fingerprint::from_machine(machine).to_string(),
            cpu_models: models.collect(),
            microcode: field(root, "/proc/cpuinfo", "microcode"),
            nodes: machine.nodes.len(),
            cpus: machine.cpus.len(),
            caches_bytes: Bytes(caches.map(|cache| cache.0).sum()),
            memory_bytes: machine.memory(),
            kernel: line("/proc/sys/kernel/osrelease"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|all| chosen(&all)),
            numa_balancing: line("/proc/sys/kernel/numa_balancing"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            is_lab,
        }
    }

    /// The models of the cpus, each named once.
    pub fn models(&self) -> String {
        let mut models = self.cpu_models.clone();
        models.dedup();
        if models.is_empty() { "unknown cpus".to_owned() } else { models.join(", ") }
    }

    /// Kernel, huge pages and balancing in one line.
    pub fn settings(&self) -> String {
        format!(
            "kernel {}, transparent huge pages {}, NUMA balancing {}",
            known(&self.kernel),
            known(&self.transparent_huge_pages),
            known(&self.numa_balancing),
        )
    }
}

/// A condition as text.
pub fn known(condition: &Option<String>) -> &str {
    condition.as_deref().unwrap_or("unknown")
}

/// The first value of `name : value` in a file.
fn field(root: &Root, file: &str, name: &str) -> Option<String> {
    let text = root.read_text(file).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The choice in brackets of `always [madvise] never`.
fn chosen(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(choice, _)| choice).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_in_brackets_is_taken() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("never"), "never");
    }
}
