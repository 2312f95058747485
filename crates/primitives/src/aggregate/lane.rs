//! Columns read block by block as 64-bit words, 128-bit integers or doubles.

use arrow_array::cast::AsArray;
use arrow_array::{Array, UInt8Array};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// Memory layout of a fixed-width type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Physical {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    I128,
    F32,
    F64,
    /// Strings, as views.
    Text,
}

impl Physical {
    fn for_type(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Int8 => Self::I8,
            T::Int16 => Self::I16,
            T::Int32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => Self::I32,
            T::Int64 | T::Date64 | T::Time64(_) | T::Timestamp(..) | T::Duration(_) => Self::I64,
            T::Decimal64(..) => Self::I64,
            T::UInt8 => Self::U8,
            T::UInt16 => Self::U16,
            T::UInt32 => Self::U32,
            T::UInt64 => Self::U64,
            T::Decimal128(..) => Self::I128,
            T::Float32 => Self::F32,
            T::Float64 => Self::F64,
            _ => return None,
        })
    }
}

/// Whether columns of this type are read as numbers.
pub(crate) fn is_fixed(data_type: &DataType) -> bool {
    Physical::for_type(data_type).is_some()
}

/// Whether values of this type are doubles.
pub(super) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Whether values of this type may not fit 64 bits with a sign.
pub(super) fn may_be_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::UInt64)
}

/// A column of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    data: ArrayData,
    physical: Physical,
}

/// Values of a block. Integers that fit 64 bits are `Int` whatever their type.
#[derive(Clone, Copy, Debug)]
pub(super) enum LaneValues<'a> {
    Int(&'a [i64]),
    Wide(&'a [i128]),
    Float(&'a [f64]),
}

/// A block of a lane: values, 0 for nulls, and if there are nulls one byte for each row, 1 for a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueBlock<'a> {
    pub(super) values: LaneValues<'a>,
    pub(super) valid: Option<&'a [u8]>,
}

/// Scratch space for a block that is not read in place.
#[derive(Debug, Default)]
pub(super) struct LaneScratch {
    pub(super) int: Vec<i64>,
    pub(super) wide: Vec<i128>,
    pub(super) float: Vec<f64>,
    pub(super) valid: Vec<u8>,
}

impl Lane {
    /// The array's numbers; returns None if its type has no fixed width.
    pub(crate) fn new(array: &dyn Array) -> Option<Self> {
        let physical = Physical::for_type(array.data_type())?;
        Some(Self { data: array.to_data(), physical })
    }

    /// A key column: numbers, booleans as 0 and 1, or strings whose short ones are read as numbers.
    pub(super) fn key(array: &dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Boolean => {
                let (values, nulls) = array.as_boolean().clone().into_parts();
                let values = values.iter().map(u8::from).collect();
                Self::new(&UInt8Array::new(values, nulls))
            }
            DataType::Utf8View => Some(Self { data: array.to_data(), physical: Physical::Text }),
            _ => Self::new(array),
        }
    }

    fn slice<T: arrow_buffer::ArrowNativeType>(&self, start: usize, len: usize) -> &[T] {
        &self.data.buffer::<T>(0)[start..start + len]
    }

    /// Values of a block as numbers to be aggregated.
    pub(super) fn block<'a>(
        &'a self,
        start: usize,
        len: usize,
        scratch: &'a mut LaneScratch,
    ) -> ValueBlock<'a> {
        let LaneScratch { int, wide, float, valid } = scratch;
        let valid = self.valid(start, len, valid);
        let as_is = valid.is_none();
        let values = match self.physical {
            Physical::I64 if as_is => LaneValues::Int(self.slice(start, len)),
            Physical::F64 if as_is => LaneValues::Float(self.slice(start, len)),
            Physical::F32 => {
                fill(float, self.slice::<f32>(start, len), f64::from);
                mask_floats(float, valid);
                LaneValues::Float(float)
            }
            Physical::F64 => {
                fill(float, self.slice::<f64>(start, len), |value| value);
                mask_floats(float, valid);
                LaneValues::Float(float)
            }
            Physical::I128 => return self.decimals(start, len, int, wide, valid),
            Physical::U64 => {
                let words = self.slice::<u64>(start, len);
                if words.iter().any(|word| *word > i64::MAX as u64) {
                    fill(wide, words, i128::from);
                    mask_wide(wide, valid);
                    return ValueBlock { values: LaneValues::Wide(wide), valid };
                }
                fill(int, words, |word| word as i64);
                mask(int, valid);
                LaneValues::Int(int)
            }
            _ => {
                self.widen(start, len, int);
                mask(int, valid);
                LaneValues::Int(int)
            }
        };
        ValueBlock { values, valid }
    }

    /// Sign-extends narrow integers to 64 bits.
    fn widen(&self, start: usize, len: usize, to: &mut Vec<i64>) {
        match self.physical {
            Physical::I8 => fill(to, self.slice::<i8>(start, len), i64::from),
            Physical::I16 => fill(to, self.slice::<i16>(start, len), i64::from),
            Physical::I32 => fill(to, self.slice::<i32>(start, len), i64::from),
            Physical::U8 => fill(to, self.slice::<u8>(start, len), i64::from),
            Physical::U16 => fill(to, self.slice::<u16>(start, len), i64::from),
            Physical::U32 => fill(to, self.slice::<u32>(start, len), i64::from),
            _ => fill(to, self.slice::<i64>(start, len), |value| value),
        }
    }

    /// Decimals, as 64-bit integers if all in the block fit.
    fn decimals<'a>(
        &self,
        start: usize,
        len: usize,
        int: &'a mut Vec<i64>,
        wide: &'a mut Vec<i128>,
        valid: Option<&'a [u8]>,
    ) -> ValueBlock<'a> {
        let decimals = self.slice::<i128>(start, len);
        let mut outside = 0;
        int.resize(len, 0);
        for (to, value) in int.iter_mut().zip(decimals) {
            *to = *value as i64;
            outside |= (*value >> 64) as i64 ^ (*to >> 63);
        }
        if outside == 0 {
            mask(int, valid);
            return ValueBlock { values: LaneValues::Int(int), valid };
        }
        fill(wide, decimals, |value| value);
        mask_wide(wide, valid);
        ValueBlock { values: LaneValues::Wide(wide), valid }
    }

    /// 128-bit numbers of a block.
    pub(super) fn wide(&self, start: usize, len: usize) -> &[i128] {
        self.slice(start, len)
    }

    /// Strings of up to `bytes` bytes as numbers: the bytes, the first one lowest, followed by the length. Returns
    /// false if a string is longer.
    pub(super) fn text(&self, start: usize, len: usize, bytes: u32, to: &mut Vec<u64>) -> bool {
        let mask = (1_u64 << (8 * bytes)) - 1;
        let mut longest = 0;
        let views = self.slice::<u128>(start, len);
        fill(to, views, |view| {
            // A view of a short string: its length in 32 bits, then its bytes, then zeros.
            let length = view as u32;
            longest = longest.max(length);
            (view >> 32) as u64 & mask | u64::from(length) << (8 * bytes)
        });
        longest <= bytes
    }

    /// Whether each value of a block fits a word.
    pub(super) fn fits_words(&self, start: usize, len: usize) -> bool {
        match self.physical {
            Physical::I128 => {
                self.slice::<i128>(start, len).iter().all(|value| i64::try_from(*value).is_ok())
            }
            _ => true,
        }
    }

    /// A block's values as words; equal floats have equal words, and 128-bit values give their low half.
    pub(super) fn words<'a>(&'a self, start: usize, len: usize, to: &'a mut Vec<u64>) -> &'a [u64] {
        match self.physical {
            Physical::I64 | Physical::U64 => return self.slice::<u64>(start, len),
            Physical::F64 => fill(to, self.slice::<f64>(start, len), |value| zero(value.to_bits())),
            Physical::F32 => {
                fill(to, self.slice::<f32>(start, len), |value| {
                    let bits = value.to_bits();
                    u64::from(if bits << 1 == 0 { 0 } else { bits })
                });
            }
            Physical::I128 => fill(to, self.slice::<i128>(start, len), |value| value as u64),
            Physical::Text => fill(to, self.slice::<u128>(start, len), |view| view as u64),
            Physical::U8 => fill(to, self.slice::<u8>(start, len), u64::from),
            Physical::U16 => fill(to, self.slice::<u16>(start, len), u64::from),
            Physical::U32 => fill(to, self.slice::<u32>(start, len), u64::from),
            Physical::I8 => fill(to, self.slice::<i8>(start, len), |value| value as u64),
            Physical::I16 => fill(to, self.slice::<i16>(start, len), |value| value as u64),
            Physical::I32 => fill(to, self.slice::<i32>(start, len), |value| value as u64),
        }
        to
    }

    /// One byte for each row of a block, 1 for a value; None if there are no nulls.
    pub(super) fn valid<'a>(
        &self,
        start: usize,
        len: usize,
        to: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let nulls = self.data.nulls()?.slice(start, len);
        if nulls.null_count() == 0 {
            return None;
        }
        to.clear();
        to.extend(nulls.iter().map(u8::from));
        Some(to)
    }
}

/// Blocks of several lanes.
pub(super) fn blocks<'a>(
    scratches: &'a mut Vec<LaneScratch>,
    lanes: &'a [Lane],
    start: usize,
    len: usize,
) -> Vec<ValueBlock<'a>> {
    scratches.resize_with(lanes.len().max(scratches.len()), LaneScratch::default);
    let both = lanes.iter().zip(scratches.iter_mut());
    both.map(|(lane, scratch)| lane.block(start, len, scratch)).collect()
}

/// Maps both zeros to the same word.
fn zero(bits: u64) -> u64 {
    if bits << 1 == 0 { 0 } else { bits }
}

fn fill<T: Copy, V>(to: &mut Vec<V>, from: &[T], mut with: impl FnMut(T) -> V) {
    to.clear();
    to.extend(from.iter().map(|value| with(*value)));
}

/// Writes zeros for nulls, so that additions need no check.
fn mask(values: &mut [i64], valid: Option<&[u8]>) {
    for (value, valid) in values.iter_mut().zip(valid.unwrap_or_default()) {
        *value &= -i64::from(*valid);
    }
}

fn mask_wide(values: &mut [i128], valid: Option<&[u8]>) {
    for (value, valid) in values.iter_mut().zip(valid.unwrap_or_default()) {
        *value &= -i128::from(*valid);
    }
}

fn mask_floats(values: &mut [f64], valid: Option<&[u8]>) {
    for (value, valid) in values.iter_mut().zip(valid.unwrap_or_default()) {
        if *valid == 0 {
            *value = 0.0;
        }
    }
}
