//! One column of one block, as it lies in memory.
//!
//! A column keeps its logical type for SQL and is stored narrower if its values allow:
//! whole numbers, decimals, dates and times in the fewest bytes that hold the chunk's values,
//! repeating strings as codes into a dictionary of the chunk. Scans compare the narrow form and
//! widen only the rows that survive, so no operator ever sees a narrow type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, UInt32Array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use arrow_select::take::take;

use super::compact::compact_array;

type Result<T> = std::result::Result<T, ArrowError>;

/// One column of one block.
#[derive(Clone, Debug)]
pub enum StoredColumn {
    /// In its logical type.
    Plain(ArrayRef),
    /// Whole numbers of 8 to 64 bits; the logical type is wider. Nulls as in the logical column.
    Narrow(ArrayRef),
    /// Codes (8 or 16 bits) into the chunk's dictionary; a null row has a null code.
    Dictionary {
        /// `UInt8` or `UInt16`.
        codes: ArrayRef,
        /// Distinct values of the chunk, none of them null.
        values: ArrayRef,
    },
}

/// Requested rows of a block.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Rows `offset .. offset + len`.
    Range {
        /// First row.
        offset: usize,
        /// Number of rows.
        len: usize,
    },
    /// These row numbers, in rising order.
    Rows(UInt32Array),
    /// The rows of a block whose bit is set: most of them, so that whole ranges are copied.
    Mask(Arc<Mask>),
}

/// Rows of a block, one bit each.
#[derive(Debug)]
pub struct Mask {
    /// One bit per row of the block.
    pub bits: BooleanBuffer,
    /// The same, prepared for filtering many columns.
    predicate: FilterPredicate,
}

/// If at least one in this many rows is selected, a mask is cheaper than row numbers.
const MASK_SHARE: usize = 2;

impl Selection {
    /// The rows of a block whose bit is set. Returns None if no bit is set.
    pub fn of_bits(bits: BooleanBuffer) -> Option<Self> {
        let count = bits.count_set_bits();
        if count == 0 {
            return None;
        }
        if count == bits.len() {
            return Some(Self::Range { offset: 0, len: count });
        }
        if count * MASK_SHARE < bits.len() {
            let mut rows = Vec::with_capacity(count);
            rows.extend(bits.set_indices().map(|row| row as u32));
            return Some(Self::Rows(rows.into()));
        }
        let filter = BooleanArray::new(bits.clone(), None);
        let predicate = FilterBuilder::new(&filter).optimize().build();
        Some(Self::Mask(Arc::new(Mask { bits, predicate })))
    }

    /// Those of the rows whose bit in a mask over the whole block is set. Returns None if no bit is set.
    pub fn kept_by(self, mask: &BooleanBuffer) -> Option<Self> {
        match self {
            Self::Range { offset, len } if offset == 0 && len == mask.len() => {
                Self::of_bits(mask.clone())
            }
            Self::Range { offset, len } => {
                let mut kept = Vec::with_capacity(len);
                kept.extend(mask.slice(offset, len).set_indices().map(|row| (row + offset) as u32));
                Self::of_rows(kept)
            }
            Self::Rows(rows) => {
                let kept = rows.values().iter().copied();
                Self::of_rows(kept.filter(|row| mask.value(*row as usize)).collect())
            }
            Self::Mask(before) => Self::of_bits(&before.bits & mask),
        }
    }

    /// These rows of a block, in rising order. Returns None if there are none.
    pub fn of_rows(rows: Vec<u32>) -> Option<Self> {
        (!rows.is_empty()).then(|| Self::Rows(rows.into()))
    }

    /// Numbers of the selected rows in the block, in rising order.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            Self::Range { offset, len } => (*offset as u32..(offset + len) as u32).collect(),
            Self::Rows(rows) => rows.values().to_vec(),
            Self::Mask(mask) => mask.bits.set_indices().map(|row| row as u32).collect(),
        }
    }

    /// Number of selected rows.
    pub fn count(&self) -> usize {
        match self {
            Self::Range { len, .. } => *len,
            Self::Rows(rows) => rows.len(),
            Self::Mask(mask) => mask.predicate.count(),
        }
    }
}

/// Whether values of the type are strings or bytes.
pub fn is_text(data_type: &DataType) -> bool {
    data_type.is_string() || data_type.is_binary()
}

impl StoredColumn {
    /// The array that holds one entry per row.
    pub fn rows(&self) -> &ArrayRef {
        match self {
            Self::Plain(array) | Self::Narrow(array) => array,
            Self::Dictionary { codes, .. } => codes,
        }
    }

    /// Bytes that a reader of every row touches.
    pub fn bytes(&self) -> usize {
        let size = |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or(0);
        match self {
            // Long values of a view are in other buffers: a reader touches both.
            Self::Plain(array) => match array.as_string_view_opt() {
                Some(views) => views.len() * 16 + views.total_buffer_bytes_used(),
                None => size(array),
            },
            Self::Narrow(array) => size(array),
            Self::Dictionary { codes, .. } => size(codes),
        }
    }

    /// The first rows, at most `rows` of them.
    pub fn head(&self, rows: usize) -> Self {
        let head = |array: &ArrayRef| array.slice(0, rows.min(array.len()));
        match self {
            Self::Plain(array) => Self::Plain(head(array)),
            Self::Narrow(array) => Self::Narrow(head(array)),
            Self::Dictionary { codes, values } => {
                Self::Dictionary { codes: head(codes), values: Arc::clone(values) }
            }
        }
    }

    /// The selected rows in the logical type.
    pub fn decode(&self, logical: &DataType, wanted: &Selection) -> Result<ArrayRef> {
        match self {
            Self::Plain(array) => select(array, wanted),
            Self::Narrow(array) => widen(array, logical, wanted),
            Self::Dictionary { codes, values } => Ok(take(values, &select(codes, wanted)?, None)?),
        }
    }
}

/// Below this share of a block's rows, long strings are copied together: otherwise a few views
/// would keep (and be charged with) the whole block's text.
const COMPACT_SHARE: usize = 4;

fn select(array: &ArrayRef, wanted: &Selection) -> Result<ArrayRef> {
    match wanted {
        Selection::Range { offset, len } if *offset == 0 && *len == array.len() => {
            Ok(Arc::clone(array))
        }
        Selection::Range { offset, len } => Ok(array.slice(*offset, *len)),
        Selection::Rows(rows) => {
            let taken = take(array, rows, None)?;
            let few = rows.len() * COMPACT_SHARE < array.len();
            Ok(if few { compact_array(&taken) } else { taken })
        }
        Selection::Mask(mask) => Ok(mask.predicate.filter(array)?),
    }
}

fn widen(narrow: &ArrayRef, logical: &DataType, wanted: &Selection) -> Result<ArrayRef> {
    match narrow.data_type() {
        DataType::Int8 => widen_from::<Int8Type>(narrow.as_primitive(), logical, wanted),
        DataType::Int16 => widen_from::<Int16Type>(narrow.as_primitive(), logical, wanted),
        DataType::Int32 => widen_from::<Int32Type>(narrow.as_primitive(), logical, wanted),
        DataType::Int64 => widen_from::<Int64Type>(narrow.as_primitive(), logical, wanted),
        other => unreachable!("no column is stored narrow as {other}"),
    }
}

fn widen_from<N: ArrowPrimitiveType>(
    narrow: &PrimitiveArray<N>,
    logical: &DataType,
    wanted: &Selection,
) -> Result<ArrayRef>
where
    N::Native: Into<i64>,
{
    macro_rules! to {
        ($wide:ty, $native:ty) => {
            Arc::new(
                gather::<N, $wide>(narrow, wanted, |value| value as $native)?
                    .with_data_type(logical.clone()),
            )
        };
    }
    Ok(match logical {
        DataType::Int16 => to!(Int16Type, i16),
        DataType::Int32 => to!(Int32Type, i32),
        DataType::Int64 => to!(Int64Type, i64),
        DataType::UInt16 => to!(UInt16Type, u16),
        DataType::UInt32 => to!(UInt32Type, u32),
        DataType::UInt64 => to!(UInt64Type, u64),
        DataType::Date32 => to!(Date32Type, i32),
        DataType::Date64 => to!(Date64Type, i64),
        DataType::Timestamp(TimeUnit::Second, _) => to!(TimestampSecondType, i64),
        DataType::Timestamp(TimeUnit::Millisecond, _) => to!(TimestampMillisecondType, i64),
        DataType::Timestamp(TimeUnit::Microsecond, _) => to!(TimestampMicrosecondType, i64),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => to!(TimestampNanosecondType, i64),
        DataType::Decimal128(_, _) => to!(Decimal128Type, i128),
        other => unreachable!("no column of type {other} is stored narrow"),
    })
}

/// Widens the selected rows in one pass.
fn gather<N: ArrowPrimitiveType, W: ArrowPrimitiveType>(
    narrow: &PrimitiveArray<N>,
    wanted: &Selection,
    widen: impl Fn(i64) -> W::Native,
) -> Result<PrimitiveArray<W>>
where
    N::Native: Into<i64>,
{
    let all = narrow.values();
    Ok(match wanted {
        Selection::Range { offset, len } => {
            let values = all[*offset..offset + len].iter().map(|v| widen((*v).into())).collect();
            let nulls = narrow.nulls().map(|nulls| nulls.slice(*offset, *len));
            PrimitiveArray::new(values, nulls)
        }
        Selection::Mask(mask) => {
            let kept = mask.predicate.filter(narrow)?;
            let kept = kept.as_primitive::<N>();
            let values = kept.values().iter().map(|v| widen((*v).into())).collect();
            PrimitiveArray::new(values, kept.nulls().cloned())
        }
        Selection::Rows(rows) => {
            let values =
                rows.values().iter().map(|row| widen(all[row.as_usize()].into())).collect();
            let nulls = narrow.nulls().map(|nulls| {
                rows.values().iter().map(|row| nulls.is_valid(row.as_usize())).collect()
            });
            PrimitiveArray::new(values, nulls)
        }
    })
}
