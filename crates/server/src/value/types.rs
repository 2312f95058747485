//! The Arrow types of PostgreSQL's types; [`PgType`] is the reverse.

use std::sync::Arc;

use atoll_sql::NetworkType;
pub(crate) use atoll_sql::PgType;
use atoll_sql::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
pub(crate) use atoll_sql::type_oid::{
    BOOL, BPCHAR, BYTEA, CHAR, CIDR, DATE, FLOAT4, FLOAT8, INET, INT2, INT2VECTOR, INT4, INT8,
    INTERVAL, JSON, JSONB, MACADDR, NAME, NUMERIC, OID, OIDVECTOR, RECORD, REGCLASS, REGPROC,
    REGTYPE, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, UNKNOWN, UUID, VARCHAR, XID,
};

/// Precision and scale of a number whose type has neither: DECIMAL's maximum, half of it after the point.
const NUMERIC_DIGITS: (u8, i8) = (38, 9);

/// The type that a client declares with this OID; None if it is unspecified or unknown.
pub(crate) fn arrow_type(oid: u32) -> Option<DataType> {
    Some(match oid {
        BOOL => DataType::Boolean,
        BYTEA => DataType::BinaryView,
        INT2 => DataType::Int16,
        INT4 => DataType::Int32,
        INT8 | OID | XID | REGPROC | REGCLASS | REGTYPE => DataType::Int64,
        FLOAT4 => DataType::Float32,
        FLOAT8 => DataType::Float64,
        NUMERIC => DataType::Decimal128(NUMERIC_DIGITS.0, NUMERIC_DIGITS.1),
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | JSON | JSONB | UUID | INET | CIDR | MACADDR
        | TIMETZ => DataType::Utf8View,
        range if PgType::range_of(range).is_some() => DataType::Utf8View,
        DATE => DataType::Date32,
        TIME => DataType::Time64(TimeUnit::Microsecond),
        TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        list => {
            // Items have the types that they have in lists of tables: no coercion unites lists of others.
            let item = match arrow_type(PgType::item_of(list)?)? {
                DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
                DataType::BinaryView => DataType::Binary,
                other => other,
            };
            DataType::List(Arc::new(Field::new("item", item, true)))
        }
    })
}

/// The type of addresses with this OID.
pub(crate) fn network_type(oid: u32) -> Option<NetworkType> {
    Some(match oid {
        INET => NetworkType::Inet,
        CIDR => NetworkType::Cidr,
        MACADDR => NetworkType::Macaddr,
        _ => return None,
    })
}

/// The type in which values for a column of this OID and type are read: text if they come as text, which the insert
/// then casts.
pub(crate) fn type_of_values(oid: u32, column: &DataType) -> DataType {
    match arrow_type(oid) {
        Some(of @ (DataType::Utf8View | DataType::BinaryView)) => of,
        _ => column.clone(),
    }
}
