//! Words shared by threads and processes, which can wait on them: `memfd_create`, `futex`.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::CallError;

/// A few atomic words shared by this process and the children that inherit the descriptor.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU32>,
    count: usize,
    file: OwnedFd,
}

// SAFETY: the memory is mapped until drop and reached through atomics only.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates this number of words, all zero. Children inherit the descriptor across `exec`.
    #[doc(alias = "memfd_create")]
    pub fn create(count: usize) -> Result<Self, CallError> {
        // SAFETY: the name is a C string of its own; the call makes a new descriptor.
        let fd = unsafe { libc::memfd_create(c"atoll".as_ptr(), 0) };
        if fd < 0 {
            return Err(CallError::last("memfd_create"));
        }
        // SAFETY: the descriptor was just made and is owned here alone.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let len = i64::try_from(count.saturating_mul(size_of::<AtomicU32>())).unwrap_or(i64::MAX);
        // SAFETY: plain integers.
        if unsafe { libc::ftruncate(fd, len) } != 0 {
            return Err(CallError::last("ftruncate"));
        }
        Self::map(file, count)
    }

    /// Maps the words of an inherited descriptor; `EINVAL` if the file is shorter.
    pub fn inherited(fd: RawFd, count: usize) -> Result<Self, CallError> {
        // SAFETY: plain integers; the copy is a descriptor of our own, so closing it is harmless
        // whatever the number was.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(CallError::last("fcntl(F_DUPFD_CLOEXEC)"));
        }
        // SAFETY: the descriptor was just made and is owned here alone.
        let file = unsafe { OwnedFd::from_raw_fd(copy) };
        // SAFETY: plain integers; asks for the file's end.
        let len = unsafe { libc::lseek(copy, 0, libc::SEEK_END) };
        let is_long = usize::try_from(len).is_ok_and(|len| len / size_of::<AtomicU32>() >= count);
        if !is_long {
            return Err(CallError { call: "lseek", errno: libc::EINVAL });
        }
        Self::map(file, count)
    }

    fn map(file: OwnedFd, count: usize) -> Result<Self, CallError> {
        let len = count.saturating_mul(size_of::<AtomicU32>());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: without MAP_FIXED the kernel picks a free range, so no memory in use is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(CallError::last("mmap"));
        }
        let start = NonNull::new(start.cast());
        let start = start.ok_or(CallError { call: "mmap", errno: libc::ENOMEM })?;
        Ok(Self { start, count, file })
    }

    /// The descriptor's number, for a child.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: mapped and zeroed by the kernel until drop, aligned to a page, and written through
        // atomics only, in every process.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let len = self.count.saturating_mul(size_of::<AtomicU32>());
        // SAFETY: the range was mapped by `map`, and references to it borrow from `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), len) };
    }
}

/// Sleeps while the word has this value: until [`futex_wake`], a signal, or the time is over. Returns
/// at once where it has another value. Works between processes.
#[doc(alias = "FUTEX_WAIT")]
pub fn futex_wait(word: &AtomicU32, expected: u32, time: Duration) -> Result<(), CallError> {
    let time = libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // SAFETY: the kernel reads the word and the time, both of which outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const time)
    };
    if result == 0 {
        return Ok(());
    }
    match CallError::last("futex") {
        CallError { errno: libc::EAGAIN | libc::EINTR | libc::ETIMEDOUT, .. } => Ok(()),
        error => Err(error),
    }
}

/// Wakes all threads that [wait](futex_wait) on the word.
#[doc(alias = "FUTEX_WAKE")]
pub fn futex_wake(word: &AtomicU32) -> Result<(), CallError> {
    // SAFETY: the kernel uses the address to find who waits and leaves the memory alone.
    match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) } {
        0.. => Ok(()),
        _ => Err(CallError::last("futex")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_the_same_through_every_descriptor() {
        let words = SharedWords::create(3).unwrap();
        let again = SharedWords::inherited(words.descriptor(), 3).unwrap();
        words.words()[2].store(7, Ordering::Release);
        assert_eq!(again.words()[2].load(Ordering::Acquire), 7);
        drop(words);
        assert_eq!(again.words()[2].load(Ordering::Acquire), 7);
    }

    #[test]
    fn a_descriptor_that_is_not_there_or_too_short_is_an_error() {
        assert_eq!(SharedWords::inherited(-1, 1).unwrap_err().errno_name(), "EBADF");
        let words = SharedWords::create(3).unwrap();
        let error = SharedWords::inherited(words.descriptor(), 4).unwrap_err();
        assert_eq!(error.errno_name(), "EINVAL");
    }

    #[test]
    fn who_waits_is_woken_by_a_new_value_and_never_waits_for_an_old_one() {
        let shared = SharedWords::create(1).unwrap();
        let word = &shared.words()[0];
        futex_wait(word, 1, Duration::from_secs(600)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    futex_wait(word, 0, Duration::from_secs(600)).unwrap();
                }
            });
            word.store(1, Ordering::Release);
            futex_wake(word).unwrap();
        });
        futex_wait(word, 1, Duration::from_micros(1)).unwrap();
    }
}
