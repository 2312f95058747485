//! Words that several workers write concurrently.

use std::sync::atomic::AtomicU64;

use atoll_placement::NodeBuffer;

/// A buffer whose words are accessed concurrently, as atomics only.
#[derive(Debug)]
pub(crate) struct AtomicWords(NodeBuffer);

impl AtomicWords {
    /// Makes a buffer shareable.
    pub(crate) fn new(buffer: NodeBuffer) -> Self {
        Self(buffer)
    }

    /// Its words; excludes a remainder at the end.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: a buffer starts at a multiple of 64, any bits are valid, the end is not reached, and
        // the buffer can be reached through this function only.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / 8) }
    }
}
