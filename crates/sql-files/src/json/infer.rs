//! Infers the types of JSON values: the common type of a sample.

use std::borrow::Cow;

use atoll_functions::temporal::{StatementClock, read_scalar};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, TimeUnit};
use serde_json::Value;

/// The type of whole numbers beyond 64 bits.
pub(super) const WIDE_TYPE: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// Marks a whole number beyond 64 bits in a sample, of which `serde_json` would make a float.
const WIDE: &str = "\u{e000}whole number";

/// The value of a text in a sample.
pub(super) fn sample_value(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(&with_wide_marked(text))
}

/// The text with [`WIDE`] in place of whole numbers beyond 64 bits.
fn with_wide_marked(text: &[u8]) -> Cow<'_, [u8]> {
    let is_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if !text.windows(WIDE_DIGITS_MIN).any(is_digits) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut at, mut in_string) = (Vec::with_capacity(text.len()), 0, false);
    while let Some(byte) = text.get(at) {
        let is_of_number = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let number = text[at..].iter().take_while(is_of_number).count();
        match (byte, in_string) {
            (b'-' | b'0'..=b'9', false) => {
                match is_wide(&text[at..at + number]) {
                    true => out.extend_from_slice(format!("\"{WIDE}\"").as_bytes()),
                    false => out.extend_from_slice(&text[at..at + number]),
                }
                at += number;
                continue;
            }
            (b'\\', true) => {
                out.push(b'\\');
                at += 1;
            }
            (b'"', _) => in_string = !in_string,
            _ => {}
        }
        out.extend(text.get(at));
        at += 1;
    }
    Cow::Owned(out)
}

/// The fewest digits of a number beyond 64 bits.
const WIDE_DIGITS_MIN: usize = 19;

/// Whether the text of a JSON number is a whole number beyond 64 bits.
fn is_wide(number: &[u8]) -> bool {
    let Ok(number) = std::str::from_utf8(number) else { return false };
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= WIDE_DIGITS_MIN
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

/// The common type of the values in one place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonType {
    /// Only null was seen.
    Null,
    Bool,
    /// From 0 to the largest BIGINT.
    Natural,
    Int,
    UInt,
    /// Whole numbers of which some are beyond these, as DECIMAL(38,0): a DOUBLE would not have all of their digits.
    Whole,
    Double,
    /// `"NaN"`, `"Infinity"` or `"-Infinity"`: a number among numbers.
    NotFinite,
    Date,
    Timestamp,
    /// With an offset from UTC.
    Moment,
    Text,
    List(Box<JsonType>),
    Struct(Vec<(String, JsonType)>),
    /// Values of several kinds, which stay JSON's text.
    Json,
}

/// Levels of lists and structs that become columns' types; deeper ones stay text.
const DEPTH_MAX: usize = 60;

impl JsonType {
    pub(super) fn from_value(value: &Value, depth: usize) -> Self {
        match value {
            Value::Array(_) | Value::Object(_) if depth > DEPTH_MAX => Self::Json,
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() && number.is_u64() => Self::Natural,
            Value::Number(number) if number.is_i64() => Self::Int,
            Value::Number(number) if number.is_u64() => Self::UInt,
            Value::Number(_) => Self::Double,
            Value::String(text) if text.starts_with(WIDE) => Self::Whole,
            Value::String(text) => Self::of_text(text),
            Value::Array(values) => {
                let of = values.iter().map(|value| Self::from_value(value, depth + 1));
                Self::List(Box::new(of.fold(Self::Null, Self::with)))
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    (name.clone(), Self::from_value(value, depth + 1))
                };
                Self::Struct(fields.iter().map(field).collect())
            }
        }
    }

    fn of_text(text: &str) -> Self {
        let found = Self::of_form(text);
        match found {
            // A text of this form may name a day that does not exist: February 30.
            Self::Date | Self::Timestamp | Self::Moment
                if read_scalar(text, &found.data_type(), StatementClock::default()).is_none() =>
            {
                Self::Text
            }
            found => found,
        }
    }

    /// The type that a text looks like.
    fn of_form(text: &str) -> Self {
        if matches!(text, "NaN" | "Infinity" | "-Infinity") {
            return Self::NotFinite;
        }
        let bytes = text.as_bytes();
        let digits = |at: std::ops::Range<usize>| {
            bytes.get(at).is_some_and(|it| it.iter().all(u8::is_ascii_digit))
        };
        let is_date = bytes.len() >= 10
            && digits(0..4)
            && digits(5..7)
            && digits(8..10)
            && bytes[4] == b'-'
            && bytes[7] == b'-'
            && (b"01"..=b"12").contains(&&[bytes[5], bytes[6]])
            && (b"01"..=b"31").contains(&&[bytes[8], bytes[9]]);
        let is_time = bytes.len() >= 19
            && matches!(bytes[10], b' ' | b'T')
            && digits(11..13)
            && digits(14..16)
            && digits(17..19)
            && bytes[13] == b':'
            && bytes[16] == b':';
        if !is_date || !is_time {
            return if is_date && bytes.len() == 10 { Self::Date } else { Self::Text };
        }
        let is_fraction = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let behind = &bytes[19..];
        match behind.iter().position(|byte| !is_fraction(byte)).map(|at| &behind[at..]) {
            None => Self::Timestamp,
            Some(zone) if is_offset(zone) => Self::Moment,
            Some(_) => Self::Text,
        }
    }

    fn is_number(&self) -> bool {
        self.is_whole() || *self == Self::Double
    }

    fn is_whole(&self) -> bool {
        matches!(self, Self::Natural | Self::Int | Self::UInt | Self::Whole)
    }

    /// Whether the values are texts in JSON.
    fn is_text(&self) -> bool {
        matches!(self, Self::NotFinite | Self::Date | Self::Timestamp | Self::Moment | Self::Text)
    }

    /// The common type of this and another one.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) => other,
            (a, b) if a == b => a,
            (Self::Natural, other @ (Self::Int | Self::UInt))
            | (other @ (Self::Int | Self::UInt), Self::Natural) => other,
            (a, b) if a.is_whole() && b.is_whole() => Self::Whole,
            (a, b) if a.is_number() && b.is_number() => Self::Double,
            (Self::NotFinite, number) | (number, Self::NotFinite) if number.is_number() => {
                Self::Double
            }
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Self::Timestamp,
            (a, b) if a.is_text() && b.is_text() => Self::Text,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.with(*b))),
            (Self::Struct(mut a), Self::Struct(b)) => {
                for (name, of) in b {
                    match a.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => {
                            let before = std::mem::replace(known, Self::Null);
                            *known = before.with(of);
                        }
                        None => a.push((name, of)),
                    }
                }
                Self::Struct(a)
            }
            _ => Self::Json,
        }
    }

    /// Whether some place holds the text of JSON instead of values.
    pub(super) fn has_json(&self) -> bool {
        match self {
            Self::Json | Self::Null => true,
            Self::List(of) => of.has_json(),
            Self::Struct(fields) => fields.is_empty() || fields.iter().any(|(_, of)| of.has_json()),
            _ => false,
        }
    }

    /// Whether some place holds whole numbers beyond BIGINT and UBIGINT.
    pub(super) fn has_wide(&self) -> bool {
        match self {
            Self::Whole => true,
            Self::List(of) => of.has_wide(),
            Self::Struct(fields) => fields.iter().any(|(_, of)| of.has_wide()),
            _ => false,
        }
    }

    /// The type of a column.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Natural | Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Whole => WIDE_TYPE,
            Self::Double => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Moment => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Null | Self::NotFinite | Self::Text | Self::Json => DataType::Utf8,
            Self::List(of) => DataType::List(Field::new_list_field(of.data_type(), true).into()),
            Self::Struct(fields) if fields.is_empty() => DataType::Utf8,
            Self::Struct(fields) => DataType::Struct(columns(fields)),
        }
    }
}

/// Whether a time ends with its offset: `Z`, `+01`, `+0130` or `+01:30`.
fn is_offset(text: &[u8]) -> bool {
    let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    match text {
        b"Z" => true,
        [b'+' | b'-', hours @ ..] if hours.len() == 2 || hours.len() == 4 => is_number(hours),
        [b'+' | b'-', a, b, b':', minutes @ ..] => {
            is_number(&[*a, *b]) && minutes.len() == 2 && is_number(minutes)
        }
        _ => false,
    }
}

/// Fields of these names.
pub(super) fn columns(fields: &[(String, JsonType)]) -> Fields {
    fields.iter().map(|(name, of)| Field::new(name, of.data_type(), true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(texts: &[&str]) -> JsonType {
        let parse = |text: &&str| sample_value(text.as_bytes()).expect("it is JSON");
        texts
            .iter()
            .map(|text| JsonType::from_value(&parse(text), 0))
            .fold(JsonType::Null, JsonType::with)
    }

    #[test]
    fn the_common_type_holds_all_values() {
        assert_eq!(common(&["1", "null", "-2"]), JsonType::Int);
        assert_eq!(common(&["1", "2.5"]), JsonType::Double);
        assert_eq!(common(&["18446744073709551615", "1"]), JsonType::UInt);
        assert_eq!(common(&["1", "18446744073709551616"]), JsonType::Whole);
        assert_eq!(common(&["-9223372036854775809"]), JsonType::Whole);
        assert_eq!(common(&["-1", "18446744073709551615"]), JsonType::Whole);
        assert_eq!(common(&["18446744073709551616", "0.5"]), JsonType::Double);
        assert_eq!(common(&["18446744073709551616.0"]), JsonType::Double);
        assert_eq!(common(&["1e30"]), JsonType::Double);
        assert_eq!(common(&["\"18446744073709551616\""]), JsonType::Text);
        assert_eq!(common(&[r#""\"18446744073709551616""#]), JsonType::Text);
        let list = JsonType::List(Box::new(JsonType::Whole));
        assert_eq!(common(&["[1, -18446744073709551616]"]), list);
        assert!(list.has_wide());
        assert_eq!(common(&["1", "\"x\""]), JsonType::Json);
        assert_eq!(common(&["\"2020-01-02\""]), JsonType::Date);
        assert_eq!(common(&["\"2020-01-02\"", "\"2020-01-02T03:04:05\""]), JsonType::Timestamp);
        for text in ["2020-13-02", "2024-02-30", "2023-02-29 01:02:03", "2024-02-30T01:02:03Z"] {
            assert_eq!(common(&[&format!("\"{text}\"")]), JsonType::Text, "{text}");
        }
        for text in ["2024-01-01 25:00:00", "2024-01-01 01:60:00+01", "2024-01-01 01:02:03.1.2"] {
            assert_eq!(common(&[&format!("\"{text}\"")]), JsonType::Text, "{text}");
        }
        for zone in ["Z", "+02", "-0130", ".25+01:30"] {
            assert_eq!(common(&[&format!("\"2020-01-02 03:04:05{zone}\"")]), JsonType::Moment);
        }
        for zone in ["z", "+1", "+01:3", "+0a", " UTC"] {
            assert_eq!(common(&[&format!("\"2020-01-02 03:04:05{zone}\"")]), JsonType::Text);
        }
        let moment = "\"2020-01-02T03:04:05Z\"";
        assert_eq!(common(&[moment, "\"2020-01-02T03:04:05\""]), JsonType::Text);
        assert_eq!(common(&[moment, "\"2020-01-02\""]), JsonType::Text);
        assert_eq!(common(&["\"NaN\"", "1"]), JsonType::Double);
        assert_eq!(common(&["2.5", "\"-Infinity\"", "null"]), JsonType::Double);
        assert_eq!(common(&["\"Infinity\"", "\"x\""]), JsonType::Text);
        assert_eq!(common(&["[1]", "[]", "[2.5]"]), JsonType::List(Box::new(JsonType::Double)));
        let both = vec![("a".to_owned(), JsonType::Natural), ("b".to_owned(), JsonType::Bool)];
        assert_eq!(common(&["{\"a\":1}", "{\"b\":true}"]), JsonType::Struct(both));
        assert_eq!(common(&["{}", "[]"]), JsonType::Json);
    }
}
