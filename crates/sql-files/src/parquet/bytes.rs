//! Values that Parquet stores as fixed-length bytes: INTERVAL (months, days and milliseconds) and UUID.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use atoll_functions::canonical_uuid;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    IntervalMonthDayNanoArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Schema,
    SchemaRef,
};
use datafusion::common::{ColumnStatistics, Result, Statistics, exec_err};
use datafusion::parquet::basic::{ConvertedType, LogicalType};
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};

use crate::nested::with_leaf_types;

pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Bytes of an INTERVAL: months, days and milliseconds, four each.
pub(super) const INTERVAL_BYTES: i32 = 12;
/// Bytes of a UUID.
pub(super) const UUID_BYTES: i32 = 16;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The meaning of a column of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteValue {
    Interval,
    Uuid,
}

impl ByteValue {
    fn from_column(column: &ColumnDescriptor) -> Option<Self> {
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Uuid), _) => Some(Self::Uuid),
            (_, ConvertedType::INTERVAL) => Some(Self::Interval),
            _ => None,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Interval => INTERVAL,
            // As a column that is declared UUID.
            Self::Uuid => DataType::Utf8View,
        }
    }

    /// The type of the bytes.
    pub(super) fn bytes(self) -> DataType {
        DataType::FixedSizeBinary(match self {
            Self::Interval => INTERVAL_BYTES,
            Self::Uuid => UUID_BYTES,
        })
    }

    /// A column of bytes with their meaning.
    pub(super) fn column(self, plain: &Type) -> ParquetResult<Type> {
        let column = Type::primitive_type_builder(plain.name(), plain.get_physical_type())
            .with_repetition(plain.get_basic_info().repetition());
        match self {
            Self::Interval => column
                .with_converted_type(ConvertedType::INTERVAL)
                .with_length(INTERVAL_BYTES)
                .build(),
            Self::Uuid => {
                column.with_logical_type(Some(LogicalType::Uuid)).with_length(UUID_BYTES).build()
            }
        }
    }
}

/// The columns of a file that contain such values, by name, with the meaning of each innermost column.
#[derive(Debug, Default)]
pub(super) struct ByteColumns(HashMap<String, Vec<Option<ByteValue>>>);

impl ByteColumns {
    pub(super) fn from_schema(schema: &SchemaDescriptor) -> Self {
        let mut columns: HashMap<_, Vec<_>> = HashMap::new();
        for (at, column) in schema.columns().iter().enumerate() {
            let name = schema.get_column_root(at).name().to_owned();
            columns.entry(name).or_default().push(ByteValue::from_column(column));
        }
        columns.retain(|_, values| values.iter().any(Option::is_some));
        Self(columns)
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The schema that DataFusion infers, with the types of these values: it takes an INTERVAL for one of days and
    /// milliseconds, and a UUID for bytes.
    pub(super) fn typed(&self, schema: &SchemaRef) -> SchemaRef {
        if self.0.is_empty() {
            return Arc::clone(schema);
        }
        let field = |field: &FieldRef| match self.0.get(field.name()) {
            Some(values) => {
                let mut values = values.iter();
                let mut leaf = |inferred: &DataType| {
                    let value = values.next().copied().flatten();
                    value.map_or_else(|| inferred.clone(), ByteValue::data_type)
                };
                let data_type = with_leaf_types(field.data_type(), &mut leaf);
                Arc::new(field.as_ref().clone().with_data_type(data_type))
            }
            None => Arc::clone(field),
        };
        let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// Statistics without bounds of these columns, which are bytes in the file.
    pub(super) fn without_bounds(&self, mut statistics: Statistics, schema: &Schema) -> Statistics {
        for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
            if self.0.contains_key(field.name()) {
                *column = ColumnStatistics::new_unknown().with_byte_size(column.byte_size);
            }
        }
        statistics
    }
}

/// The type of the values in a file's bytes if the table wants that type; `None` for others.
pub(super) fn value_type(bytes: &DataType, wanted: &DataType) -> Option<DataType> {
    match bytes {
        DataType::FixedSizeBinary(INTERVAL_BYTES) if *wanted == INTERVAL => Some(INTERVAL),
        DataType::FixedSizeBinary(UUID_BYTES) if wanted.is_string() => Some(DataType::Utf8View),
        _ => None,
    }
}

/// Converts bytes to values.
pub(super) fn values_of(bytes: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match (bytes.as_fixed_size_binary_opt(), to) {
        (Some(bytes), to) if *to == INTERVAL => Ok(intervals(bytes)),
        (Some(bytes), DataType::Utf8View) => Ok(uuids(bytes)),
        _ => exec_err!("values of type {to} are read as {}", bytes.data_type()),
    }
}

/// Little-endian months, days and milliseconds, by Parquet's LogicalTypes.md.
fn intervals(bytes: &FixedSizeBinaryArray) -> ArrayRef {
    let interval = |bytes: &[u8]| {
        let part = |at: usize| {
            bytes[at..at + 4].iter().rev().fold(0_u32, |part, byte| (part << 8) | u32::from(*byte))
        };
        let nanoseconds = i64::from(part(8)) * NANOSECONDS_PER_MILLISECOND;
        IntervalMonthDayNano::new(part(0).cast_signed(), part(4).cast_signed(), nanoseconds)
    };
    let intervals: IntervalMonthDayNanoArray =
        bytes.iter().map(|bytes| bytes.map(interval)).collect();
    Arc::new(intervals)
}

fn uuids(bytes: &FixedSizeBinaryArray) -> ArrayRef {
    let mut texts = StringViewBuilder::with_capacity(bytes.len());
    let mut text = String::with_capacity(36);
    for uuid in bytes {
        let Some(uuid) = uuid else {
            texts.append_null();
            continue;
        };
        text.clear();
        for (at, byte) in uuid.iter().enumerate() {
            text.push_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        texts.append_value(&text);
    }
    Arc::new(texts.finish())
}

/// Converts values to bytes.
pub(super) fn bytes_of(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match *to == ByteValue::Uuid.bytes() {
        true => uuid_bytes(values),
        false => interval_bytes(values),
    }
}

fn uuid_bytes(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let mut bytes = FixedSizeBinaryBuilder::with_capacity(texts.len(), UUID_BYTES);
    for text in texts.as_string::<i32>() {
        let Some(text) = text else {
            bytes.append_null();
            continue;
        };
        let digits = canonical_uuid(text).map(|text| text.replace('-', ""));
        match digits.and_then(|digits| u128::from_str_radix(&digits, 16).ok()) {
            Some(uuid) => bytes.append_value(uuid.to_be_bytes())?,
            None => return exec_err!("'{text}' is not a UUID"),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

/// The bytes of intervals.
///
/// # Errors
/// If Parquet's INTERVAL cannot hold one.
fn interval_bytes(intervals: &ArrayRef) -> Result<ArrayRef> {
    let Some(intervals) = intervals.as_primitive_opt::<IntervalMonthDayNanoType>() else {
        return exec_err!("expected intervals, found type {}", intervals.data_type());
    };
    let mut bytes = FixedSizeBinaryBuilder::with_capacity(intervals.len(), INTERVAL_BYTES);
    for interval in intervals {
        match interval.map(|interval| parts(interval).ok_or(interval)) {
            None => bytes.append_null(),
            Some(Ok(parts)) => bytes.append_value(parts.as_flattened())?,
            Some(Err(IntervalMonthDayNano { months, days, nanoseconds })) => {
                return exec_err!(
                    "the interval of {months} months, {days} days and {nanoseconds} nanoseconds does not fit \
                     Parquet's type, which has no negative parts and only milliseconds; write an Arrow \
                     file, or cast the column to VARCHAR"
                );
            }
        }
    }
    Ok(Arc::new(bytes.finish()))
}

fn parts(interval: IntervalMonthDayNano) -> Option<[[u8; 4]; 3]> {
    let milliseconds = interval.nanoseconds / NANOSECONDS_PER_MILLISECOND;
    let is_whole = interval.nanoseconds % NANOSECONDS_PER_MILLISECOND == 0;
    let part = |value: i64| u32::try_from(value).ok().map(u32::to_le_bytes);
    let parts = [part(interval.months.into())?, part(interval.days.into())?, part(milliseconds)?];
    is_whole.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_survive_a_round_trip_through_bytes() {
        let of = IntervalMonthDayNano::new;
        let all = [Some(of(14, 3, 14_706_789_000_000)), None, Some(of(0, 0, 0))];
        let all: ArrayRef = Arc::new(all.into_iter().collect::<IntervalMonthDayNanoArray>());
        let bytes = interval_bytes(&all).expect("Parquet supports them");
        assert_eq!(&values_of(&bytes, &INTERVAL).expect("they are intervals"), &all);
        for lost in
            [of(-1, 0, 0), of(0, -1, 0), of(0, 0, -1_000_000), of(0, 0, 1), of(0, 0, i64::MAX)]
        {
            let lost: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![lost]));
            let told = interval_bytes(&lost).expect_err("it does not fit").to_string();
            assert!(told.contains("write an Arrow file"), "{told}");
        }
    }

    #[test]
    fn uuids_are_texts_in_groups() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 16 + 1).collect();
        let bytes: ArrayRef = Arc::new(
            FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).expect("a value of 16 bytes"),
        );
        let texts = values_of(&bytes, &DataType::Utf8View).expect("they are texts");
        assert_eq!(&bytes_of(&texts, bytes.data_type()).expect("they are UUIDs"), &bytes);
        assert_eq!(texts.as_string_view().value(0), "01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}
