//! Types of JSON values: what all of a sample have in common.

use datafusion::arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use serde_json::Value;

/// What values of one place have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonType {
    /// Nothing but null was seen.
    Null,
    Bool,
    /// From 0 to the largest BIGINT.
    Natural,
    Int,
    UInt,
    Double,
    Date,
    Timestamp,
    Text,
    List(Box<JsonType>),
    Struct(Vec<(String, JsonType)>),
    /// Values of several kinds, which stay JSON's text.
    Json,
}

/// Levels of lists and structs that become columns' types; deeper ones stay text.
const DEPTH_MAX: usize = 60;

impl JsonType {
    pub(super) fn of(value: &Value, depth: usize) -> Self {
        match value {
            Value::Array(_) | Value::Object(_) if depth > DEPTH_MAX => Self::Json,
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() && number.is_u64() => Self::Natural,
            Value::Number(number) if number.is_i64() => Self::Int,
            Value::Number(number) if number.is_u64() => Self::UInt,
            Value::Number(_) => Self::Double,
            Value::String(text) => Self::of_text(text),
            Value::Array(values) => {
                let of = values.iter().map(|value| Self::of(value, depth + 1));
                Self::List(Box::new(of.fold(Self::Null, Self::with)))
            }
            Value::Object(fields) => {
                let field =
                    |(name, value): (&String, &Value)| (name.clone(), Self::of(value, depth + 1));
                Self::Struct(fields.iter().map(field).collect())
            }
        }
    }

    fn of_text(text: &str) -> Self {
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
            && bytes[16] == b':'
            && bytes[19..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        match (is_date, bytes.len()) {
            (true, 10) => Self::Date,
            (true, _) if is_time => Self::Timestamp,
            _ => Self::Text,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Natural | Self::Int | Self::UInt | Self::Double)
    }

    /// What this and another type have in common.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) => other,
            (a, b) if a == b => a,
            (Self::Natural, other @ (Self::Int | Self::UInt))
            | (other @ (Self::Int | Self::UInt), Self::Natural) => other,
            (a, b) if a.is_number() && b.is_number() => Self::Double,
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Self::Timestamp,
            (
                Self::Date | Self::Timestamp | Self::Text,
                Self::Date | Self::Timestamp | Self::Text,
            ) => Self::Text,
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

    /// The type of a column.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Natural | Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Double => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Null | Self::Text | Self::Json => DataType::Utf8,
            Self::List(of) => DataType::List(Field::new_list_field(of.data_type(), true).into()),
            Self::Struct(fields) if fields.is_empty() => DataType::Utf8,
            Self::Struct(fields) => DataType::Struct(columns(fields)),
        }
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
        let parse = |text: &&str| serde_json::from_str::<Value>(text).expect("it is JSON");
        texts.iter().map(|text| JsonType::of(&parse(text), 0)).fold(JsonType::Null, JsonType::with)
    }

    #[test]
    fn the_common_type_has_all_values() {
        assert_eq!(common(&["1", "null", "-2"]), JsonType::Int);
        assert_eq!(common(&["1", "2.5"]), JsonType::Double);
        assert_eq!(common(&["18446744073709551615", "1"]), JsonType::UInt);
        assert_eq!(common(&["1", "\"x\""]), JsonType::Json);
        assert_eq!(common(&["\"2020-01-02\""]), JsonType::Date);
        assert_eq!(common(&["\"2020-01-02\"", "\"2020-01-02T03:04:05\""]), JsonType::Timestamp);
        assert_eq!(common(&["\"2020-13-02\""]), JsonType::Text);
        assert_eq!(common(&["[1]", "[]", "[2.5]"]), JsonType::List(Box::new(JsonType::Double)));
        let both = vec![("a".to_owned(), JsonType::Natural), ("b".to_owned(), JsonType::Bool)];
        assert_eq!(common(&["{\"a\":1}", "{\"b\":true}"]), JsonType::Struct(both));
        assert_eq!(common(&["{}", "[]"]), JsonType::Json);
    }
}
