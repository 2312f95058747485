//! Words that several workers write together.

use std::sync::atomic::AtomicU64;

use atoll_placement::NodeBuffer;

/// A buffer whose words are read and written by many, as atomics only.
#[derive(Debug)]
pub(crate) struct AtomicWords(NodeBuffer);

impl AtomicWords {
    /// Takes a buffer to be shared.
    pub(crate) fn new(buffer: NodeBuffer) -> Self {
        Self(buffer)
    }

    /// Its words; what is left at the end is not among them.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: a buffer starts at a multiple of 64, any bits are valid, the end is not reached, and
        // the buffer can be reached through this function only.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / 8) }
    }
}
