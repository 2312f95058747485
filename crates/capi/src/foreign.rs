//! Memory of the caller: validated, then borrowed for the duration of a call.

use std::mem::{align_of, size_of};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer, ToByteSlice};

use crate::failure::CallFailure;

/// A pointer to one struct of the caller.
///
/// # Safety
/// Where it is neither null nor misaligned, it points to such a struct, for the time of the call.
pub(crate) unsafe fn one<'a, T>(what: &str, at: *const T) -> Result<&'a T, CallFailure> {
    // SAFETY: as the caller promises.
    let values = unsafe { slice(what, at, 1) }?;
    Ok(&values[0])
}

/// Values of the caller.
///
/// # Safety
/// Where the pointer is neither null nor misaligned, it points to so many values, alive and unchanged for
/// the time of the call.
pub(crate) unsafe fn slice<'a, T>(
    what: &str,
    at: *const T,
    len: usize,
) -> Result<&'a [T], CallFailure> {
    check(what, at, len)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is aligned, not null and within the address space; the rest as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(at, len) })
}

/// Checks that a pointer may point to this number of values.
pub(crate) fn check<T>(what: &str, at: *const T, len: usize) -> Result<(), CallFailure> {
    if len == 0 {
        return Ok(());
    }
    if at.is_null() {
        return Err(CallFailure::invalid(format!("{what}: null pointer for {len} elements")));
    }
    if !at.addr().is_multiple_of(align_of::<T>()) {
        let (at, to) = (at.addr(), align_of::<T>());
        return Err(CallFailure::invalid(format!(
            "{what}: address {at:#x} is not a multiple of {to}"
        )));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    if bytes.and_then(|bytes| at.addr().checked_add(bytes)).is_none() {
        return Err(CallFailure::invalid(format!(
            "{what}: {len} elements exceed the address space"
        )));
    }
    Ok(())
}

/// Bytes of the caller as an Arrow buffer, without copying. What owns them is the caller: dropping the
/// buffer frees nothing.
///
/// # Safety
/// The bytes stay alive and unchanged for as long as the buffer is read: for the time of the call, as
/// primitives return after their last task has ended and results hold nothing of their input.
pub(crate) unsafe fn lend(bytes: &[u8]) -> Buffer {
    if bytes.is_empty() {
        return Buffer::default();
    }
    // SAFETY: a slice is valid for its length; how long, as the caller promises.
    unsafe {
        Buffer::from_custom_allocation(NonNull::from(bytes).cast(), bytes.len(), Arc::new(()))
    }
}

/// Numbers of the caller as an Arrow buffer, without copying.
///
/// # Safety
/// As [`lend`].
pub(crate) unsafe fn lend_numbers<T: ArrowNativeType>(numbers: &[T]) -> ScalarBuffer<T> {
    let bytes = numbers.to_byte_slice();
    // SAFETY: as the caller promises.
    ScalarBuffer::new(unsafe { lend(bytes) }, 0, numbers.len())
}

/// A buffer of the caller for a result, written by this thread or by workers.
#[derive(Debug)]
pub(crate) struct CallerBuffer<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: it is the only one to point to its values, as `&mut [T]` is.
unsafe impl<T: Send> Send for CallerBuffer<T> {}

impl<T: Copy> CallerBuffer<T> {
    /// Room for so many values.
    ///
    /// # Safety
    /// Where the pointer is neither null nor misaligned, it points to room for so many values that no other thread
    /// else reads or writes for the time of the call, and that is not used afterwards.
    pub(crate) unsafe fn new(what: &str, start: *mut T, len: usize) -> Result<Self, CallFailure> {
        check(what, start.cast_const(), len)?;
        Ok(Self { start: if len == 0 { NonNull::dangling().as_ptr() } else { start }, len })
    }

    /// The first values, and the others.
    pub(crate) fn split(self, at: usize) -> (Self, Self) {
        let at = at.min(self.len);
        // `at` is within the room, or just behind it.
        let rest = self.start.wrapping_add(at);
        (Self { start: self.start, len: at }, Self { start: rest, len: self.len - at })
    }

    /// Writes values at a position.
    ///
    /// # Panics
    /// Where they do not fit.
    pub(crate) fn write(&mut self, at: usize, values: impl ExactSizeIterator<Item = T>) {
        assert!(at.checked_add(values.len()).is_some_and(|end| end <= self.len), "beyond the room");
        for (offset, value) in values.enumerate().take(self.len - at) {
            // SAFETY: below the length, by the assertion and by what is taken of an iterator whose
            // length may be a lie; the room is ours alone.
            unsafe { self.start.add(at + offset).write(value) };
        }
    }
}

/// Addresses of a slice or of room.
pub(crate) fn addresses<T>(start: *const T, len: usize) -> Range<usize> {
    start.addr()..start.addr().saturating_add(len.saturating_mul(size_of::<T>()))
}

/// Rejects outputs that overlap each other or an input.
pub(crate) fn apart(
    outputs: &[(&str, Range<usize>)],
    inputs: &[(&str, Range<usize>)],
) -> Result<(), CallFailure> {
    for (number, (name, output)) in outputs.iter().enumerate() {
        for (other, range) in outputs[number + 1..].iter().chain(inputs) {
            if output.start.max(range.start) < output.end.min(range.end) {
                let text = format!("{name} and {other} overlap; pass separate buffers");
                return Err(CallFailure::invalid(text));
            }
        }
    }
    Ok(())
}
