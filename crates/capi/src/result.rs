//! Results: columns in blocks of rows, owned by the library until they are freed.

use std::ffi::{CString, c_char, c_int};

use arrow_array::RecordBatch;

use crate::column::{Column, HeldColumn};
use crate::failure::{CallFailure, c_text, guard};
use crate::foreign;

/// `atoll_result`.
pub struct Rows {
    blocks: Vec<ResultBlock>,
    columns: u32,
    reason: CString,
}

/// A block of rows of a result.
pub(crate) struct ResultBlock {
    rows: usize,
    columns: Vec<HeldColumn>,
}

impl ResultBlock {
    /// Rows of these columns.
    pub(crate) fn new(rows: usize, columns: Vec<HeldColumn>) -> Self {
        Self { rows, columns }
    }

    /// The rows of a batch.
    pub(crate) fn from_batch(batch: &RecordBatch) -> Result<Self, CallFailure> {
        let columns: Result<Vec<HeldColumn>, CallFailure> =
            batch.columns().iter().map(HeldColumn::from_array).collect();
        Ok(Self::new(batch.num_rows(), columns?))
    }
}

impl Rows {
    /// A result of blocks with this number of columns each.
    pub(crate) fn new(blocks: Vec<ResultBlock>, columns: usize, reason: &str) -> Self {
        Self { blocks, columns: columns as u32, reason: c_text(reason) }
    }

    fn column(&self, block: usize, column: u32) -> Result<Column, CallFailure> {
        let beyond = |what: &str, number: usize, count: usize| {
            CallFailure::invalid(format!("{what} {number} is out of range; the result has {count}"))
        };
        let found = self.blocks.get(block).ok_or(beyond("block", block, self.blocks.len()))?;
        let columns = &found.columns;
        let found = columns.get(column as usize);
        let found = found.ok_or(beyond("column", column as usize, columns.len()))?;
        Ok(found.column)
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}

/// Runs the body of a function whose last argument receives its result.
///
/// # Safety
/// Where it is neither null nor misaligned, it points to room for a pointer.
pub(crate) unsafe fn giving(
    to: *mut *mut Rows,
    work: impl FnOnce() -> Result<Rows, CallFailure>,
) -> c_int {
    guard(|| {
        foreign::check("result", to.cast_const(), 1)?;
        // SAFETY: not null and aligned; the caller's room for a pointer.
        unsafe { *to = std::ptr::null_mut() };
        let result = Box::new(work()?);
        // SAFETY: the same.
        unsafe { *to = Box::into_raw(result) };
        Ok(())
    })
}

/// Rows of all blocks.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_result_rows(result: *const Rows) -> usize {
    // SAFETY: the caller's promise.
    let result = unsafe { result.as_ref() };
    result.map_or(0, |result| result.blocks.iter().map(|block| block.rows).sum())
}

/// Number of blocks.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_result_blocks(result: *const Rows) -> usize {
    // SAFETY: the caller's promise.
    let result = unsafe { result.as_ref() };
    result.map_or(0, |result| result.blocks.len())
}

/// Number of columns.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_result_columns(result: *const Rows) -> u32 {
    // SAFETY: the caller's promise.
    let result = unsafe { result.as_ref() };
    result.map_or(0, |result| result.columns)
}

/// A column of a block.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_result_column(
    result: *const Rows,
    block: usize,
    column: u32,
    found: *mut Column,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let result = unsafe { foreign::one("result", result)? };
        foreign::check("found", found.cast_const(), 1)?;
        let column = result.column(block, column)?;
        // SAFETY: not null and aligned; the caller's room for a column.
        unsafe { found.write(column) };
        Ok(())
    })
}

/// The chosen variant and the reason.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_result_reason(result: *const Rows) -> *const c_char {
    // SAFETY: the caller's promise.
    let result = unsafe { result.as_ref() };
    result.map_or(c"".as_ptr(), |result| result.reason.as_ptr())
}

/// Frees a result.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_free_result(result: *mut Rows) {
    guard(|| {
        if !result.is_null() {
            // SAFETY: made of a box by `giving`, and given back once, the caller's promise.
            drop(unsafe { Box::from_raw(result) });
        }
        Ok(())
    });
}
