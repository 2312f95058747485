//! Rows come back from their bytes as they were, keys are equal where values are, and damaged bytes are refused.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch,
    RecordBatchOptions, StringArray, make_array,
};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use atoll_store::table::{KeyBuilder, Row, RowCodec, TableError, canonical, stored_schema};
use atoll_sys::SplitMix64;
use proptest::prelude::*;

fn field(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type, true))
}

fn scalar_types() -> Vec<DataType> {
    use DataType as D;
    let zone = || Some(Arc::from("Europe/Berlin"));
    vec![
        D::Null,
        D::Boolean,
        D::Int8,
        D::Int16,
        D::Int32,
        D::Int64,
        D::UInt8,
        D::UInt16,
        D::UInt32,
        D::UInt64,
        D::Float16,
        D::Float32,
        D::Float64,
        D::Decimal32(9, 2),
        D::Decimal64(18, 2),
        D::Decimal128(38, 10),
        D::Decimal256(76, -3),
        D::Date32,
        D::Date64,
        D::Time32(TimeUnit::Second),
        D::Time32(TimeUnit::Millisecond),
        D::Time64(TimeUnit::Microsecond),
        D::Time64(TimeUnit::Nanosecond),
        D::Timestamp(TimeUnit::Second, None),
        D::Timestamp(TimeUnit::Nanosecond, zone()),
        D::Duration(TimeUnit::Millisecond),
        D::Interval(IntervalUnit::YearMonth),
        D::Interval(IntervalUnit::DayTime),
        D::Interval(IntervalUnit::MonthDayNano),
        D::Utf8,
        D::LargeUtf8,
        D::Utf8View,
        D::Binary,
        D::LargeBinary,
        D::BinaryView,
        D::FixedSizeBinary(5),
    ]
}

fn random_type(depth: usize, random: &mut SplitMix64) -> DataType {
    let scalars = scalar_types();
    let mut part = |depth: usize| field(random_type(depth, random));
    if depth == 0 {
        return scalars[(random.next() % scalars.len() as u64) as usize].clone();
    }
    let nested = depth - 1;
    let first = part(nested);
    match random.next() % 9 {
        0 => DataType::List(first),
        1 => DataType::LargeList(first),
        2 => DataType::FixedSizeList(first, 2),
        3 => {
            let second = field(random_type(nested, random));
            let second = second.as_ref().clone().with_name("second");
            DataType::Struct(Fields::from(vec![first.as_ref().clone(), second]))
        }
        4 => {
            let key = Field::new("key", DataType::Utf8, false);
            let value = first.as_ref().clone().with_name("value");
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        5 => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        6 => DataType::Struct(Fields::empty()),
        _ => random_type(0, random),
    }
}

fn random_nulls(rows: usize, random: &mut SplitMix64) -> Option<NullBuffer> {
    let nulls = NullBuffer::from_iter((0..rows).map(|_| !random.next().is_multiple_of(4)));
    (!random.next().is_multiple_of(3)).then_some(nulls)
}

fn random_text(random: &mut SplitMix64) -> String {
    let length = random.next() % 30;
    (0..length).map(|_| char::from_u32((random.next() % 0x250) as u32).unwrap()).collect()
}

fn random_array(data_type: &DataType, rows: usize, random: &mut SplitMix64) -> ArrayRef {
    let nulls = random_nulls(rows, random);
    let data = ArrayData::builder(data_type.clone()).len(rows);
    let offsets = |random: &mut SplitMix64| {
        let mut ends = vec![0_i32];
        (0..rows).for_each(|_| ends.push(ends.last().unwrap() + (random.next() % 4) as i32));
        ends
    };
    let data = match data_type {
        DataType::Null => return Arc::new(NullArray::new(rows)),
        DataType::Boolean => {
            let values = (0..rows).map(|_| random.next().is_multiple_of(2)).collect::<Vec<_>>();
            return Arc::new(BooleanArray::new(values.into(), nulls));
        }
        DataType::List(item) | DataType::Map(item, _) => {
            let ends = offsets(random);
            let count = *ends.last().unwrap() as usize;
            let items = match item.is_nullable() {
                true => random_array(item.data_type(), count, random),
                false => random_entries(item.data_type(), count, random),
            };
            data.nulls(nulls).add_buffer(Buffer::from_vec(ends)).add_child_data(items.to_data())
        }
        DataType::LargeList(item) => {
            let ends: Vec<i64> = offsets(random).into_iter().map(i64::from).collect();
            let items = random_array(item.data_type(), *ends.last().unwrap() as usize, random);
            data.nulls(nulls).add_buffer(Buffer::from_vec(ends)).add_child_data(items.to_data())
        }
        DataType::FixedSizeList(item, length) => {
            let items = random_array(item.data_type(), rows * *length as usize, random);
            data.nulls(nulls).add_child_data(items.to_data())
        }
        DataType::Struct(fields) => {
            let children =
                fields.iter().map(|f| random_array(f.data_type(), rows, random).to_data());
            data.nulls(nulls).child_data(children.collect())
        }
        DataType::FixedSizeBinary(width) => {
            return fixed(data_type, *width as usize, rows, nulls, random);
        }
        other => {
            if let Some(width) = other.primitive_width() {
                return fixed(data_type, width, rows, nulls, random);
            }
            let texts = (0..rows).map(|row| {
                let text = random_text(random);
                nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then_some(text)
            });
            let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
            return cast(&texts, data_type).unwrap();
        }
    };
    make_array(data.build().unwrap())
}

/// Entries of a map, whose keys are never NULL.
fn random_entries(data_type: &DataType, rows: usize, random: &mut SplitMix64) -> ArrayRef {
    let DataType::Struct(fields) = data_type else { unreachable!("entries are structs") };
    let keys: ArrayRef =
        Arc::new((0..rows).map(|_| Some(random_text(random))).collect::<StringArray>());
    let values = random_array(fields[1].data_type(), rows, random);
    let data = ArrayData::builder(data_type.clone()).len(rows);
    make_array(data.child_data(vec![keys.to_data(), values.to_data()]).build().unwrap())
}

fn fixed(
    data_type: &DataType,
    width: usize,
    rows: usize,
    nulls: Option<NullBuffer>,
    random: &mut SplitMix64,
) -> ArrayRef {
    let mut bytes = MutableBuffer::with_capacity(width * rows);
    (0..width * rows).for_each(|_| bytes.push((random.next() % 3) as u8 * 127));
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(bytes.into());
    make_array(data.nulls(nulls).build().unwrap())
}

/// Some columns of random types, behind an offset.
fn random_batch(rows: usize, random: &mut SplitMix64) -> RecordBatch {
    let columns = 1 + random.next() % 10;
    let types: Vec<DataType> = (0..columns).map(|_| random_type(2, random)).collect();
    let fields =
        types.iter().enumerate().map(|(at, t)| Field::new(format!("c{at}"), t.clone(), true));
    let schema = stored_schema(&Schema::new(fields.collect::<Vec<_>>()));
    let columns = schema.fields().iter().map(|field| {
        canonical(&random_array(field.data_type(), rows + 3, random).slice(2, rows)).unwrap()
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let columns = columns.collect();
    RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_come_back_as_they_were(seed: u64, rows in 0_usize..20) {
        let mut random = SplitMix64::new(seed);
        let batch = random_batch(rows, &mut random);
        let codec = RowCodec::new(&batch.schema()).unwrap();
        let encoded = codec.encode(&batch).unwrap();
        prop_assert_eq!(&codec.decode(&encoded).unwrap(), &batch);
        prop_assert_eq!(&codec.encode(&batch).unwrap(), &encoded, "the bytes are always the same");
        let projection: Vec<usize> =
            (0..4).map(|_| (random.next() % batch.num_columns() as u64) as usize).collect();
        let some = codec.decode_columns(&encoded, &projection).unwrap();
        prop_assert_eq!(some, batch.project(&projection).unwrap());
    }

    #[test]
    fn keys_are_equal_where_values_are(seed: u64) {
        let mut random = SplitMix64::new(seed);
        let batch = random_batch(12, &mut random);
        let codec = RowCodec::new(&batch.schema()).unwrap();
        let columns: Vec<usize> =
            (0..batch.num_columns()).rev().filter(|_| !random.next().is_multiple_of(3)).take(3).collect();
        prop_assume!(!columns.is_empty());
        let keys = codec.keys_of(&batch, &columns).unwrap();
        for (row, encoded) in codec.encode(&batch).unwrap().iter().enumerate() {
            prop_assert_eq!(&codec.key(encoded, &columns), &keys[row]);
        }
        for (one, two) in (0..12).flat_map(|one| (0..12).map(move |two| (one, two))) {
            let values = |row: usize| columns.iter().map(move |at| (at, row));
            let has_null = |row| values(row).any(|(at, row)| batch.column(*at).slice(row, 1).logical_null_count() > 0);
            let same = |(at, row): (&usize, usize)| batch.column(*at).slice(row, 1);
            let is_equal = values(one).zip(values(two)).all(|(a, b)| same(a) == same(b));
            prop_assert_eq!(keys[one].is_none(), has_null(one));
            if !has_null(one) && !has_null(two) {
                prop_assert_eq!(keys[one] == keys[two], is_equal);
            }
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_other_rows_and_never_a_panic(seed: u64) {
        let mut random = SplitMix64::new(seed);
        let batch = random_batch(5, &mut random);
        let codec = RowCodec::new(&batch.schema()).unwrap();
        let all: Vec<usize> = (0..batch.num_columns()).collect();
        for row in codec.encode(&batch).unwrap() {
            let mut bytes = row.as_bytes().to_vec();
            for _ in 0..=random.next() % 3 {
                let at = (random.next() % (bytes.len() as u64 + 1)) as usize;
                match random.next() % 4 {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, random.next() as u8),
                    2 => bytes.extend([0xff; 9]),
                    _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (random.next() % 8)),
                }
            }
            let damaged = Row::from_bytes(&bytes);
            codec.key(&damaged, &all);
            if let Ok(decoded) = codec.decode(std::slice::from_ref(&damaged)) {
                let again = codec.encode(&decoded).unwrap();
                prop_assert_eq!(codec.decode(&again).unwrap(), decoded);
            }
        }
    }
}

fn one_column(data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("x", data_type, true)]))
}

#[test]
fn the_bytes_of_a_row_are_those_of_the_documented_table() {
    let fields = vec![
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Utf8View, true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("list", DataType::List(field(DataType::Int8)), true),
    ];
    let schema = Arc::new(Schema::new(fields));
    let items: ArrayRef = Arc::new(arrow_array::Int8Array::from(vec![Some(5), None, Some(-1)]));
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0, 3, 3].into());
    let list = arrow_array::ListArray::new(field(DataType::Int8), offsets, items, None);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(258), None])),
        Arc::new(arrow_array::StringViewArray::from(vec![Some("ab"), Some("")])),
        Arc::new(BooleanArray::from(vec![None, Some(true)])),
        Arc::new(list),
    ];
    let rows = RowCodec::new(&schema).unwrap();
    let rows = rows.encode(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    let first = [0b1011, 2, 1, 0, 0, 0, 0, 0, 0, 2, b'a', b'b', 3, 0b101, 5, 0xff];
    assert_eq!(rows[0].as_bytes(), first);
    assert_eq!(rows[1].as_bytes(), [0b1110, 0, 1, 0]);
}

#[test]
fn zeros_and_nans_are_equal_as_keys() {
    let codec = RowCodec::new(&one_column(DataType::Float64)).unwrap();
    let other_nan = f64::from_bits(0xfff0_0000_0000_0001);
    let values: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, other_nan, -1.5]));
    let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
    let keys = codec.keys_of(&batch, &[0]).unwrap();
    assert!(keys[0] == keys[1] && keys[2] == keys[3] && keys[0] != keys[2] && keys[4] != keys[0]);
    assert_eq!(keys[0].as_ref().unwrap().hash64(), keys[1].as_ref().unwrap().hash64());
    let mut by_hand = KeyBuilder::default();
    by_hand.float64(-0.0);
    assert_eq!(Some(by_hand.finish()), keys[0]);
    let rows = codec.encode(&batch).unwrap();
    assert!(rows[0] == rows[1] && rows[2] == rows[3]);
}

#[test]
fn a_key_made_by_hand_is_the_key_of_the_row() {
    let fields = vec![
        Field::new("number", DataType::Int32, true),
        Field::new("text", DataType::Utf8View, true),
        Field::new("flag", DataType::Boolean, true),
    ];
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrow_array::Int32Array::from(vec![-7])),
        Arc::new(arrow_array::StringViewArray::from(vec!["a long text behind its length"])),
        Arc::new(BooleanArray::from(vec![true])),
    ];
    let codec = RowCodec::new(&schema).unwrap();
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let mut key = KeyBuilder::default();
    key.bytes(b"a long text behind its length");
    key.fixed(&(-7_i32).to_le_bytes());
    key.boolean(true);
    let key = key.finish();
    let text = "(text, number, flag)=(a long text behind its length, -7, true)";
    assert_eq!(codec.describe_key(&key, &[1, 0, 2]), text);
    assert_eq!(codec.describe_key(&key, &[0]), "(number)=()", "the key of other columns");
    assert_eq!(Some(key), codec.keys_of(&batch, &[1, 0, 2]).unwrap().remove(0));
}

#[test]
fn a_type_that_rows_cannot_hold_is_refused_with_its_column() {
    let union = arrow_schema::UnionFields::from_iter([(0, field(DataType::Int8))]);
    let union = DataType::Union(union, arrow_schema::UnionMode::Dense);
    let error = RowCodec::new(&one_column(DataType::List(field(union)))).unwrap_err();
    assert!(matches!(&error, TableError::Unsupported { column, .. } if column == "x"), "{error}");
}

#[test]
fn rows_of_another_table_are_refused() {
    let codec = RowCodec::new(&one_column(DataType::Int64)).unwrap();
    let error = codec.decode(&[Row::from_bytes(&[1, 2, 3])]).unwrap_err().to_string();
    assert!(error.contains("row 0") && error.contains("column 'x'"), "{error}");
    let error = codec.decode(&[Row::from_bytes(&[0]), Row::from_bytes(&[0, 9])]).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
    let error = codec.decode(&[Row::from_bytes(&[2])]).unwrap_err().to_string();
    assert!(error.contains("null bits"), "{error}");
}
