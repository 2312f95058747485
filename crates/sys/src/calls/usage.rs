//! What this process has used: `getrusage`.

use std::time::Duration;

/// Resources that all threads of this process have used so far, ended ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Time on cpus in user code.
    pub time_user: Duration,
    /// Time on cpus in the kernel.
    pub time_system: Duration,
    /// Context switches because a thread waited.
    pub switches_voluntary: u64,
    /// Context switches because another thread had its turn.
    pub switches_involuntary: u64,
    /// Largest resident memory, in KiB.
    pub resident_kib_max: u64,
}

/// The usage of this process.
#[doc(alias = "getrusage")]
pub fn process_usage() -> ProcessUsage {
    // SAFETY: all bits zero are a valid rusage, which is plain integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the one structure; the call cannot fail for the calling process.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let time = |value: libc::timeval| {
        let micros = u64::try_from(value.tv_usec).unwrap_or(0);
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
            + Duration::from_micros(micros)
    };
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    ProcessUsage {
        time_user: time(usage.ru_utime),
        time_system: time(usage.ru_stime),
        switches_voluntary: count(usage.ru_nvcsw),
        switches_involuntary: count(usage.ru_nivcsw),
        resident_kib_max: count(usage.ru_maxrss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_grows_with_work_and_waiting() {
        let before = process_usage();
        let start = crate::thread_cpu_time();
        while crate::thread_cpu_time() - start < Duration::from_millis(30) {}
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiting = receiver.recv_timeout(Duration::from_millis(2));
        drop(sender);
        assert!(waiting.is_err());
        let after = process_usage();
        let time = |it: ProcessUsage| it.time_user + it.time_system;
        assert!(time(after) - time(before) >= Duration::from_millis(20), "{before:?} {after:?}");
        assert!(after.switches_voluntary > before.switches_voluntary);
        assert!(after.resident_kib_max > 0);
    }
}
