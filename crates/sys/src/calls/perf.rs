//! Counters of the processor and the kernel for the calling thread: `perf_event_open`.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::CallError;

/// The counted event, in user code of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfEvent {
    /// Instructions that were carried out.
    Instructions,
    /// Cycles of the core's clock.
    Cycles,
    /// Loads that reach the last-level cache.
    LlcLoads,
    /// Loads that miss it.
    LlcLoadMisses,
    /// Migrations of the thread to another cpu.
    Migrations,
    /// Context switches of the thread.
    ContextSwitches,
}

impl PerfEvent {
    /// Type and configuration (`linux/perf_event.h`).
    fn numbers(self) -> (u32, u64) {
        /// `PERF_TYPE_HARDWARE`.
        const HARDWARE: u32 = 0;
        /// `PERF_TYPE_SOFTWARE`.
        const SOFTWARE: u32 = 1;
        /// `PERF_TYPE_HW_CACHE`: cache | operation << 8 | result << 16.
        const HW_CACHE: u32 = 3;
        /// `PERF_COUNT_HW_CACHE_LL`, with operation read (0).
        const LLC_READ: u64 = 2;
        /// `PERF_COUNT_HW_CACHE_RESULT_MISS`.
        const MISS: u64 = 1 << 16;
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::LlcLoads => (HW_CACHE, LLC_READ),
            Self::LlcLoadMisses => (HW_CACHE, LLC_READ | MISS),
            Self::ContextSwitches => (SOFTWARE, 3),
            Self::Migrations => (SOFTWARE, 4),
        }
    }

    /// Whether the kernel itself counts it: such events happen in the kernel.
    fn is_kernels(self) -> bool {
        self.numbers().0 == 1
    }
}

/// The first version of `struct perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

/// A counter of a thread, running since it was opened.
#[derive(Debug)]
pub struct PerfCounter {
    file: OwnedFd,
}

impl PerfCounter {
    /// Counts from now on. `ENOENT` where the processor has no such counter (most virtual machines),
    /// `EACCES` and `EPERM` where `kernel.perf_event_paranoid` or a container forbids it, `ENOSYS`
    /// where the kernel was built without.
    #[doc(alias = "perf_event_open")]
    pub fn open(event: PerfEvent) -> Result<Self, CallError> {
        Self::of_thread(event, 0, 0)
    }

    /// Counts events of another thread from now on, and of threads that it starts. Errors as for [`open`](Self::open);
    /// `ESRCH` if there is no such thread, `EACCES` without the right to trace it.
    pub fn open_other(event: PerfEvent, tid: u32) -> Result<Self, CallError> {
        /// `inherit`.
        const INHERIT: u64 = 1 << 1;
        match i32::try_from(tid) {
            Ok(tid @ 1..) => Self::of_thread(event, tid, INHERIT),
            _ => Err(CallError { call: "perf_event_open", errno: libc::ESRCH }),
        }
    }

    /// `tid` 0 is the calling thread.
    fn of_thread(event: PerfEvent, tid: i32, flags: u64) -> Result<Self, CallError> {
        /// `exclude_kernel | exclude_hv`.
        const USER_ONLY: u64 = 1 << 5 | 1 << 6;
        /// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
        const TIMES: u64 = 1 | 2;
        /// `PERF_FLAG_FD_CLOEXEC`.
        const CLOEXEC: u64 = 8;
        let (kind, config) = event.numbers();
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: TIMES,
            flags: flags | if event.is_kernels() { 0 } else { USER_ONLY },
            ..Attributes::default()
        };
        let (any_cpu, no_group) = (-1_i32, -1_i32);
        // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                tid,
                any_cpu,
                no_group,
                CLOEXEC,
            )
        };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(CallError::last("perf_event_open"));
        }
        // SAFETY: the descriptor was just made and is owned here alone.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The count so far. If there are more counters than the processor has, each runs for part of the time, and the
    /// count is scaled up.
    pub fn read(&self) -> Result<u64, CallError> {
        let mut values = [0_u64; 3];
        let bytes = size_of_val(&values);
        let buffer = values.as_mut_ptr();
        // SAFETY: the kernel writes at most `bytes` bytes into the values.
        let len = unsafe { libc::read(self.file.as_raw_fd(), buffer.cast(), bytes) };
        if usize::try_from(len).ok() != Some(bytes) {
            return Err(CallError::last("read"));
        }
        let [count, enabled, running] = values;
        Ok(match running {
            0 => 0,
            _ => (u128::from(count) * u128::from(enabled) / u128::from(running)) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::permitted;
    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_counted_as_taken_off_its_cpu() {
        let Some(counter) = permitted(PerfCounter::open(PerfEvent::ContextSwitches)) else {
            return;
        };
        let before = counter.read().unwrap();
        let word = std::sync::atomic::AtomicU32::new(0);
        super::super::futex_wait(&word, 0, std::time::Duration::from_millis(1)).unwrap();
        assert!(counter.read().unwrap() > before);
    }

    #[test]
    fn another_thread_is_counted_by_its_number() {
        let own = super::super::gettid().cast_unsigned();
        let open = move || PerfCounter::open_other(PerfEvent::ContextSwitches, own);
        let counter = std::thread::spawn(open).join().unwrap();
        let Some(counter) = permitted(counter) else { return };
        let before = counter.read().unwrap();
        let word = std::sync::atomic::AtomicU32::new(0);
        super::super::futex_wait(&word, 0, std::time::Duration::from_millis(1)).unwrap();
        assert!(counter.read().unwrap() > before);
        let none = PerfCounter::open_other(PerfEvent::ContextSwitches, 0);
        assert_eq!(none.unwrap_err().errno_name(), "ESRCH");
    }

    #[test]
    fn a_counter_that_the_processor_lacks_is_an_error_with_its_name() {
        for event in [PerfEvent::LlcLoads, PerfEvent::LlcLoadMisses] {
            match PerfCounter::open(event) {
                Ok(counter) => assert!(counter.read().is_ok()),
                Err(error) => assert_eq!(error.call, "perf_event_open"),
            }
        }
    }
}
