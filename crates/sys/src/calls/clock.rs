//! Time spent on cpus: `clock_gettime`.

use std::time::Duration;

use super::CallError;

/// Time that the calling thread has spent on cpus, in the kernel too.
#[doc(alias = "CLOCK_THREAD_CPUTIME_ID")]
pub fn thread_cpu_time() -> Duration {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time that all threads of this process have spent on cpus, ended ones included.
#[doc(alias = "CLOCK_PROCESS_CPUTIME_ID")]
pub fn process_cpu_time() -> Duration {
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the one structure. Both clocks exist since Linux 2.6.12.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Time that all threads of another process have spent on cpus, ended ones included, to the nanosecond:
/// the kernel lets every user ask. `ESRCH` where there is no such process.
#[doc(alias = "clock_getcpuclockid")]
pub fn process_cpu_time_of(pid: u32) -> Result<Duration, CallError> {
    // 0 would be the calling process.
    let Some(number) = i32::try_from(pid).ok().filter(|number| *number > 0) else {
        return Err(CallError { call: "clock_getcpuclockid", errno: libc::ESRCH });
    };
    let mut clock = 0;
    // SAFETY: the call writes the one number.
    match unsafe { libc::clock_getcpuclockid(number, &raw mut clock) } {
        0 => {}
        errno => return Err(CallError { call: "clock_getcpuclockid", errno }),
    }
    asked(clock)
}

/// Time that another thread of this process has spent on cpus. `ESRCH` where it has ended.
pub fn thread_cpu_time_of(tid: u32) -> Result<Duration, CallError> {
    // The kernel's number of a thread's clock: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED below the inverted number.
    asked(((!tid << 3) | 6).cast_signed())
}

fn asked(clock: libc::clockid_t) -> Result<Duration, CallError> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the one structure.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)),
        // What ended in the meantime is an unknown clock to the kernel.
        _ => Err(CallError { call: "clock_gettime", errno: libc::ESRCH }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_process_is_found_by_its_number() {
        let before = process_cpu_time();
        let asked = process_cpu_time_of(std::process::id()).unwrap();
        assert!(before <= asked && asked <= process_cpu_time());
        for pid in [0, 4_194_999, u32::MAX] {
            assert_eq!(process_cpu_time_of(pid).unwrap_err().errno_name(), "ESRCH", "{pid}");
        }
    }

    #[test]
    fn the_clock_of_a_thread_is_found_by_its_number() {
        let own = crate::gettid().cast_unsigned();
        let before = thread_cpu_time();
        let asked = std::thread::spawn(move || thread_cpu_time_of(own).unwrap()).join().unwrap();
        assert!(before <= asked && asked <= thread_cpu_time());
        assert_eq!(thread_cpu_time_of(4_194_999).unwrap_err().errno_name(), "ESRCH");
    }

    #[test]
    fn the_clock_of_a_thread_stands_still_while_others_work() {
        let before = thread_cpu_time();
        let worker = std::thread::spawn(|| {
            let start = thread_cpu_time();
            while thread_cpu_time() - start < Duration::from_millis(20) {}
        });
        worker.join().unwrap();
        assert!(thread_cpu_time() - before < Duration::from_millis(20));
        assert!(process_cpu_time() >= Duration::from_millis(20));
    }
}
