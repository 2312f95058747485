//! Sort keys packed into words: partition keys first, then those of the order.
//!
//! A column of numbers or times takes as many bits as the range of its values, a column of short texts as many as its
//! longest one. The first column that does not fit contributes a prefix: rows with equal words are then
//! compared by the columns from there on.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

/// The bits of a word.
const WORD_BITS: u32 = 128;
/// Texts of at most these bytes, without what all have in common at the beginning, are packed whole.
const SHORT_TEXT: usize = 7;

/// A value whose order is that of a whole number.
pub(super) trait Ordered: Copy {
    fn ordered(self) -> i128;
}

macro_rules! ordered_wholes {
    ($($native:ty),*) => {
        $(impl Ordered for $native {
            #[inline]
            fn ordered(self) -> i128 {
                i128::from(self)
            }
        })*
    };
}

ordered_wholes!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

/// In the order of `total_cmp`.
impl Ordered for f64 {
    #[inline]
    fn ordered(self) -> i128 {
        let bits = self.to_bits() as i64;
        i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64)
    }
}

impl Ordered for f32 {
    #[inline]
    fn ordered(self) -> i128 {
        let bits = self.to_bits() as i32;
        i128::from(bits ^ (((bits >> 31) as u32) >> 1) as i32)
    }
}

/// Evaluates `$body` with `$values` bound to the native values of an array whose values are [`Ordered`], or
/// `$other` for other types.
macro_rules! with_ordered {
    (@match $array:expr, $values:ident, $body:expr, $other:expr, $(($pattern:pat, $type:ty)),*) => {
        match $array.data_type() {
            $($pattern => {
                let $values = $array.as_primitive::<$type>().values();
                $body
            })*
            _ => $other,
        }
    };
    ($array:expr, $values:ident => $body:expr, else $other:expr) => {
        with_ordered!(@match $array, $values, $body, $other,
            (DataType::Int8, Int8Type), (DataType::Int16, Int16Type),
            (DataType::Int32, Int32Type), (DataType::Int64, Int64Type),
            (DataType::UInt8, UInt8Type), (DataType::UInt16, UInt16Type),
            (DataType::UInt32, UInt32Type), (DataType::UInt64, UInt64Type),
            (DataType::Float32, Float32Type), (DataType::Float64, Float64Type),
            (DataType::Date32, Date32Type), (DataType::Date64, Date64Type),
            (DataType::Time32(TimeUnit::Second), Time32SecondType),
            (DataType::Time32(TimeUnit::Millisecond), Time32MillisecondType),
            (DataType::Time64(TimeUnit::Microsecond), Time64MicrosecondType),
            (DataType::Time64(TimeUnit::Nanosecond), Time64NanosecondType),
            (DataType::Timestamp(TimeUnit::Second, _), TimestampSecondType),
            (DataType::Timestamp(TimeUnit::Millisecond, _), TimestampMillisecondType),
            (DataType::Timestamp(TimeUnit::Microsecond, _), TimestampMicrosecondType),
            (DataType::Timestamp(TimeUnit::Nanosecond, _), TimestampNanosecondType),
            (DataType::Duration(TimeUnit::Second), DurationSecondType),
            (DataType::Duration(TimeUnit::Millisecond), DurationMillisecondType),
            (DataType::Duration(TimeUnit::Microsecond), DurationMicrosecondType),
            (DataType::Duration(TimeUnit::Nanosecond), DurationNanosecondType),
            (DataType::Decimal32(..), Decimal32Type), (DataType::Decimal64(..), Decimal64Type),
            (DataType::Decimal128(..), Decimal128Type))
    };
}

/// Whether values of the type are ordered as whole numbers.
pub(super) fn is_ordered(data_type: &DataType) -> bool {
    let none = datafusion::arrow::array::new_empty_array(data_type);
    with_ordered!(none, _values => true, else false)
}

/// Whether values of the type are texts that are ordered by their bytes.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8)
}

/// The values as whole numbers; what stands for a null is any of them. `None` for other types.
pub(super) fn ordered_values(array: &ArrayRef) -> Option<Vec<i128>> {
    with_ordered!(array, values => Some(values.iter().map(|value| value.ordered()).collect()), else None)
}

/// What is known of the values of a key column.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyBounds {
    has_nulls: bool,
    /// The smallest and the largest as whole numbers; `None` without values or for other types.
    range: Option<(i128, i128)>,
    /// What all texts have in common at the beginning, and the bytes of the longest.
    texts: Option<(Vec<u8>, usize)>,
}

fn valid_rows(nulls: Option<&NullBuffer>, rows: usize) -> impl Iterator<Item = usize> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0).cloned();
    (0..rows).filter(move |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)))
}

fn range_of<T: Ordered>(values: &[T], nulls: Option<&NullBuffer>) -> Option<(i128, i128)> {
    let values = valid_rows(nulls, values.len()).map(|row| values[row].ordered());
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((min, max)) => Some((value.min(min), value.max(max))),
    })
}

/// The bytes of a row of texts or bytes. Key columns have views.
fn bytes<'a>(array: &'a ArrayRef) -> Option<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view();
            Some(Box::new(move |row| texts.value(row).as_bytes()))
        }
        DataType::BinaryView => {
            let texts = array.as_binary_view();
            Some(Box::new(move |row| texts.value(row)))
        }
        _ => None,
    }
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl KeyBounds {
    pub(super) fn of(array: &ArrayRef) -> Self {
        let nulls = array.nulls();
        let texts = bytes(array).and_then(|bytes| {
            let mut rows = valid_rows(nulls, array.len());
            let first = bytes(rows.next()?);
            let (mut common, mut longest) = (first.len(), first.len());
            for row in rows {
                let text = bytes(row);
                longest = longest.max(text.len());
                common = common_bytes(&first[..common], text);
            }
            Some((first[..common].to_vec(), longest))
        });
        Self {
            has_nulls: array.null_count() > 0,
            range: with_ordered!(array, values => range_of(values, nulls), else None),
            texts,
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.has_nulls |= other.has_nulls;
        self.range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.texts = match (self.texts.take(), other.texts.clone()) {
            (Some((mut a, longest)), Some((b, other))) => {
                a.truncate(common_bytes(&a, &b));
                Some((a, longest.max(other)))
            }
            (a, b) => a.or(b),
        };
    }
}

/// How a column is packed.
#[derive(Clone, Debug)]
enum Packing {
    /// The distance from the smallest value.
    Distance { min: i128 },
    /// These many bytes after those that all texts have in common, and the length if `whole`.
    Text { skipped: usize, bytes: usize, whole: bool },
    /// Nothing but whether it is null.
    Nothing,
}

#[derive(Clone, Debug)]
struct PackedColumn {
    packing: Packing,
    /// Bits without that for nulls.
    bits: u32,
    has_nulls: bool,
    options: SortOptions,
}

/// How keys are packed.
#[derive(Clone, Debug)]
pub(super) struct KeyPacking {
    /// The packed columns: all, or those up to the first that is not packed whole.
    columns: Vec<PackedColumn>,
    /// Columns that are packed whole.
    whole: usize,
    /// Bits of a word.
    bits: u32,
    /// Bits of a word after those of the partition keys; `None` if these are not packed whole.
    after_partition: Option<u32>,
}

impl KeyPacking {
    /// Packs columns with these bounds, of which the first are `partition` partition keys.
    pub(super) fn new(bounds: &[KeyBounds], options: &[SortOptions], partition: usize) -> Self {
        let (mut columns, mut bits, mut whole) = (Vec::new(), 0, 0);
        let mut partition_bits = (partition == 0).then_some(0);
        for (bounds, options) in bounds.iter().zip(options) {
            let left = WORD_BITS - bits;
            let null_bit = u32::from(bounds.has_nulls);
            if left < null_bit + 8 {
                break;
            }
            let (packing, column_bits, is_whole) = packing(bounds, left - null_bit);
            bits += column_bits + null_bit;
            let has_nulls = bounds.has_nulls;
            columns.push(PackedColumn { packing, bits: column_bits, has_nulls, options: *options });
            if !is_whole {
                break;
            }
            whole += 1;
            if whole == partition {
                partition_bits = Some(bits);
            }
        }
        let after_partition = partition_bits.map(|of_partition| bits - of_partition);
        Self { columns, whole, bits, after_partition }
    }

    /// The number of columns that equal words do not differ in.
    pub(super) fn whole(&self) -> usize {
        self.whole
    }

    /// Whether words fit 64 bits.
    pub(super) fn is_narrow(&self) -> bool {
        self.bits <= 64
    }

    /// Bits of a word after those of the partition keys; `None` if these are not packed whole.
    pub(super) fn after_partition(&self) -> Option<u32> {
        self.after_partition
    }

    /// Bits of the partition keys in a word; `None` if these are not packed whole.
    pub(super) fn partition_bits(&self) -> Option<u32> {
        self.after_partition.map(|after| self.bits - after)
    }

    /// Adds the words of a batch's rows.
    pub(super) fn pack<W: Word>(&self, columns: &[ArrayRef], rows: usize, words: &mut Vec<W>) {
        let from = words.len();
        words.resize(from + rows, W::default());
        for (column, array) in self.columns.iter().zip(columns) {
            column.pack(array, &mut words[from..]);
        }
    }
}

fn packing(bounds: &KeyBounds, left: u32) -> (Packing, u32, bool) {
    if let Some((min, max)) = bounds.range {
        let bits = WORD_BITS - (max.wrapping_sub(min) as u128).leading_zeros();
        return match bits <= left {
            true => (Packing::Distance { min }, bits, true),
            false => (Packing::Nothing, 0, false),
        };
    }
    let Some((common, longest)) = &bounds.texts else {
        return (Packing::Nothing, 0, false);
    };
    let (skipped, bytes) = (common.len(), longest - common.len());
    // The length follows in a byte: a text may end with zeros.
    if bytes <= SHORT_TEXT && (bytes as u32 + 1) * 8 <= left {
        return (Packing::Text { skipped, bytes, whole: true }, (bytes as u32 + 1) * 8, true);
    }
    let bytes = bytes.min(left as usize / 8);
    (Packing::Text { skipped, bytes, whole: false }, bytes as u32 * 8, false)
}

/// A packed key.
pub(super) trait Word: Copy + Default + Ord + Send + Sync + 'static {
    /// The word with `bits` more bits.
    fn with(self, bits: u32, field: u128) -> Self;

    /// The word without its last `bits` bits.
    fn without(self, bits: u32) -> Self;

    /// Its last bits.
    fn index(self) -> usize;
}

impl Word for u64 {
    #[inline]
    fn with(self, bits: u32, field: u128) -> Self {
        self.checked_shl(bits).unwrap_or(0) | field as u64
    }

    fn without(self, bits: u32) -> Self {
        self.checked_shr(bits).unwrap_or(0)
    }

    fn index(self) -> usize {
        self as usize
    }
}

impl Word for u128 {
    #[inline]
    fn with(self, bits: u32, field: u128) -> Self {
        self.checked_shl(bits).unwrap_or(0) | field
    }

    fn without(self, bits: u32) -> Self {
        self.checked_shr(bits).unwrap_or(0)
    }

    fn index(self) -> usize {
        self as usize
    }
}

impl PackedColumn {
    fn pack<W: Word>(&self, array: &ArrayRef, words: &mut [W]) {
        match self.packing {
            Packing::Distance { min } => with_ordered!(array, values => {
                self.push(array, words, |row| values[row].ordered().wrapping_sub(min) as u128);
            }, else self.push(array, words, |_| 0)),
            Packing::Text { skipped, bytes: most, whole } => match bytes(array) {
                Some(bytes) => self.push(array, words, |row| {
                    let text = bytes(row).get(skipped..).unwrap_or_default();
                    text_field(text, most, whole)
                }),
                None => self.push(array, words, |_| 0),
            },
            Packing::Nothing => self.push(array, words, |_| 0),
        }
    }

    fn push<W: Word>(&self, array: &ArrayRef, words: &mut [W], field: impl Fn(usize) -> u128) {
        let mask = match self.bits {
            WORD_BITS => u128::MAX,
            bits => (1 << bits) - 1,
        };
        let flip = if self.options.descending { mask } else { 0 };
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (null, value) = if self.options.nulls_first { (0, 1) } else { (1, 0) };
        for (row, word) in words.iter_mut().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            if self.has_nulls {
                *word = word.with(1, if is_null { null } else { value });
            }
            let field = if is_null { 0 } else { (field(row) ^ flip) & mask };
            *word = word.with(self.bits, field);
        }
    }
}

/// The first bytes of a text, then its length if it is there as a whole.
#[inline]
fn text_field(text: &[u8], most: usize, whole: bool) -> u128 {
    let mut first = [0; 16];
    let taken = text.len().min(most);
    first[..taken].copy_from_slice(&text[..taken]);
    let field = match most {
        0 => 0,
        most => u128::from_be_bytes(first) >> (WORD_BITS - most as u32 * 8),
    };
    if whole { field << 8 | text.len() as u128 } else { field }
}
