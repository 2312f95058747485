//! Copies of any length, bypassing the caches, to memory that is not read soon.

use super::stream;

/// Bytes that streaming copies work on at a time.
const LINE: usize = 64;

/// Copies bytes with streaming stores, except for the ends that do not fill a cache line of the target.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn past_caches(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "source and target have the same length");
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let (from_head, from) = from.split_at(head);
    let (to_head, to) = to.split_at_mut(head);
    to_head.copy_from_slice(from_head);
    let body = from.len() / LINE * LINE;
    let (from_body, from_tail) = from.split_at(body);
    let (to_body, to_tail) = to.split_at_mut(body);
    lines(from_body, to_body);
    to_tail.copy_from_slice(from_tail);
    stream::fence();
}

/// Copies whole lines to a line-aligned target.
fn lines(from: &[u8], to: &mut [u8]) {
    #[cfg(target_feature = "avx2")]
    if stream::is_used() {
        return streamed_lines(from, to);
    }
    to.copy_from_slice(from);
}

#[cfg(target_feature = "avx2")]
fn streamed_lines(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    let (from, _) = from.as_chunks::<LINE>();
    let (to, _) = to.as_chunks_mut::<LINE>();
    for (from, to) in from.iter().zip(to) {
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        debug_assert_eq!(to.align_offset(LINE), 0);
        // SAFETY: both are 64 bytes long; loads need no alignment, and the target starts at a line:
        // the only caller has cut off what comes before the first one.
        unsafe {
            let low = _mm256_loadu_si256(from.cast());
            let high = _mm256_loadu_si256(from.add(32).cast());
            _mm256_stream_si256(to.cast(), low);
            _mm256_stream_si256(to.add(32).cast(), high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_any_length_and_alignment_are_whole_and_touch_nothing_else() {
        let from: Vec<u8> = (0..1000).map(|at| (at * 7 % 251) as u8).collect();
        for (start, target, len) in
            (0..70).flat_map(|at| [(at, 69 - at, 0), (at, 3, at), (1, at, 700)])
        {
            let mut to = vec![255; 1000];
            past_caches(&from[start..start + len], &mut to[target..target + len]);
            assert_eq!(to[target..target + len], from[start..start + len]);
            assert!(to[..target].iter().chain(&to[target + len..]).all(|byte| *byte == 255));
        }
    }
}
