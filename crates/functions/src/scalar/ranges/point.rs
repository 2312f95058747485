//! The values that bound ranges.

use std::cmp::Ordering;
use std::fmt;

use datafusion::arrow::array::timezone::Tz;
use datafusion::common::ScalarValue;

use super::form::RangeType;
use crate::failure::FunctionFailure;
use crate::scalar::WrittenNumber;
use crate::scalar::json::write_number_order;
use crate::temporal::{
    Endless, StatementClock, read_scalar, write_date, write_i64, write_instant, write_moment,
};

/// A value that bounds a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RangePoint {
    /// An integer; a date as days, a timestamp as microseconds since 1970, whose extremes are infinite.
    Whole(i64),
    /// A NUMERIC.
    Number(RangeNumber),
}

/// A NUMERIC with the digits that it was written with.
#[derive(Clone, Debug)]
pub struct RangeNumber {
    text: String,
    /// Bytes in the order of numbers.
    order: Vec<u8>,
}

impl RangeNumber {
    /// Reads a number, `NaN` or an infinity.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim().to_ascii_lowercase();
        let special = match word.as_str() {
            "nan" => Some(("NaN", 4)),
            "infinity" | "inf" | "+infinity" | "+inf" => Some(("Infinity", 3)),
            "-infinity" | "-inf" => Some(("-Infinity", 0)),
            _ => None,
        };
        if let Some((text, order)) = special {
            return Some(Self { text: text.to_owned(), order: vec![order] });
        }
        let number = WrittenNumber::parse(text)?;
        let mut text = number.to_string();
        if !number.is_negative() && text.starts_with('-') {
            text.remove(0);
        }
        let mut order = Vec::new();
        write_number_order(&text, &mut order);
        Some(Self { text, order })
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for RangeNumber {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for RangeNumber {}

impl PartialOrd for RangeNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RangeNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl fmt::Display for RangeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl RangePoint {
    /// Writes bytes in the order of values of its type, of which none is the start of another.
    pub(super) fn write_order(&self, out: &mut Vec<u8>) {
        match self {
            Self::Whole(number) => {
                out.extend_from_slice(&(number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
            }
            Self::Number(number) => out.extend_from_slice(&number.order),
        }
    }
}

fn failure(state: &'static str, message: String) -> FunctionFailure {
    FunctionFailure { state, message }
}

impl RangeType {
    /// Reads the text of a bound.
    pub(super) fn read_point(
        self,
        text: &str,
        clock: StatementClock<'_>,
    ) -> Result<RangePoint, FunctionFailure> {
        let invalid = |state| {
            let message =
                format!("invalid input syntax for type {}: \"{text}\"", self.subtype_name());
            failure(state, message)
        };
        match self {
            Self::Int4 | Self::Int8 => self.read_whole(text).map(RangePoint::Whole),
            Self::Num => match RangeNumber::parse(text) {
                Some(number) => Ok(RangePoint::Number(number)),
                None => Err(invalid("22P02")),
            },
            Self::Date | Self::Ts | Self::Tstz => {
                let of = self.subtype(clock.time_zone);
                let found = match read_scalar(text, &of, clock) {
                    Some(ScalarValue::Date32(Some(days))) => Some(days.into()),
                    Some(ScalarValue::TimestampMicrosecond(Some(micros), _)) => Some(micros),
                    _ => None,
                };
                found.map(RangePoint::Whole).ok_or_else(|| invalid("22007"))
            }
        }
    }

    fn read_whole(self, text: &str) -> Result<i64, FunctionFailure> {
        let digits = text.trim();
        let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        let name = self.subtype_name();
        if unsigned.is_empty() || !unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
            let message = format!("invalid input syntax for type {name}: \"{text}\"");
            return Err(failure("22P02", message));
        }
        let number = digits.parse::<i64>().ok().filter(|number| self.fits(*number));
        number.ok_or_else(|| {
            let message = format!("value \"{text}\" is out of range for type {name}");
            failure("22003", message)
        })
    }

    /// Whether an integer is one of the type of bounds.
    pub(super) fn fits(self, number: i64) -> bool {
        self != Self::Int4 || i32::try_from(number).is_ok()
    }

    /// Whether a number is an infinite date or timestamp.
    fn is_endless(self, number: i64) -> bool {
        match self {
            Self::Date => i32::try_from(number).ok().and_then(Endless::of_days).is_some(),
            Self::Ts | Self::Tstz => Endless::of_moment(number).is_some(),
            Self::Int4 | Self::Int8 | Self::Num => false,
        }
    }

    /// Returns the next value; `None` for dense types and infinite values.
    pub(super) fn next(self, point: &RangePoint) -> Result<Option<RangePoint>, FunctionFailure> {
        let (Self::Int4 | Self::Int8 | Self::Date, RangePoint::Whole(number)) = (self, point)
        else {
            return Ok(None);
        };
        if self.is_endless(*number) {
            return Ok(None);
        }
        let next = number.checked_add(1).filter(|next| self.fits(*next) && !self.is_endless(*next));
        match next {
            Some(next) => Ok(Some(RangePoint::Whole(next))),
            None if self == Self::Date => Err(failure("22008", "date out of range".to_owned())),
            None => Err(failure("22003", format!("{} out of range", self.subtype_name()))),
        }
    }

    /// Writes a bound as PostgreSQL does; a TIMESTAMPTZ without a zone in UTC.
    pub(super) fn write_point(self, point: &RangePoint, zone: Option<Tz>, out: &mut Vec<u8>) {
        match (self, point) {
            (_, RangePoint::Number(number)) => out.extend_from_slice(number.text.as_bytes()),
            (Self::Date, RangePoint::Whole(days)) => write_date(*days, out),
            (Self::Ts, RangePoint::Whole(micros)) => write_moment(*micros, out),
            (Self::Tstz, RangePoint::Whole(micros)) => write_instant(*micros, zone, out),
            (_, RangePoint::Whole(number)) => write_i64(*number, out),
        }
    }
}
