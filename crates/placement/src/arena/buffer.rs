//! [`NodeBuffer`]: bytes with a home.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64};

use atoll_topology::NodeId;

use super::shared::{ArenaShared, Origin};
use crate::budget::Charge;
use crate::{Mapping, PageRange, PlacementError};

/// Bytes that lie on a known node. Their address is stable until the buffer is dropped, is a
/// multiple of 64, and is shared safely between threads; memory goes back to its arena on drop.
///
/// Inside an `Arc` it serves as the owner of an Arrow buffer
/// (`Buffer::from_custom_allocation(pointer, length, Arc<NodeBuffer>)`): all bytes are initialised
/// from the start, and nothing can write to them once the `Arc` is shared.
#[derive(Debug)]
pub struct NodeBuffer {
    memory: Mapping,
    len: usize,
    wanted: Option<NodeId>,
    home: Option<NodeId>,
    origin: Origin,
    arena: Arc<ArenaShared>,
    /// Given back when the buffer is dropped.
    _charge: Charge,
}

// The state of a buffer is consistent whenever a panic can unwind through it: the arena's locks
// are held for bookkeeping only, and a buffer has no invariant over its bytes. (The compiler cannot
// infer this because of the trait objects of kernel and budget.)
impl UnwindSafe for NodeBuffer {}
impl RefUnwindSafe for NodeBuffer {}

impl NodeBuffer {
    /// `len` bytes of `memory`, with the node wanted and the home found.
    pub(super) fn new(
        memory: Mapping,
        len: usize,
        (wanted, home): (Option<NodeId>, Option<NodeId>),
        origin: Origin,
        arena: Arc<ArenaShared>,
        charge: Charge,
    ) -> Self {
        Self { memory, len, wanted, home, origin, arena, _charge: charge }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Room in bytes; what the budget is charged.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// The node its pages lie on, as found when they were touched. `None` for an unplaced buffer,
    /// and if pages are on several nodes or could be neither placed nor looked up.
    pub fn home(&self) -> Option<NodeId> {
        self.home
    }

    /// The node it was asked for; `None` for an unplaced buffer.
    pub fn wanted(&self) -> Option<NodeId> {
        self.wanted
    }

    /// First byte: never null, also of an empty buffer.
    pub fn as_ptr(&self) -> *const u8 {
        self.memory.start().as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory is mapped, initialised (by the kernel or a former use), longer than
        // `len`, and written through `&mut self` only.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr(), self.len) }
    }

    /// The bytes, to be written while no other reference to the buffer exists.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().as_ptr(), self.len) }
    }

    /// The bytes, to be read and written by several threads at a time.
    pub fn as_atomic_bytes(&mut self) -> &[AtomicU8] {
        let bytes = self.as_mut_slice();
        // SAFETY: an `AtomicU8` has the size and alignment of a `u8`, and the exclusive borrow keeps
        // every access that is not atomic away while the result lives.
        unsafe { std::slice::from_raw_parts(bytes.as_mut_ptr().cast(), bytes.len()) }
    }

    /// The same as whole words of eight bytes; a remainder at the end is not included.
    pub fn as_atomic_words(&mut self) -> &[AtomicU64] {
        let bytes = self.as_mut_slice();
        let words = bytes.len() / size_of::<AtomicU64>();
        // SAFETY: as above; the start is a multiple of 64, and the words do not reach beyond the end.
        unsafe { std::slice::from_raw_parts(bytes.as_mut_ptr().cast(), words) }
    }

    /// Makes it shorter or longer, within its capacity; bytes gained are unspecified.
    pub fn set_len(&mut self, len: usize) -> Result<(), PlacementError> {
        let capacity = self.capacity();
        if len > capacity {
            return Err(PlacementError::BeyondCapacity { asked: len, capacity });
        }
        self.len = len;
        Ok(())
    }

    /// Its bytes as a range of pages to be [verified](crate::verify_pages).
    pub fn pages(&self) -> PageRange {
        PageRange { wanted: self.wanted, start: self.memory.address(), len: self.len }
    }
}

impl AsRef<[u8]> for NodeBuffer {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Drop for NodeBuffer {
    fn drop(&mut self) {
        self.arena.give(self.memory, self.origin);
    }
}
