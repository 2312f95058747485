//! `atoll_column` to Arrow arrays over the same memory, and back.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::failure::{CallFailure, Code};
use crate::foreign;

/// `atoll_column`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Column {
    /// `type`: `ATOLL_INT64` and the others.
    pub data_type: u32,
    /// Digits of a decimal.
    pub precision: u8,
    /// Digits of a decimal after the point.
    pub scale: i8,
    /// Number of values.
    pub length: usize,
    /// The values.
    pub values: *const c_void,
    /// Bits, 1 where there is a value; or null.
    pub validity: *const u8,
    /// Of strings: where they begin and end.
    pub offsets: *const i32,
    /// Of strings: size of the values.
    pub bytes: usize,
}

/// The types of fixed width by their numbers in C.
const FIXED: [(u32, DataType); 10] = [
    (1, DataType::Int8),
    (2, DataType::Int16),
    (3, DataType::Int32),
    (INT64, DataType::Int64),
    (5, DataType::UInt8),
    (6, DataType::UInt16),
    (7, DataType::UInt32),
    (UINT64, DataType::UInt64),
    (9, DataType::Float32),
    (10, DataType::Float64),
];
/// `ATOLL_INT64`.
pub(crate) const INT64: u32 = 4;
/// `ATOLL_UINT64`.
pub(crate) const UINT64: u32 = 8;
const DECIMAL128: u32 = 11;
const BOOL: u32 = 12;
const UTF8: u32 = 13;
const BINARY: u32 = 14;

impl Column {
    /// A column of a fixed-width type without nulls.
    pub(crate) fn fixed(data_type: u32, values: *const c_void, length: usize) -> Self {
        let (validity, offsets) = (null(), null());
        Self { data_type, precision: 0, scale: 0, length, values, validity, offsets, bytes: 0 }
    }

    fn arrow_type(&self) -> Result<DataType, CallFailure> {
        let fixed = FIXED.iter().find(|(number, _)| *number == self.data_type);
        Ok(match self.data_type {
            DECIMAL128 if (1..=38).contains(&self.precision) => {
                DataType::Decimal128(self.precision, self.scale)
            }
            DECIMAL128 => {
                let digits = self.precision;
                let text = format!("invalid decimal precision {digits}; expected 1 to 38");
                return Err(CallFailure::invalid(text));
            }
            BOOL => DataType::Boolean,
            UTF8 => DataType::Utf8,
            BINARY => DataType::Binary,
            number => match fixed {
                Some((_, data_type)) => data_type.clone(),
                None => {
                    let text = format!(
                        "unknown column type {number}; expected ATOLL_INT8 (1) to \
                                        ATOLL_BINARY (14)"
                    );
                    return Err(CallFailure::new(Code::Type, text));
                }
            },
        })
    }

    /// The column as an array over the same memory.
    ///
    /// # Safety
    /// Pointers that are neither null nor misaligned point to what atoll.h says, alive and unchanged for as
    /// long as the array is read.
    pub(crate) unsafe fn array(&self) -> Result<ArrayRef, CallFailure> {
        let data_type = self.arrow_type()?;
        // SAFETY: the caller's promise, here and below.
        let buffers = unsafe { self.buffers(&data_type)? };
        let bits = match self.validity.is_null() {
            true => None,
            // SAFETY: the same.
            false => Some(unsafe { bytes("validity", self.validity, self.length.div_ceil(8))? }),
        };
        let nulls = bits.map(|bits| {
            // SAFETY: the same.
            let bits = unsafe { foreign::lend(bits) };
            NullBuffer::new(BooleanBuffer::new(bits, 0, self.length))
        });
        let data = ArrayData::builder(data_type).len(self.length).nulls(nulls).buffers(buffers);
        // Validates offsets and UTF-8, so that later readers can trust them.
        let data = data.build().map_err(CallFailure::invalid)?;
        Ok(make_array(data))
    }

    /// Its buffers.
    ///
    /// # Safety
    /// As [`array`](Self::array).
    unsafe fn buffers(
        &self,
        data_type: &DataType,
    ) -> Result<Vec<arrow_buffer::Buffer>, CallFailure> {
        let values = self.values.cast::<u8>();
        let (texts, align, size) = match data_type {
            DataType::Utf8 | DataType::Binary => (true, 1, self.bytes),
            DataType::Boolean => (false, 1, self.length.div_ceil(8)),
            _ => {
                let width = data_type.primitive_width().unwrap_or(1);
                (false, width, self.length.checked_mul(width).ok_or_else(|| too_long(self.length))?)
            }
        };
        if !values.addr().is_multiple_of(align) {
            let at = values.addr();
            let text = format!("values: address {at:#x} is not a multiple of {align}");
            return Err(CallFailure::invalid(text));
        }
        if values.is_null() && size > 0 {
            let text = format!("values: null pointer for {} values", self.length);
            return Err(CallFailure::invalid(text));
        }
        // SAFETY: the caller's promise, here and below.
        let lent = unsafe { foreign::lend(bytes("values", values, size)?) };
        if !texts {
            return Ok(vec![lent]);
        }
        let count = self.length.checked_add(1).ok_or_else(|| too_long(self.length))?;
        // SAFETY: the same.
        let offsets = unsafe { foreign::slice("offsets", self.offsets, count)? };
        // SAFETY: the same.
        Ok(vec![unsafe { foreign::lend_numbers(offsets) }.into_inner(), lent])
    }
}

fn too_long(length: usize) -> CallFailure {
    CallFailure::invalid(format!("values: {length} values exceed the address space"))
}

/// # Safety
/// As [`foreign::slice`].
unsafe fn bytes<'a>(what: &str, at: *const u8, len: usize) -> Result<&'a [u8], CallFailure> {
    // SAFETY: the caller's promise.
    unsafe { foreign::slice(what, at, len) }
}

/// A column of a result, with the owner of its memory.
pub(crate) struct HeldColumn {
    pub(crate) column: Column,
    _memory: Arc<dyn Any + Send + Sync>,
}

impl HeldColumn {
    /// A column over memory that it keeps alive.
    pub(crate) fn new(column: Column, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Self { column, _memory: memory }
    }

    /// The column of an array.
    pub(crate) fn from_array(array: &ArrayRef) -> Result<Self, CallFailure> {
        let data = plain(array.to_data());
        let (data_type, precision, scale) = match data.data_type() {
            DataType::Decimal128(precision, scale) => (DECIMAL128, *precision, *scale),
            DataType::Boolean => (BOOL, 0, 0),
            DataType::Utf8 => (UTF8, 0, 0),
            DataType::Binary => (BINARY, 0, 0),
            other => match FIXED.iter().find(|(_, data_type)| data_type == other) {
                Some((number, _)) => (*number, 0, 0),
                None => {
                    let text = format!("unsupported result type {other}; please report it");
                    return Err(CallFailure::new(Code::Defect, text));
                }
            },
        };
        let buffers = data.buffers();
        let validity = data.nulls().map_or(null(), |nulls| nulls.buffer().as_ptr());
        let column = Column { precision, scale, validity, ..Column::fixed(data_type, null(), 0) };
        let length = data.len();
        let column = match data_type {
            UTF8 | BINARY => {
                let offsets = data.buffer::<i32>(0).as_ptr();
                let (values, bytes) = (buffers[1].as_ptr().cast(), buffers[1].len());
                Column { length, offsets, values, bytes, ..column }
            }
            BOOL => Column { length, values: buffers[0].as_ptr().cast(), ..column },
            _ => {
                let width = data.data_type().primitive_width().unwrap_or(1);
                let values = buffers[0].as_ptr().wrapping_add(data.offset() * width);
                Column { length, values: values.cast(), ..column }
            }
        };
        Ok(Self::new(column, Arc::new(data)))
    }
}

/// The array with byte-aligned bits, and with offsets even if it has no rows.
fn plain(data: ArrayData) -> ArrayData {
    let nulls = data
        .nulls()
        .filter(|nulls| nulls.null_count() > 0)
        .map(|nulls| NullBuffer::new(BooleanBuffer::new(nulls.inner().sliced(), 0, nulls.len())));
    let texts = matches!(data.data_type(), DataType::Utf8 | DataType::Binary);
    let builder = data.clone().into_builder().nulls(nulls);
    let builder = match data.data_type() {
        DataType::Boolean => {
            let bits = BooleanBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
            builder.offset(0).buffers(vec![bits.sliced()])
        }
        _ if texts && data.buffers()[0].is_empty() => {
            let offsets = arrow_buffer::Buffer::from_vec(vec![0_i32]);
            builder.offset(0).buffers(vec![offsets, data.buffers()[1].clone()])
        }
        _ => builder,
    };
    // SAFETY: the same values and nulls as those of a valid array.
    unsafe { builder.build_unchecked() }
}
