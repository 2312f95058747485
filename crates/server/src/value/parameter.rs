//! Parameter values, from text and binary form.

use std::fmt;
use std::sync::Arc;

use atoll_sql::arrow::array::types::IntervalMonthDayNano;
use atoll_sql::arrow::datatypes::{DataType, TimeUnit};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::temporal::{DAY, EPOCH_DAYS, StatementClock, ZonedTime, is_temporal, read_scalar};
use atoll_sql::{canonical_jsonb, canonical_timetz, canonical_uuid, is_of_users, without_exponent};

use super::array::{binary_list, text_list};
use super::format::Format;
use super::numeric::numeric_text;
use super::range::{range_text, read_range};
use super::text::text_cells;
use super::types::{
    BOOL, BPCHAR, BYTEA, CHAR, CIDR, DATE, FLOAT4, FLOAT8, INET, INT2, INT4, INT8, INTERVAL, JSON,
    JSONB, MACADDR, NAME, NUMERIC, OID, PgType, REGCLASS, REGPROC, REGTYPE, TEXT, TIME, TIMESTAMP,
    TIMESTAMPTZ, TIMETZ, UNKNOWN, UUID, VARCHAR, XID, arrow_type, network_type,
};

/// The bytes are not valid text: not UTF-8, or with a zero byte, which PostgreSQL never allows.
const NO_TEXT: &str = "invalid byte sequence for encoding \"UTF8\"";

/// Why bytes are not a valid value.
#[derive(Debug)]
pub(crate) struct ParameterError(pub(crate) String);

impl ParameterError {
    /// Its SQLSTATE.
    pub(crate) fn state(&self) -> &'static str {
        if self.0 == NO_TEXT { "22021" } else { "22P02" }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a parameter. `declared` is the type OID that the client sent, 0 for none; `wanted` is the type that the
/// statement expects, and `clock` determines the meaning of `today` and of `01/02/03`.
pub(crate) fn parameter(
    bytes: Option<&[u8]>,
    format: Format,
    declared: u32,
    wanted: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let Some(bytes) = bytes else { return null(wanted) };
    if let Some(number) = plain_integer(bytes, format, declared, wanted) {
        return Ok(number);
    }
    // Text where a list is expected is a list in text form.
    let is_text_of_list = matches!(wanted, DataType::List(_))
        && matches!(declared, TEXT | VARCHAR | BPCHAR | NAME | UNKNOWN);
    if is_text_of_list {
        let list = from_text(bytes, PgType::from_data_type(wanted).oid, wanted, clock)?;
        return cast(list, wanted, clock);
    }
    let oid = if declared == 0 { PgType::from_data_type(wanted).oid } else { declared };
    let value = match format {
        Format::Text => from_text(bytes, oid, wanted, clock)?,
        Format::Binary => match PgType::item_of(oid) {
            Some(item) => {
                binary_list(bytes, item, items_wanted(wanted).is_some().then_some(wanted))?
            }
            None => from_binary(bytes, oid)?,
        },
    };
    if let Some(of) = arrow_type(oid).filter(is_temporal)
        && (wanted.is_string() || is_local(&of, wanted))
    {
        return cast(temporal_text(value, of, clock)?, wanted, clock);
    }
    cast(value, wanted, clock)
}

/// Whether a timestamp with time zone is converted to local time in the session's time zone.
fn is_local(of: &DataType, wanted: &DataType) -> bool {
    let is_clock = |it: &DataType| {
        matches!(it, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Time64(_))
    };
    matches!(of, DataType::Timestamp(_, Some(_))) && is_clock(wanted)
}

/// The text of a date, timestamp or interval, as a cast in SQL gives it.
fn temporal_text(
    value: ScalarValue,
    of: DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let of = match (of, clock.time_zone) {
        (DataType::Timestamp(unit, Some(_)), Some(zone)) => {
            DataType::Timestamp(unit, Some(zone.into()))
        }
        (of, _) => of,
    };
    let array = cast(value, &of, clock)?.to_array();
    let array = array.map_err(|error| ParameterError(atoll_sql::value_message(&error)))?;
    let cells =
        text_cells(&array, clock.style).map_err(|error| ParameterError(error.to_string()))?;
    let mut text = Vec::new();
    cells.write(0, &mut text);
    Ok(ScalarValue::Utf8View(Some(utf8(&text)?.to_owned())))
}

/// The fast path for plain digits where an integer is expected, without the arrays of a cast. None if a cast has to
/// decide.
fn plain_integer(
    bytes: &[u8],
    format: Format,
    declared: u32,
    wanted: &DataType,
) -> Option<ScalarValue> {
    let number = match (format, declared) {
        (Format::Text, 0 | INT2 | INT4 | INT8) => {
            let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
            let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(bytes).ok().filter(|_| is_plain)?;
            text.parse().ok()?
        }
        (Format::Binary, INT2) => i16::from_be_bytes(bytes.try_into().ok()?).into(),
        (Format::Binary, INT4) => i32::from_be_bytes(bytes.try_into().ok()?).into(),
        (Format::Binary, INT8) => i64::from_be_bytes(bytes.try_into().ok()?),
        _ => return None,
    };
    let fitting = match wanted {
        DataType::Int16 => number.try_into().ok().map(|number| ScalarValue::Int16(Some(number))),
        DataType::Int32 => number.try_into().ok().map(|number| ScalarValue::Int32(Some(number))),
        DataType::Int64 => Some(ScalarValue::Int64(Some(number))),
        _ => return None,
    };
    // A value declared as a wider number is compared as one.
    fitting.or((declared != 0).then_some(ScalarValue::Int64(Some(number))))
}

fn null(wanted: &DataType) -> Result<ScalarValue, ParameterError> {
    ScalarValue::try_from(wanted).map_err(|error| ParameterError(error.to_string()))
}

fn cast(
    value: ScalarValue,
    wanted: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    if value.data_type() == *wanted {
        return Ok(value);
    }
    if let ScalarValue::Utf8View(Some(text)) = &value
        && let Some(read) = read_scalar(text, wanted, clock)
    {
        return Ok(read);
    }
    let value = match value {
        ScalarValue::Utf8View(Some(text)) if wanted.is_decimal() => {
            ScalarValue::Utf8View(Some(without_exponent(&text).into_owned()))
        }
        value => value,
    };
    value.cast_to(wanted).map_err(|error| ParameterError(atoll_sql::value_message(&error)))
}

/// A value in its text form.
pub(super) fn from_text(
    bytes: &[u8],
    oid: u32,
    wanted: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let text = utf8(bytes)?;
    if let Some(item) = PgType::item_of(oid) {
        return text_list(text, item, wanted, clock);
    }
    let invalid = |what: &str| ParameterError(format!("invalid input for {what}: '{text}'"));
    match oid {
        BOOL => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(invalid("BOOLEAN")),
        },
        BYTEA => match text.strip_prefix("\\x") {
            Some(digits) => hex(digits.as_bytes()).map(binary).ok_or_else(|| invalid("BYTEA")),
            None => Ok(binary(text.as_bytes().to_vec())),
        },
        UUID => match canonical_uuid(text) {
            Some(uuid) => Ok(ScalarValue::Utf8View(Some(uuid))),
            None => Err(invalid("UUID")),
        },
        JSONB => jsonb(text),
        TIMETZ => match canonical_timetz(text, clock) {
            Ok(time) => Ok(ScalarValue::Utf8View(Some(time))),
            Err(failure) => Err(ParameterError(failure.message)),
        },
        other => match network_type(other) {
            Some(of) => match of.canonical(text) {
                Ok(address) => Ok(ScalarValue::Utf8View(Some(address))),
                Err(failure) => Err(ParameterError(failure.message)),
            },
            None => match PgType::range_of(other) {
                Some(of) => range_text(of, text, clock),
                None => Ok(ScalarValue::Utf8View(Some(text.to_owned()))),
            },
        },
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, ParameterError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| ParameterError(NO_TEXT.to_owned()))
}

fn binary(bytes: Vec<u8>) -> ScalarValue {
    ScalarValue::BinaryView(Some(bytes))
}

/// JSONB in its canonical text.
fn jsonb(text: &str) -> Result<ScalarValue, ParameterError> {
    match canonical_jsonb(text) {
        Ok(text) => Ok(ScalarValue::Utf8View(Some(text.into_owned()))),
        Err(failure) => Err(ParameterError(failure.message)),
    }
}

/// Decodes hexadecimal digits; None if there are other characters.
pub(crate) fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// A value in its binary form.
pub(super) fn from_binary(bytes: &[u8], oid: u32) -> Result<ScalarValue, ParameterError> {
    if let Some(item) = PgType::item_of(oid) {
        return binary_list(bytes, item, None);
    }
    let text = |text: String| ScalarValue::Utf8View(Some(text));
    Ok(match oid {
        BOOL => ScalarValue::Boolean(Some(number::<1>(bytes, "BOOLEAN")? != [0])),
        INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(number(bytes, "SMALLINT")?))),
        INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(number(bytes, "INTEGER")?))),
        INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(number(bytes, "BIGINT")?))),
        OID | XID | REGPROC | REGCLASS | REGTYPE => {
            ScalarValue::UInt32(Some(u32::from_be_bytes(number(bytes, "OID")?)))
        }
        FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(number(bytes, "FLOAT")?))),
        FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(number(bytes, "DOUBLE")?))),
        NUMERIC => match numeric_text(bytes) {
            Some(digits) => decimal(digits)?,
            None => return Err(ParameterError("invalid binary form of a NUMERIC".to_owned())),
        },
        BYTEA => binary(bytes.to_vec()),
        DATE => {
            let days = i32::from_be_bytes(number(bytes, "DATE")?);
            let since_1970 = match days {
                i32::MIN | i32::MAX => Some(days),
                days => i32::try_from(i64::from(days) + EPOCH_DAYS).ok(),
            };
            match since_1970 {
                Some(days) => ScalarValue::Date32(Some(days)),
                None => return Err(ParameterError("a DATE is out of range".to_owned())),
            }
        }
        TIME => ScalarValue::Time64Microsecond(Some(time_of_day(bytes)?)),
        TIMESTAMP => ScalarValue::TimestampMicrosecond(Some(moment(bytes)?), None),
        TIMESTAMPTZ => ScalarValue::TimestampMicrosecond(Some(moment(bytes)?), Some("UTC".into())),
        INTERVAL => interval(bytes)?,
        UUID => text(uuid(number(bytes, "UUID")?)),
        TIMETZ => match ZonedTime::from_binary(bytes) {
            Some(time) => text(time.to_string()),
            None => return Err(ParameterError("a TIMETZ is out of range".to_owned())),
        },
        INET | CIDR | MACADDR => match network_type(oid).and_then(|of| of.from_binary(bytes)) {
            Some(address) => text(address),
            None => return Err(ParameterError("invalid binary form of an address".to_owned())),
        },
        JSONB => match bytes {
            [1, json @ ..] => jsonb(utf8(json)?)?,
            _ => return Err(ParameterError("unknown version of JSONB".to_owned())),
        },
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN | JSON => text(utf8(bytes)?.to_owned()),
        of_ranges if let Some(of) = PgType::range_of(of_ranges) => text(read_range(of, bytes)?),
        of_user if is_of_users(of_user) => text(utf8(bytes)?.to_owned()),
        other => {
            return Err(ParameterError(format!(
                "no binary form for type {other}; send the parameter as text"
            )));
        }
    })
}

pub(super) fn number<const N: usize>(bytes: &[u8], what: &str) -> Result<[u8; N], ParameterError> {
    bytes.try_into().map_err(|_| {
        let length = bytes.len();
        ParameterError(format!("the binary form of {what} has {N} bytes, not {length}"))
    })
}

/// A decimal with the scale that it was written with, in the narrowest type that holds it.
fn decimal(text: String) -> Result<ScalarValue, ParameterError> {
    let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
    let digits = whole.trim_start_matches(['-', '0']).len() + places.len();
    let (precision, scale) = (digits.max(1), places.len());
    let of = match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ ..=38), Ok(scale)) => DataType::Decimal128(precision, scale),
        (Ok(precision @ ..=76), Ok(scale)) => DataType::Decimal256(precision, scale),
        _ => return Err(ParameterError("a NUMERIC has more than 76 digits".to_owned())),
    };
    cast(ScalarValue::Utf8(Some(text)), &of, StatementClock::default())
}

/// Microseconds since midnight.
fn time_of_day(bytes: &[u8]) -> Result<i64, ParameterError> {
    let micros = i64::from_be_bytes(number(bytes, "TIME")?);
    match (0..=DAY).contains(&micros) {
        true => Ok(micros),
        false => Err(ParameterError("a TIME is out of range".to_owned())),
    }
}

/// Microseconds since the Unix epoch.
pub(super) fn moment(bytes: &[u8]) -> Result<i64, ParameterError> {
    let micros = i64::from_be_bytes(number(bytes, "TIMESTAMP")?);
    if matches!(micros, i64::MIN | i64::MAX) {
        return Ok(micros);
    }
    micros
        .checked_add(EPOCH_DAYS * DAY)
        .ok_or_else(|| ParameterError("a TIMESTAMP is out of range".to_owned()))
}

fn interval(bytes: &[u8]) -> Result<ScalarValue, ParameterError> {
    let bytes: [u8; 16] = number(bytes, "INTERVAL")?;
    let value = i128::from_be_bytes(bytes);
    let (micros, days, months) = ((value >> 64) as i64, (value >> 32) as i32, value as i32);
    let nanoseconds = micros
        .checked_mul(1000)
        .ok_or_else(|| ParameterError("an INTERVAL is out of range".to_owned()))?;
    let value = IntervalMonthDayNano { months, days, nanoseconds };
    Ok(ScalarValue::IntervalMonthDayNano(Some(value)))
}

fn uuid(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// The type in which the items of a list are collected.
pub(super) fn item_type(oid: u32) -> DataType {
    match arrow_type(oid) {
        Some(DataType::Timestamp(_, zone)) => DataType::Timestamp(TimeUnit::Microsecond, zone),
        Some(other) => other,
        None => DataType::Utf8View,
    }
}

/// A list of these items.
pub(super) fn list_of(
    items: Vec<ScalarValue>,
    of: &DataType,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let items = items.into_iter().map(|item| cast(item, of, clock));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&items, of)))
}

/// The type of a list's items; None if it is not a list.
pub(super) fn items_wanted(wanted: &DataType) -> Option<Arc<DataType>> {
    match wanted {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(Arc::new(item.data_type().clone()))
        }
        _ => None,
    }
}
