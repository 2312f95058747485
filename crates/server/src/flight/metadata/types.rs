//! The column types, as drivers request them.

use std::sync::LazyLock;

use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};

use super::failed;
use crate::wire::ErrorFields;

/// The types, built once.
static TYPES: LazyLock<Result<XdbcTypeInfoData, ErrorFields>> =
    LazyLock::new(|| builder().build().map_err(failed));

/// Numeric types: name, type, precision and radix.
const NUMBERS: [(&str, XdbcDataType, i32, i32); 8] = [
    ("tinyint", XdbcDataType::XdbcTinyint, 8, 2),
    ("smallint", XdbcDataType::XdbcSmallint, 16, 2),
    ("integer", XdbcDataType::XdbcInteger, 32, 2),
    ("bigint", XdbcDataType::XdbcBigint, 64, 2),
    ("real", XdbcDataType::XdbcReal, 24, 2),
    ("double precision", XdbcDataType::XdbcDouble, 53, 2),
    ("numeric", XdbcDataType::XdbcNumeric, 76, 10),
    ("decimal", XdbcDataType::XdbcDecimal, 76, 10),
];

/// Quoted types: name, type, date or time code.
const QUOTED: [(&str, XdbcDataType, Option<XdbcDatetimeSubcode>); 8] = [
    ("varchar", XdbcDataType::XdbcVarchar, None),
    ("text", XdbcDataType::XdbcLongvarchar, None),
    ("bytea", XdbcDataType::XdbcVarbinary, None),
    ("date", XdbcDataType::XdbcDate, Some(XdbcDatetimeSubcode::XdbcSubcodeYear)),
    ("time", XdbcDataType::XdbcTime, Some(XdbcDatetimeSubcode::XdbcSubcodeTime)),
    ("timestamp", XdbcDataType::XdbcTimestamp, Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp)),
    (
        "timestamp with time zone",
        XdbcDataType::XdbcTimestamp,
        Some(XdbcDatetimeSubcode::XdbcSubcodeTimestampWithTimezone),
    ),
    ("interval", XdbcDataType::XdbcInterval, None),
];

/// The types.
pub(in crate::flight) fn types() -> Result<&'static XdbcTypeInfoData, ErrorFields> {
    TYPES.as_ref().map_err(Clone::clone)
}

fn builder() -> XdbcTypeInfoDataBuilder {
    let mut builder = XdbcTypeInfoDataBuilder::new();
    builder.append(named("boolean", XdbcDataType::XdbcBit));
    for (name, data_type, digits, base) in NUMBERS {
        let parameters = || vec!["precision".to_owned(), "scale".to_owned()];
        let is_counted = base == 10;
        builder.append(XdbcTypeInfo {
            column_size: Some(digits),
            create_params: is_counted.then(parameters),
            unsigned_attribute: Some(false),
            auto_increment: Some(false),
            minimum_scale: is_counted.then_some(0),
            maximum_scale: is_counted.then_some(digits),
            num_prec_radix: Some(base),
            ..named(name, data_type)
        });
    }
    for (name, data_type, datetime_subcode) in QUOTED {
        let is_text = datetime_subcode.is_none() && data_type != XdbcDataType::XdbcInterval;
        builder.append(XdbcTypeInfo {
            literal_prefix: Some("'".to_owned()),
            literal_suffix: Some("'".to_owned()),
            case_sensitive: is_text,
            datetime_subcode,
            ..named(name, data_type)
        });
    }
    builder
}

fn named(name: &str, data_type: XdbcDataType) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.to_owned(),
        local_type_name: Some(name.to_owned()),
        data_type,
        sql_data_type: data_type,
        nullable: Nullable::NullabilityNullable,
        searchable: Searchable::Full,
        ..XdbcTypeInfo::default()
    }
}
