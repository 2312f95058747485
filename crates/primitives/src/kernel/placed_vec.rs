//! Growable arrays in memory with a home.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::{Buffer, i256};
use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::NodeId;

/// Numbers for which any bits are a valid value.
///
/// # Safety
/// Any bits are a valid value, there is no padding, and the alignment is at most 64.
pub(crate) unsafe trait Plain:
    Copy + Default + PartialEq + Send + Sync + 'static
{
}

// SAFETY: plain numbers, without padding, aligned to 16 at most.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for i128 {}
// SAFETY: two numbers of 128 bits, one after the other.
unsafe impl Plain for i256 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}

/// A vector whose memory has a home and is charged to the arena's budget.
#[derive(Debug)]
pub(crate) struct PlacedVec<T> {
    arena: Arena,
    home: Option<NodeId>,
    memory: Option<NodeBuffer>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Plain> PlacedVec<T> {
    /// An empty vector.
    pub(crate) fn new(arena: &Arena, home: Option<NodeId>) -> Self {
        Self { arena: arena.clone(), home, memory: None, len: 0, of: PhantomData }
    }

    /// An empty vector of other numbers with the same home.
    pub(crate) fn beside<V: Plain>(&self) -> PlacedVec<V> {
        PlacedVec::new(&self.arena, self.home)
    }

    /// Makes it at least `len` long; new elements are `fill`.
    pub(crate) fn grow(&mut self, len: usize, fill: T) -> Result<(), PlacementError> {
        if len > self.len {
            self.reserve(len)?;
            let before = std::mem::replace(&mut self.len, len);
            self.as_mut_slice()[before..].fill(fill);
        }
        Ok(())
    }

    /// Makes it empty and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Truncates it to `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends a value.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), PlacementError> {
        self.grow(self.len + 1, value)
    }

    /// Appends values.
    #[inline]
    pub(crate) fn extend(&mut self, values: &[T]) -> Result<(), PlacementError> {
        let before = self.len;
        self.reserve(before + values.len())?;
        self.len += values.len();
        self.as_mut_slice()[before..].copy_from_slice(values);
        Ok(())
    }

    /// Copies it into memory of another node.
    pub(crate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        let mut moved = Self::new(&self.arena, Some(home));
        if self.len > 0 {
            moved.grow(self.len, T::default())?;
            moved.as_mut_slice().copy_from_slice(self.as_slice());
        }
        *self = moved;
        Ok(())
    }

    /// Reserves memory for this many values in total.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), PlacementError> {
        let room = self.memory.as_ref().map_or(0, |memory| memory.len() / size_of::<T>());
        if len <= room {
            return Ok(());
        }
        let bytes = len.max(room * 2).max(8).saturating_mul(size_of::<T>());
        let mut memory = self.arena.allocate(self.home, bytes)?;
        let used = self.len * size_of::<T>();
        if let Some(before) = &self.memory {
            memory.as_mut_slice()[..used].copy_from_slice(&before.as_slice()[..used]);
        }
        self.memory = Some(memory);
        Ok(())
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, NodeBuffer::capacity)
    }

    /// The values.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        let start = match &self.memory {
            Some(memory) => memory.as_ptr().cast(),
            None => NonNull::<T>::dangling().as_ptr().cast_const(),
        };
        // SAFETY: the memory starts at a multiple of 64 and holds `len` values (`reserve`), which
        // were written by `grow`; any bits are a value (`Plain`).
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }

    /// The values, for writing.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        let start = match &mut self.memory {
            Some(memory) => memory.as_mut_slice().as_mut_ptr().cast(),
            None => NonNull::dangling().as_ptr(),
        };
        // SAFETY: as in `as_slice`, and the borrow is exclusive; `reserve` leaves bytes that are
        // initialised, so that `grow` may take them for values before it fills them.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }

    /// The values as an Arrow buffer over the same memory.
    pub(crate) fn into_buffer(self) -> Buffer {
        let bytes = self.len * size_of::<T>();
        match self.memory {
            // Aligned for any of the numbers, though it has none.
            None => Buffer::from_vec(Vec::<i128>::new()),
            Some(memory) => {
                let memory = Arc::new(memory);
                let start = NonNull::from(memory.as_slice()).cast::<u8>();
                // SAFETY: the first `bytes` of the memory are initialised, the buffer keeps the memory
                // alive through its Arc, and it can no longer be written.
                unsafe { Buffer::from_custom_allocation(start, bytes, memory) }
            }
        }
    }
}
