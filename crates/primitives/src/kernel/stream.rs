//! Stores that go to memory without reading the line first and without taking room in the caches.

/// Copies `words` 64-bit words.
///
/// # Safety
/// Both ranges are valid for `words` words and do not overlap; `to` is a multiple of 64, `words` of 8.
/// What was stored is seen by other threads after [`fence`].
#[inline(always)]
pub(super) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    #[cfg(target_feature = "avx2")]
    {
        use std::arch::x86_64::{_mm256_load_si256, _mm256_stream_si256};
        let mut at = 0;
        while at < words {
            // SAFETY: the caller's ranges hold `words` words from starts that are multiples of 64.
            unsafe {
                _mm256_stream_si256(to.add(at).cast(), _mm256_load_si256(from.add(at).cast()))
            };
            at += 4;
        }
    }
    #[cfg(not(target_feature = "avx2"))]
    {
        // SAFETY: the caller's ranges hold `words` words and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, words) };
    }
}

/// Makes streaming stores visible to whoever is told of them afterwards.
#[inline]
pub(super) fn fence() {
    #[cfg(target_feature = "sse2")]
    {
        // SAFETY: the instruction only orders stores.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}

/// Asks for the cache line at an address. Any address will do: a prefetch never faults.
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
