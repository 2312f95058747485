//! Time spent on cpus: `clock_gettime`.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;

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
