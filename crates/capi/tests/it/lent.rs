//! A caller's context, columns and accessors of results.

use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};

use atoll::{
    Column, Context, Rows, RowsPart, atoll_close, atoll_error, atoll_free_result, atoll_open,
    atoll_result_blocks, atoll_result_column, atoll_result_reason,
};

pub(crate) const INT32: u32 = 3;
pub(crate) const INT64: u32 = 4;
pub(crate) const UINT64: u32 = 8;
pub(crate) const FLOAT64: u32 = 10;
pub(crate) const DECIMAL128: u32 = 11;
pub(crate) const BOOL: u32 = 12;
pub(crate) const UTF8: u32 = 13;

/// A context, closed when it goes.
pub(crate) struct Open(pub(crate) *mut Context);

impl Open {
    pub(crate) fn new(threads: u32) -> Self {
        let mut context = null_mut();
        // SAFETY: room for a pointer.
        assert_eq!(unsafe { atoll_open(threads, &raw mut context) }, 0, "{}", error());
        Self(context)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: opened above, closed once.
        unsafe { atoll_close(self.0) };
    }
}

/// A result, freed when it goes.
#[derive(Debug)]
pub(crate) struct Found(pub(crate) *mut Rows);

impl Drop for Found {
    fn drop(&mut self) {
        // SAFETY: given by the library, freed once.
        unsafe { atoll_free_result(self.0) };
    }
}

/// What a call that gives a result came to: the result, or code and text.
pub(crate) fn found(call: impl FnOnce(*mut *mut Rows) -> c_int) -> Result<Found, (c_int, String)> {
    // Anything: it is set also when the call fails.
    let mut result = std::ptr::dangling_mut();
    match call(&raw mut result) {
        0 => Ok(Found(result)),
        code => {
            assert!(result.is_null(), "a failed call gives no result");
            Err((code, error()))
        }
    }
}

/// What a call without a result came to.
pub(crate) fn done(code: c_int) -> Result<(), (c_int, String)> {
    if code == 0 { Ok(()) } else { Err((code, error())) }
}

pub(crate) fn error() -> String {
    // SAFETY: a text that lives until the next failed call.
    unsafe { CStr::from_ptr(atoll_error()) }.to_str().unwrap().to_owned()
}

impl Found {
    pub(crate) fn reason(&self) -> String {
        // SAFETY: a text of the result.
        unsafe { CStr::from_ptr(atoll_result_reason(self.0)) }.to_str().unwrap().to_owned()
    }

    pub(crate) fn blocks(&self) -> usize {
        // SAFETY: a result.
        unsafe { atoll_result_blocks(self.0) }
    }

    pub(crate) fn column(&self, block: usize, column: u32) -> Column {
        let mut found = fixed::<i64>(0, &[]);
        // SAFETY: a result, and room for a column.
        let code = unsafe { atoll_result_column(self.0, block, column, &raw mut found) };
        assert_eq!(code, 0, "{}", error());
        found
    }

    /// Values of a column of all blocks, none where null.
    pub(crate) fn values<T: Copy>(&self, column: u32) -> Vec<Option<T>> {
        (0..self.blocks()).flat_map(|block| values(&self.column(block, column))).collect()
    }

    /// Texts of a column of all blocks.
    pub(crate) fn texts(&self, column: u32) -> Vec<Option<String>> {
        let of_block = |block| {
            let column = self.column(block, column);
            assert_eq!(column.data_type, UTF8);
            let all = Column { length: column.bytes, validity: null(), ..column };
            let bytes: Vec<u8> = values(&all).into_iter().flatten().collect();
            let ends = Column {
                length: column.length + 1,
                values: column.offsets.cast(),
                validity: null(),
                ..column
            };
            let ends: Vec<usize> =
                values::<i32>(&ends).into_iter().flatten().map(|end| end as usize).collect();
            let text =
                |row: usize| String::from_utf8(bytes[ends[row]..ends[row + 1]].to_vec()).unwrap();
            (0..column.length)
                .map(|row| is_valid(&column, row).then(|| text(row)))
                .collect::<Vec<_>>()
        };
        (0..self.blocks()).flat_map(of_block).collect()
    }
}

fn is_valid(column: &Column, row: usize) -> bool {
    // SAFETY: as many bits as rows, where there are any.
    column.validity.is_null() || unsafe { *column.validity.add(row / 8) } >> (row % 8) & 1 == 1
}

/// Values of a column of a result; all null where it has none.
fn values<T: Copy>(column: &Column) -> Vec<Option<T>> {
    let at = column.values.cast::<T>();
    assert!(at.is_aligned());
    // SAFETY: a column of a result that lives, of that type.
    let value = |row| unsafe { *at.add(row) };
    (0..column.length)
        .map(|row| (!at.is_null() && is_valid(column, row)).then(|| value(row)))
        .collect()
}

/// A column of fixed width.
pub(crate) fn fixed<T>(data_type: u32, values: &[T]) -> Column {
    Column {
        data_type,
        precision: 0,
        scale: 0,
        length: values.len(),
        values: values.as_ptr().cast(),
        validity: null(),
        offsets: null(),
        bytes: 0,
    }
}

/// The same with nulls.
pub(crate) fn nullable<T>(data_type: u32, values: &[T], bits: &[u8]) -> Column {
    assert_eq!(bits.len(), values.len().div_ceil(8));
    Column { validity: bits.as_ptr(), ..fixed(data_type, values) }
}

/// A column of texts.
pub(crate) fn texts(bytes: &str, offsets: &[i32]) -> Column {
    Column {
        length: offsets.len() - 1,
        offsets: offsets.as_ptr(),
        bytes: bytes.len(),
        ..fixed(UTF8, bytes.as_bytes())
    }
}

/// A part of columns with unknown home.
pub(crate) fn part(columns: &[Column]) -> RowsPart {
    RowsPart { home: -1, column_count: columns.len() as u32, columns: columns.as_ptr() }
}
