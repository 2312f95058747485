//! The general allocator's memory, counted: what is allocated and not freed, over all threads.
//!
//! Engines charge their memory to a [`Budget`](crate::Budget) by estimates, and some of it not at
//! all. This count has no estimates in it. It is not what the kernel calls resident: memory that the
//! allocator holds ready for the next use is not in it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use atoll_topology::Bytes;

/// Bytes that a thread counts locally before it adds them to the sum: one shared write for many allocations.
/// The sum is off by less than this for each thread.
const OWN_MAX: i64 = 256 << 10;

/// Blocks of this size or more begin at a page. Mimalloc 3 gives those what they ask for, in classes
/// that are whole pages; for any lesser alignment it adds the alignment to the size, and then a block
/// of a power of two, as most columns are, takes the next class: a quarter more.
const PAGED_MIN: usize = 16 << 10;
const PAGE: usize = 4 << 10;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static OWN: Cell<i64> = const { Cell::new(0) };
}

/// An allocator whose memory is counted, for `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct CountedHeap<A>(pub A);

/// Bytes allocated by [`CountedHeap`] and not freed yet; zero if it is not the global
/// allocator.
pub fn heap_allocated() -> Bytes {
    Bytes(ALLOCATED.load(Ordering::Relaxed).max(0) as u64)
}

#[inline]
fn count(bytes: i64) {
    OWN.with(|own| {
        let sum = own.get() + bytes;
        let settled = sum.abs() >= OWN_MAX;
        own.set(if settled { 0 } else { sum });
        if settled {
            // Relaxed: the sum alone matters, no other memory is published through it.
            ALLOCATED.fetch_add(sum, Ordering::Relaxed);
        }
    });
}

/// The layout with which the inner allocator allocates and frees a block.
#[inline]
fn asked(layout: Layout) -> Layout {
    if layout.size() < PAGED_MIN { layout } else { layout.align_to(PAGE).unwrap_or(layout) }
}

// SAFETY: every block is asked for with a layout of its size and at least its alignment, and given back
// with the same one, which `asked` finds again. Counting neither allocates nor panics: the thread's
// count is initialised by the compiler and has no destructor.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountedHeap<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the one that the inner allocator asks for.
        let memory = unsafe { self.0.alloc(asked(layout)) };
        count(if memory.is_null() { 0 } else { layout.size() as i64 });
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { self.0.alloc_zeroed(asked(layout)) };
        count(if memory.is_null() { 0 } else { layout.size() as i64 });
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(memory, asked(layout)) };
        count(-(layout.size() as i64));
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if asked(layout).align() != asked(new).align() {
            // SAFETY: the caller's promises for the block, and the new one is as large as it says.
            return unsafe { self.moved(memory, layout, new) };
        }
        // SAFETY: as above.
        let moved = unsafe { self.0.realloc(memory, asked(layout), size) };
        count(if moved.is_null() { 0 } else { size as i64 - layout.size() as i64 });
        moved
    }
}

impl<A: GlobalAlloc> CountedHeap<A> {
    /// A block of the layout `new` with what is in `memory`, which is freed.
    ///
    /// # Safety
    /// As for [`GlobalAlloc::realloc`]; `new` has a size.
    unsafe fn moved(&self, memory: *mut u8, old: Layout, new: Layout) -> *mut u8 {
        // SAFETY: `new` has a size.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both blocks have as many bytes, and they do not overlap. Then the old one is freed
            // with its own layout, once.
            unsafe {
                ptr::copy_nonoverlapping(memory, moved, old.size().min(new.size()));
                self.dealloc(memory, old);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use super::*;

    /// Held by each test that allocates from a [`CountedHeap`]: the sum is one for the process. That is not the global
    /// allocator of the tests, so nothing else is counted.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Runs a test while no other one here runs, in a thread of its own, whose own count begins at nothing.
    fn alone(test: fn()) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        thread::spawn(test).join().expect("the test holds");
    }

    #[test]
    fn what_is_allocated_is_counted_until_it_is_freed() {
        alone(counted_until_freed);
    }

    fn counted_until_freed() {
        let heap = CountedHeap(System);
        let layout = |len| Layout::from_size_align(len, 64).unwrap();
        let before = heap_allocated().0;
        // SAFETY: the layouts have sizes, and each block is freed with the layout it has then.
        unsafe {
            let small = heap.alloc(layout(100));
            assert_eq!(heap_allocated().0, before, "small amounts wait in the thread's own count");
            let large = heap.alloc_zeroed(layout(1 << 20));
            assert_eq!(heap_allocated().0, before + (1 << 20) + 100);
            let large = heap.realloc(large, layout(1 << 20), 3 << 20);
            assert_eq!(heap_allocated().0, before + (3 << 20) + 100);
            heap.dealloc(large, layout(3 << 20));
            heap.dealloc(small, layout(100));
        }
        assert_eq!(heap_allocated().0, before + 100, "what was settled is the large block");
    }

    #[test]
    fn large_blocks_begin_at_a_page_and_keep_their_bytes_as_they_grow_and_shrink() {
        alone(large_blocks_begin_at_a_page);
    }

    fn large_blocks_begin_at_a_page() {
        let heap = CountedHeap(System);
        let layout = |len| Layout::from_size_align(len, 8).unwrap();
        let sizes = [100, PAGED_MIN - 1, PAGED_MIN, 300_000, PAGED_MIN, 50, 65_536];
        // SAFETY: the layouts have sizes, each block is moved and freed with the layout it has then, and
        // what is read was written.
        unsafe {
            let mut memory = heap.alloc(layout(sizes[0]));
            memory.write_bytes(7, 50);
            for pair in sizes.windows(2) {
                memory = heap.realloc(memory, layout(pair[0]), pair[1]);
                assert!((0..50).all(|at| *memory.add(at) == 7), "{pair:?}");
                assert!(pair[1] < PAGED_MIN || memory.addr() % PAGE == 0, "{pair:?}");
            }
            heap.dealloc(memory, layout(65_536));
            let zeroed = heap.alloc_zeroed(layout(65_536));
            assert!(zeroed.addr() % PAGE == 0 && (0..65_536).all(|at| *zeroed.add(at) == 0));
            heap.dealloc(zeroed, layout(65_536));
        }
    }
}
