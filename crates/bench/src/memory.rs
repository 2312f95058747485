//! Memory of a process, as the kernel counts it.

use anyhow::{Context, Result};

/// A figure of `/proc/self/status` in bytes: `VmRSS` (resident now) or `VmHWM` (its peak).
pub(crate) fn of_this_process(field: &str) -> Result<u64> {
    let file = "/proc/self/status";
    let status = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    of_status(&status, field).with_context(|| format!("{file} has no {field}"))
}

/// A field such as `VmRSS:   1234 kB` of a process's status, in bytes.
pub(crate) fn of_status(text: &str, field: &str) -> Option<u64> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number: u64 = values.next()?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::of_status;

    #[test]
    fn fields_of_procfs_are_kilobytes() {
        let text = "VmHWM:\t   2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(of_status(text, "VmRSS"), Some(1 << 20));
        assert_eq!(of_status(text, "VmSwap"), None);
        assert_eq!(of_status("VmRSS: many kB", "VmRSS"), None);
    }
}
