//! Stores that write memory without reading the line first and without filling the caches.

use std::sync::LazyLock;

/// Whether they are used: if the program is compiled for processors that have them. `ATOLL_KERNELS=portable` disables
/// them, so that tests run the code of all other processors.
pub(super) fn is_used() -> bool {
    static IS_USED: LazyLock<bool> = LazyLock::new(|| {
        let kernels = std::env::var_os("ATOLL_KERNELS");
        cfg!(target_feature = "avx2") && kernels.is_none_or(|kernels| kernels != "portable")
    });
    *IS_USED
}

/// Copies `words` 64-bit words, with streaming stores if `is_used`.
///
/// # Safety
/// Both ranges are valid for `words` words and do not overlap; `to` is a multiple of 64, `words` of 8.
/// What was stored is seen by other threads after [`fence`].
#[inline(always)]
pub(super) unsafe fn copy(from: *const u64, to: *mut u64, words: usize, is_used: bool) {
    #[cfg(target_feature = "avx2")]
    if is_used {
        use std::arch::x86_64::{_mm256_load_si256, _mm256_stream_si256};
        let mut at = 0;
        while at < words {
            // SAFETY: the caller's ranges hold `words` words from starts that are multiples of 64.
            unsafe {
                _mm256_stream_si256(to.add(at).cast(), _mm256_load_si256(from.add(at).cast()))
            };
            at += 4;
        }
        return;
    }
    // Without AVX2 there are none.
    let _ = is_used;
    // SAFETY: the caller's ranges hold `words` words and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, words) };
}

/// Makes streaming stores visible to threads that synchronize with this one afterwards.
#[inline]
pub(super) fn fence() {
    #[cfg(target_feature = "sse2")]
    {
        // SAFETY: the instruction only orders stores.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}

/// Prefetches the cache line at an address. Any address will do: a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_feature = "sse2")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the caches.
        unsafe { _mm_prefetch(at.cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_feature = "sse2"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portable_kernels_are_run_where_they_are_asked_for() {
        let portable = std::env::var("ATOLL_KERNELS").is_ok_and(|kernels| kernels == "portable");
        assert_eq!(is_used(), cfg!(target_feature = "avx2") && !portable);
    }
}
