//! Thread placement: `sched_setaffinity`, `sched_getaffinity`, `getcpu`, `gettid`.

use super::{BITMAP_NUMBER_MAX, Bitmap, CallError};

/// Where the calling thread is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuAndNode {
    /// Number of the cpu.
    pub cpu: u32,
    /// Number of its node.
    pub node: u32,
}

/// Cpu and node the calling thread runs on; stale as soon as it is known unless the thread is bound.
#[doc(alias = "sched_getcpu")]
pub fn getcpu() -> Result<CpuAndNode, CallError> {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    let cache = std::ptr::null::<u8>();
    // SAFETY: the kernel writes the two integers; the third argument has been unused since 2.6.24.
    match unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, cache) } {
        0 => Ok(CpuAndNode { cpu, node }),
        _ => Err(CallError::last("getcpu")),
    }
}

/// The kernel's number of the calling thread.
pub fn gettid() -> i32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// Restricts a thread to the cpus of the bitmap; `tid` 0 is the calling thread. Cpus that are not
/// there or outside the cpuset are left out by the kernel; `EINVAL` when none remains.
pub fn sched_setaffinity(tid: i32, cpus: &Bitmap) -> Result<(), CallError> {
    let bytes = size_of_val(cpus.words());
    // SAFETY: the kernel reads `bytes` bytes of the mask, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, bytes, cpus.words().as_ptr()) } {
        0 => Ok(()),
        _ => Err(CallError::last("sched_setaffinity")),
    }
}

/// Numbers of the cpus a thread may run on; `tid` 0 is the calling thread.
pub fn sched_getaffinity(tid: i32) -> Result<Vec<u32>, CallError> {
    let mut cpus = Bitmap::with_room(BITMAP_NUMBER_MAX as usize + 1);
    let bytes = size_of_val(cpus.words());
    let mask = cpus.words_mut().as_mut_ptr();
    // SAFETY: the kernel writes at most `bytes` bytes into the mask, which has that many.
    match unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, bytes, mask) } {
        0.. => Ok(cpus.numbers()),
        _ => Err(CallError::last("sched_getaffinity")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_bound_and_its_neighbours_stay_free() {
        let before = sched_getaffinity(0).unwrap();
        let last = *before.last().unwrap();
        let thread = std::thread::spawn(move || {
            sched_setaffinity(0, &Bitmap::from_numbers([last]).unwrap()).unwrap();
            (sched_getaffinity(gettid()).unwrap(), getcpu().unwrap().cpu)
        });
        assert_eq!(thread.join().unwrap(), (vec![last], last));
        assert_eq!(sched_getaffinity(0).unwrap(), before);
    }

    #[test]
    fn binding_to_no_cpu_or_to_one_that_is_not_there_is_an_error() {
        for cpus in [Bitmap::default(), Bitmap::from_numbers([BITMAP_NUMBER_MAX]).unwrap()] {
            let error = sched_setaffinity(0, &cpus).unwrap_err();
            assert_eq!((error.call, error.errno_name()), ("sched_setaffinity", "EINVAL"));
        }
    }

    #[test]
    fn a_thread_that_is_not_there_is_an_error() {
        assert_eq!(sched_getaffinity(i32::MAX).unwrap_err().errno_name(), "ESRCH");
    }
}
