//! Types of columns as bytes.
//!
//! A field is its name, its type, a flag whether it is nullable, and the list of its metadata (pairs of
//! texts, by key). A type is a byte, followed by its parameters:
//!
//! | Byte | Type | Then |
//! |---|---|---|
//! | 0, 1 | null, boolean | |
//! | 2 to 5, 6 to 9 | signed and unsigned whole numbers of 8, 16, 32, 64 bits | |
//! | 10 to 12 | floats of 16, 32, 64 bits | |
//! | 13, 14 | dates in days, in milliseconds | |
//! | 15, 16 | times of 32, 64 bits | unit: 0 s, 1 ms, 2 µs, 3 ns |
//! | 17 | timestamp | unit, optional time zone |
//! | 18 | duration | unit |
//! | 19 | interval | unit: 0 months, 1 days and ms, 2 months, days and ns |
//! | 20 to 22, 23 to 25 | bytes, strings: with offsets of 32 bits, of 64, as views | |
//! | 26 | bytes of one length | the length |
//! | 27 to 30 | decimals of 32, 64, 128, 256 bits | digits (a byte), scale (signed) |
//! | 31, 32, 33 | lists: with offsets of 32 bits, of 64, of one length | field, and the length |
//! | 34 | struct | list of fields |
//! | 35 | map | field of the entries, flag whether keys are sorted |
//! | 36 | dictionary | type of the keys, type of the values |

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef,
    TimeUnit,
};

use super::{Decoder, Encoder, Result};

/// Maximum nesting of types that are read.
const DEPTH_MAX: usize = 64;

/// Types without parameters, by their byte.
const PLAIN: [(u8, DataType); 21] = [
    (0, DataType::Null),
    (1, DataType::Boolean),
    (2, DataType::Int8),
    (3, DataType::Int16),
    (4, DataType::Int32),
    (5, DataType::Int64),
    (6, DataType::UInt8),
    (7, DataType::UInt16),
    (8, DataType::UInt32),
    (9, DataType::UInt64),
    (10, DataType::Float16),
    (11, DataType::Float32),
    (12, DataType::Float64),
    (13, DataType::Date32),
    (14, DataType::Date64),
    (20, DataType::Binary),
    (21, DataType::LargeBinary),
    (22, DataType::BinaryView),
    (23, DataType::Utf8),
    (24, DataType::LargeUtf8),
    (25, DataType::Utf8View),
];

/// Writes a schema; its own metadata is not part of a table. Returns the type that cannot be written, if there is
/// one.
pub(crate) fn encode_schema(
    encoder: &mut Encoder,
    schema: &Schema,
) -> std::result::Result<(), DataType> {
    encoder.count(schema.fields().len());
    schema.fields().iter().try_for_each(|field| encode_field(encoder, field))
}

/// Reads a schema.
pub(crate) fn decode_schema(decoder: &mut Decoder<'_>) -> Result<SchemaRef> {
    let fields = decoder.list("columns", |decoder| decode_field(decoder, 0))?;
    Ok(Arc::new(Schema::new(fields)))
}

fn encode_field(encoder: &mut Encoder, field: &Field) -> std::result::Result<(), DataType> {
    encoder.text(field.name());
    encode_type(encoder, field.data_type())?;
    encoder.flag(field.is_nullable());
    let metadata: BTreeMap<_, _> = field.metadata().iter().collect();
    encoder.list(metadata.into_iter(), |encoder, (key, value)| {
        encoder.text(key);
        encoder.text(value);
    });
    Ok(())
}

fn decode_field(decoder: &mut Decoder<'_>, depth: usize) -> Result<FieldRef> {
    let name = decoder.text("name of a column")?;
    let data_type = typed(decoder, depth)?;
    let field = Field::new(name, data_type, decoder.flag("whether a column is nullable")?);
    let metadata = decoder.list("metadata of a column", |decoder| {
        let key = decoder.text("key")?.to_owned();
        Ok((key, decoder.text("value")?.to_owned()))
    })?;
    Ok(Arc::new(field.with_metadata(metadata.into_iter().collect())))
}

/// Writes a type. Returns it as the error if it cannot be written.
fn encode_type(encoder: &mut Encoder, data_type: &DataType) -> std::result::Result<(), DataType> {
    let plain = PLAIN.iter().find(|(_, plain)| plain == data_type);
    if let Some((byte, _)) = plain {
        encoder.byte(*byte);
        return Ok(());
    }
    match data_type {
        DataType::Time32(of) => put(encoder, &[15, unit(*of)]),
        DataType::Time64(of) => put(encoder, &[16, unit(*of)]),
        DataType::Timestamp(of, zone) => {
            put(encoder, &[17, unit(*of)]);
            encoder.option(zone.as_deref(), Encoder::text);
        }
        DataType::Duration(of) => put(encoder, &[18, unit(*of)]),
        DataType::Interval(of) => put(encoder, &[19, interval(*of)]),
        DataType::FixedSizeBinary(length) => {
            encoder.byte(26);
            encoder.number(u64::from(length.unsigned_abs()));
        }
        DataType::Decimal32(digits, scale) => decimal(encoder, 27, *digits, *scale),
        DataType::Decimal64(digits, scale) => decimal(encoder, 28, *digits, *scale),
        DataType::Decimal128(digits, scale) => decimal(encoder, 29, *digits, *scale),
        DataType::Decimal256(digits, scale) => decimal(encoder, 30, *digits, *scale),
        DataType::List(item) => {
            encoder.byte(31);
            encode_field(encoder, item)?;
        }
        DataType::LargeList(item) => {
            encoder.byte(32);
            encode_field(encoder, item)?;
        }
        DataType::FixedSizeList(item, length) => {
            encoder.byte(33);
            encode_field(encoder, item)?;
            encoder.number(u64::from(length.unsigned_abs()));
        }
        DataType::Struct(fields) => {
            encoder.byte(34);
            encoder.count(fields.len());
            fields.iter().try_for_each(|field| encode_field(encoder, field))?;
        }
        DataType::Map(entries, is_sorted) => {
            encoder.byte(35);
            encode_field(encoder, entries)?;
            encoder.flag(*is_sorted);
        }
        DataType::Dictionary(keys, values) => {
            encoder.byte(36);
            encode_type(encoder, keys)?;
            encode_type(encoder, values)?;
        }
        other => return Err(other.clone()),
    }
    Ok(())
}

/// Reads a type that lies within `depth` others.
fn typed(decoder: &mut Decoder<'_>, depth: usize) -> Result<DataType> {
    if depth > DEPTH_MAX {
        return Err(decoder.error("type", format!("nested more than {DEPTH_MAX} deep")));
    }
    let byte = decoder.byte("type")?;
    if let Some((_, plain)) = PLAIN.iter().find(|(of, _)| *of == byte) {
        return Ok(plain.clone());
    }
    Ok(match byte {
        15 => DataType::Time32(read_unit(decoder, 0..2)?),
        16 => DataType::Time64(read_unit(decoder, 2..4)?),
        17 => {
            let unit = read_unit(decoder, 0..4)?;
            let zone = decoder.option("time zone", |decoder| decoder.text("time zone"))?;
            DataType::Timestamp(unit, zone.map(Into::into))
        }
        18 => DataType::Duration(read_unit(decoder, 0..4)?),
        19 => DataType::Interval(read_interval(decoder)?),
        26 => DataType::FixedSizeBinary(read_length(decoder)?),
        27 => read_decimal(decoder, DECIMAL32_MAX_PRECISION, DataType::Decimal32)?,
        28 => read_decimal(decoder, DECIMAL64_MAX_PRECISION, DataType::Decimal64)?,
        29 => read_decimal(decoder, DECIMAL128_MAX_PRECISION, DataType::Decimal128)?,
        30 => read_decimal(decoder, DECIMAL256_MAX_PRECISION, DataType::Decimal256)?,
        31 => DataType::List(decode_field(decoder, depth + 1)?),
        32 => DataType::LargeList(decode_field(decoder, depth + 1)?),
        33 => {
            let item = decode_field(decoder, depth + 1)?;
            DataType::FixedSizeList(item, read_length(decoder)?)
        }
        34 => {
            let fields = decoder.list("fields", |decoder| decode_field(decoder, depth + 1))?;
            DataType::Struct(Fields::from(fields))
        }
        35 => read_map(decoder, depth)?,
        36 => {
            let keys = typed(decoder, depth + 1)?;
            if !keys.is_dictionary_key_type() {
                return Err(decoder.error("dictionary", format!("keys cannot be {keys}")));
            }
            DataType::Dictionary(Box::new(keys), Box::new(typed(decoder, depth + 1)?))
        }
        other => return Err(decoder.error("type", format!("{other} is not the number of a type"))),
    })
}

fn put(encoder: &mut Encoder, bytes: &[u8]) {
    bytes.iter().for_each(|byte| encoder.byte(*byte));
}

fn unit(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn read_unit(decoder: &mut Decoder<'_>, allowed: std::ops::Range<u8>) -> Result<TimeUnit> {
    let byte = decoder.byte("unit of time")?;
    let units =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    match allowed.contains(&byte) {
        true => Ok(units[usize::from(byte)]),
        false => {
            Err(decoder.error("unit of time", format!("unit {byte} is invalid for this type")))
        }
    }
}

fn interval(unit: IntervalUnit) -> u8 {
    match unit {
        IntervalUnit::YearMonth => 0,
        IntervalUnit::DayTime => 1,
        IntervalUnit::MonthDayNano => 2,
    }
}

fn read_interval(decoder: &mut Decoder<'_>) -> Result<IntervalUnit> {
    match decoder.byte("unit of an interval")? {
        0 => Ok(IntervalUnit::YearMonth),
        1 => Ok(IntervalUnit::DayTime),
        2 => Ok(IntervalUnit::MonthDayNano),
        other => Err(decoder.error("unit of an interval", format!("unknown unit {other}"))),
    }
}

fn read_length(decoder: &mut Decoder<'_>) -> Result<i32> {
    let length = decoder.number("length")?;
    i32::try_from(length).map_err(|_| decoder.error("length", format!("{length} is too large")))
}

fn decimal(encoder: &mut Encoder, byte: u8, digits: u8, scale: i8) {
    put(encoder, &[byte, digits]);
    encoder.signed(scale.into());
}

fn read_decimal(
    decoder: &mut Decoder<'_>,
    most: u8,
    of: fn(u8, i8) -> DataType,
) -> Result<DataType> {
    let digits = decoder.byte("digits of a decimal")?;
    let scale = decoder.signed("scale of a decimal")?;
    let scale = i8::try_from(scale).ok().filter(|scale| *scale <= digits as i8);
    match scale {
        Some(scale) if (1..=most).contains(&digits) => Ok(of(digits, scale)),
        _ => Err(decoder
            .error("decimal", format!("precision or scale is out of range for {most} digits"))),
    }
}

fn read_map(decoder: &mut Decoder<'_>, depth: usize) -> Result<DataType> {
    let entries = decode_field(decoder, depth + 1)?;
    let is_pair = matches!(entries.data_type(), DataType::Struct(fields) if fields.len() == 2);
    match is_pair {
        true => Ok(DataType::Map(entries, decoder.flag("whether keys are sorted")?)),
        false => Err(decoder.error("map", "its entries are not pairs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_type() -> Vec<DataType> {
        let item = |data_type| Arc::new(Field::new("item", data_type, true));
        let pair =
            vec![Field::new("k", DataType::Utf8, false), Field::new("v", DataType::Int8, true)];
        let pair = DataType::Struct(pair.into());
        let mut types: Vec<_> = PLAIN.iter().map(|(_, plain)| plain.clone()).collect();
        types.extend([
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Duration(TimeUnit::Second),
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::FixedSizeBinary(16),
            DataType::Decimal32(9, 2),
            DataType::Decimal64(18, -2),
            DataType::Decimal128(38, 10),
            DataType::Decimal256(76, 76),
            DataType::List(item(DataType::Utf8View)),
            DataType::LargeList(item(DataType::List(item(DataType::Int8)))),
            DataType::FixedSizeList(item(DataType::Float64), 3),
            DataType::Map(Arc::new(Field::new("entries", pair.clone(), false)), false),
            pair,
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ]);
        types
    }

    fn bytes(schema: &Schema) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encode_schema(&mut encoder, schema).unwrap();
        encoder.finish()
    }

    #[test]
    fn every_type_is_read_as_it_was_written() {
        let fields = every_type().into_iter().enumerate();
        let fields = fields.map(|(i, of)| Field::new(format!("c{i}"), of, i % 2 == 0));
        let metadata = [("unit".to_owned(), "m".to_owned())].into();
        let fields: Vec<Field> = fields
            .map(|field| field.with_metadata(std::collections::HashMap::clone(&metadata)))
            .collect();
        let schema = Schema::new(fields);
        let bytes = bytes(&schema);
        let mut decoder = Decoder::new(&bytes);
        assert_eq!(decode_schema(&mut decoder).unwrap().as_ref(), &schema);
        decoder.end().unwrap();
    }

    #[test]
    fn changed_and_cut_bytes_never_panic() {
        let fields = every_type().into_iter().map(|of| Field::new("c", of, true));
        let bytes = bytes(&Schema::new(fields.collect::<Vec<_>>()));
        for at in 0..bytes.len() {
            let _ = decode_schema(&mut Decoder::new(&bytes[..at]));
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = decode_schema(&mut Decoder::new(&changed));
            }
        }
        let deep = [31, 0].repeat(10_000);
        assert!(typed(&mut Decoder::new(&deep), 0).is_err());
    }

    #[test]
    fn types_that_tables_cannot_have_are_named() {
        let view = DataType::ListView(Arc::new(Field::new("item", DataType::Int8, true)));
        assert_eq!(encode_type(&mut Encoder::new(), &view), Err(view));
    }
}
