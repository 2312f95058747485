//! Memory of the machine, and of this process.

use std::fs;

use atoll_topology::{Bytes, Machine};

/// Share of the available memory that tables and queries may take by default: the rest is for what neither counts, such
/// as allocator overhead and file caches.
const SHARE: f64 = 0.8;

/// The default memory limit: a share of the kernel's available memory or of the control group's limit, whichever is
/// less.
pub(crate) fn limit_default(machine: &Machine) -> Bytes {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    limit(machine, kib(&meminfo, "MemAvailable"))
}

fn limit(machine: &Machine, available: Option<Bytes>) -> Bytes {
    let available = available.unwrap_or_else(|| machine.memory_free());
    let granted = machine.limits.memory.as_ref().map_or(available, |limit| limit.bytes);
    Bytes((available.min(granted).0 as f64 * SHARE) as u64)
}

/// Memory of this process, as the kernel counts it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct ResidentMemory {
    /// Now (`VmRSS`).
    pub(crate) now_bytes: Bytes,
    /// Peak (`VmHWM`).
    pub(crate) peak_bytes: Bytes,
}

impl ResidentMemory {
    /// Reads `/proc/self/status`; None if procfs is not mounted.
    pub(crate) fn of_process() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Some(Self { now_bytes: kib(&status, "VmRSS")?, peak_bytes: kib(&status, "VmHWM")? })
    }
}

/// A field such as `VmRSS:   1234 kB`.
fn kib(text: &str, field: &str) -> Option<Bytes> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number: u64 = values.next()?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(number.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use atoll_topology::MemoryLimit;

    use super::*;

    #[test]
    fn the_default_limit_is_a_share_of_the_narrower_bound() {
        let mut machine = Machine::synthetic("node:1 core:2").unwrap();
        assert_eq!(limit(&machine, Some(Bytes(1000))), Bytes(800));
        let file = "memory.max".to_owned();
        machine.limits.memory = Some(MemoryLimit { bytes: Bytes(500), file });
        assert_eq!(limit(&machine, Some(Bytes(1000))), Bytes(400));
        assert_eq!(limit(&machine, Some(Bytes(100))), Bytes(80));
    }

    #[test]
    fn fields_of_procfs_are_kilobytes() {
        let text = "VmHWM:\t   2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(kib(text, "VmRSS"), Some(Bytes(1 << 20)));
        assert_eq!(kib(text, "VmSwap"), None);
        assert_eq!(kib("VmRSS: many kB", "VmRSS"), None);
    }
}
