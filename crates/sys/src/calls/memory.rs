//! Anonymous mappings and operations on their pages.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::CallError;

/// Size of a base page in bytes.
#[doc(alias = "sysconf")]
pub fn page_size() -> usize {
    // SAFETY: sysconf reads a constant of the process and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Maps `len` bytes of zeroed, private, anonymous memory without touching it and without reserving
/// swap. `len` is rounded up to pages by the kernel and must not be zero.
#[doc(alias = "MAP_ANONYMOUS")]
pub fn mmap(len: usize) -> Result<NonNull<u8>, CallError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: without MAP_FIXED the kernel picks a free range, so no memory in use is replaced.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(CallError::last("mmap"));
    }
    NonNull::new(start.cast()).ok_or(CallError { call: "mmap", errno: libc::ENOMEM })
}

/// Gives pages back to the kernel.
///
/// # Safety
/// The range came from [`mmap`], whole or in part, and nothing refers to it any more.
pub unsafe fn munmap(start: NonNull<u8>, len: usize) -> Result<(), CallError> {
    // SAFETY: the caller owns the range and has given up every reference to it.
    match unsafe { libc::munmap(start.as_ptr().cast(), len) } {
        0 => Ok(()),
        _ => Err(CallError::last("munmap")),
    }
}

/// Asks for transparent huge pages in the range (`EINVAL` where the kernel has none).
#[doc(alias = "MADV_HUGEPAGE")]
pub fn madvise_hugepage(start: usize, len: usize) -> Result<(), CallError> {
    madvise(start, len, libc::MADV_HUGEPAGE, "madvise(MADV_HUGEPAGE)")
}

/// Touches every page of the range for writing, contents unchanged (Linux 5.14; `EINVAL` before).
#[doc(alias = "MADV_POPULATE_WRITE")]
pub fn madvise_populate_write(start: usize, len: usize) -> Result<(), CallError> {
    const CALL: &str = "madvise(MADV_POPULATE_WRITE)";
    loop {
        match madvise(start, len, libc::MADV_POPULATE_WRITE, CALL) {
            // A signal came in between; what is touched stays touched.
            Err(error) if matches!(error.errno, libc::EINTR | libc::EAGAIN) => {}
            result => return result,
        }
    }
}

/// Only for advice that leaves contents as they are.
fn madvise(start: usize, len: usize, advice: i32, call: &'static str) -> Result<(), CallError> {
    // SAFETY: the kernel checks the range, and none of the advice used here changes contents.
    match unsafe { libc::madvise(start as *mut c_void, len, advice) } {
        0 => Ok(()),
        _ => Err(CallError::last(call)),
    }
}

/// Touches every page that the range overlaps by reading and writing back a byte of the range, for
/// kernels without [`madvise_populate_write`].
///
/// # Safety
/// The range is mapped for reading and writing, and not read or written elsewhere meanwhile.
pub unsafe fn touch_pages(start: NonNull<u8>, len: usize) {
    // Steps of a page from an unaligned start can step over the last page: touch the last byte too.
    for offset in (0..len).step_by(page_size()).chain(len.checked_sub(1)) {
        // SAFETY: the offset lies within the range, which the caller has to itself.
        unsafe {
            let byte = start.as_ptr().add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Whether each page of the range is resident. `start` is a multiple of the page size.
#[doc(alias = "resident")]
pub fn mincore(start: usize, len: usize) -> Result<Vec<bool>, CallError> {
    let mut present = vec![0_u8; len.div_ceil(page_size())];
    // SAFETY: the kernel checks the range and writes one byte a page into `present`.
    match unsafe { libc::mincore(start as *mut c_void, len, present.as_mut_ptr()) } {
        0 => Ok(present.iter().map(|page| page & 1 == 1).collect()),
        _ => Err(CallError::last("mincore")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_absent_until_touched_and_keep_their_contents_when_populated() {
        let page = page_size();
        let start = mmap(4 * page).unwrap();
        let address = start.as_ptr() as usize;
        assert_eq!(mincore(address, 4 * page).unwrap(), [false; 4]);
        // SAFETY: the first page of a fresh mapping of our own.
        unsafe { start.as_ptr().write(7) };
        madvise_populate_write(address, 2 * page).unwrap();
        assert_eq!(mincore(address, 4 * page).unwrap(), [true, true, false, false]);
        // SAFETY: the mapping is ours alone; the range ends two bytes into the last page.
        unsafe { touch_pages(start.add(3), 3 * page - 1) };
        assert_eq!(mincore(address, 4 * page).unwrap(), [true; 4]);
        // SAFETY: as above; then nothing refers to the mapping.
        unsafe {
            assert_eq!(start.as_ptr().read(), 7);
            munmap(start, 4 * page).unwrap();
        }
        assert!(mincore(address, 4 * page).is_err());
    }

    #[test]
    fn a_mapping_larger_than_the_address_space_is_an_error_of_memory() {
        let error = mmap(1 << 62).unwrap_err();
        assert_eq!((error.call, error.errno_name()), ("mmap", "ENOMEM"));
        assert_eq!(mmap(0).unwrap_err().errno_name(), "EINVAL");
    }

    #[test]
    fn advice_on_a_range_that_is_not_mapped_fails_without_harm() {
        let error = madvise_populate_write(page_size(), page_size()).unwrap_err();
        assert_eq!(error.errno_name(), "ENOMEM");
        assert_eq!(madvise_hugepage(1, 1).unwrap_err().errno_name(), "EINVAL");
    }
}
