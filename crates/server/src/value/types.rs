//! Which type of PostgreSQL a type of Arrow is to clients, and back.

use std::sync::Arc;

use atoll_sql::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

/// A type as PostgreSQL numbers it, with what its columns tell beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PgType {
    /// Its number in `pg_type`.
    pub(crate) oid: u32,
    /// Bytes of a value, or -1 where they differ.
    pub(crate) length: i16,
    /// Digits of a number, or -1.
    pub(crate) modifier: i32,
}

pub(crate) const BOOL: u32 = 16;
pub(crate) const BYTEA: u32 = 17;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const JSON: u32 = 114;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIME: u32 = 1083;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const INTERVAL: u32 = 1186;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const UUID: u32 = 2950;
pub(crate) const JSONB: u32 = 3802;
const NAME: u32 = 19;

/// Types, and the lists of them.
const LISTS: [(u32, u32); 21] = [
    (BOOL, 1000),
    (BYTEA, 1001),
    (NAME, 1003),
    (INT2, 1005),
    (INT4, 1007),
    (TEXT, 1009),
    (BPCHAR, 1014),
    (VARCHAR, 1015),
    (INT8, 1016),
    (FLOAT4, 1021),
    (FLOAT8, 1022),
    (OID, 1028),
    (TIMESTAMP, 1115),
    (DATE, 1182),
    (TIME, 1183),
    (TIMESTAMPTZ, 1185),
    (INTERVAL, 1187),
    (NUMERIC, 1231),
    (JSON, 199),
    (UUID, 2951),
    (JSONB, 3807),
];

/// Digits and places of a number whose type does not tell: as many as DECIMAL has, half of them behind the point.
const NUMERIC_DIGITS: (u8, i8) = (38, 9);

/// The mark of a field whose text is JSON.
const JSON_MARK: (&str, &str) = ("ARROW:extension:name", "arrow.json");

impl PgType {
    /// That of a column.
    pub(crate) fn of_field(field: &Field) -> Self {
        let (key, json) = JSON_MARK;
        match field.metadata().get(key).is_some_and(|mark| mark == json) {
            true => Self::plain(JSON, -1),
            false => Self::of(field.data_type()),
        }
    }

    /// That of a type. Types that PostgreSQL lacks are the next wider one, or JSON.
    pub(crate) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::plain(BOOL, 1),
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => Self::plain(INT2, 2),
            DataType::UInt16 | DataType::Int32 => Self::plain(INT4, 4),
            DataType::UInt32 | DataType::Int64 => Self::plain(INT8, 8),
            DataType::UInt64 => Self::numeric(20, 0),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => Self::numeric(*precision, *scale),
            DataType::Float16 | DataType::Float32 => Self::plain(FLOAT4, 4),
            DataType::Float64 => Self::plain(FLOAT8, 8),
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::plain(BYTEA, -1),
            DataType::Date32 | DataType::Date64 => Self::plain(DATE, 4),
            DataType::Time32(_) | DataType::Time64(_) => Self::plain(TIME, 8),
            DataType::Timestamp(_, None) => Self::plain(TIMESTAMP, 8),
            DataType::Timestamp(_, Some(_)) => Self::plain(TIMESTAMPTZ, 8),
            DataType::Interval(_) | DataType::Duration(_) => Self::plain(INTERVAL, 16),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::list(item)
            }
            DataType::Struct(_) | DataType::Map(..) => Self::plain(JSON, -1),
            DataType::Dictionary(_, values) => Self::of(values),
            DataType::RunEndEncoded(_, values) => Self::of_field(values),
            _ => Self::plain(TEXT, -1),
        }
    }

    fn plain(oid: u32, length: i16) -> Self {
        Self { oid, length, modifier: -1 }
    }

    fn numeric(precision: u8, scale: i8) -> Self {
        let modifier = (i32::from(precision) << 16 | (i32::from(scale) & 0x7ff)) + 4;
        Self { oid: NUMERIC, length: -1, modifier }
    }

    /// A list of lists need not be rectangular, as PostgreSQL's arrays are: it is JSON.
    fn list(item: &Field) -> Self {
        let item = Self::of_field(item);
        match list_of(item.oid) {
            Some(oid) if item_of(item.oid).is_none() => Self::plain(oid, -1),
            _ => Self::plain(JSON, -1),
        }
    }
}

/// The list of a type.
fn list_of(item: u32) -> Option<u32> {
    LISTS.iter().find(|(of, _)| *of == item).map(|(_, list)| *list)
}

/// What a list is of.
pub(crate) fn item_of(list: u32) -> Option<u32> {
    LISTS.iter().find(|(_, of)| *of == list).map(|(item, _)| *item)
}

/// The type of values that a client declares by this number; none where it says nothing or is not known.
pub(crate) fn arrow_type(oid: u32) -> Option<DataType> {
    Some(match oid {
        BOOL => DataType::Boolean,
        BYTEA => DataType::BinaryView,
        INT2 => DataType::Int16,
        INT4 => DataType::Int32,
        INT8 | OID => DataType::Int64,
        FLOAT4 => DataType::Float32,
        FLOAT8 => DataType::Float64,
        NUMERIC => DataType::Decimal128(NUMERIC_DIGITS.0, NUMERIC_DIGITS.1),
        TEXT | VARCHAR | BPCHAR | NAME | JSON | JSONB | UUID => DataType::Utf8View,
        DATE => DataType::Date32,
        TIME => DataType::Time64(TimeUnit::Microsecond),
        TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        list => {
            let item = arrow_type(item_of(list)?)?;
            DataType::List(Arc::new(Field::new("item", item, true)))
        }
    })
}
