//! Ranges and multiranges in binary form: flags, then each bound after its length.

use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::temporal::{DAY, EPOCH_DAYS, StatementClock};
use atoll_sql::{
    FunctionFailure, RangeBound, RangeForm, RangeNumber, RangePoint, RangeSet, RangeType,
};

use super::numeric::{numeric_text, write_numeric};
use super::parameter::{ParameterError, from_binary};
use super::types::{DATE, INT4, INT8, TIMESTAMP};

const EMPTY: u8 = 1;
const LOWER_INCLUSIVE: u8 = 2;
const UPPER_INCLUSIVE: u8 = 4;
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

/// A range in its text form, as it is stored.
pub(super) fn range_text(
    of: RangeForm,
    text: &str,
    clock: StatementClock<'_>,
) -> Result<ScalarValue, ParameterError> {
    let canonical = of.canonical(text, StatementClock { begun: None, ..clock });
    canonical.map(|text| ScalarValue::Utf8View(Some(text))).map_err(refused)
}

fn refused(failure: FunctionFailure) -> ParameterError {
    ParameterError(failure.message)
}

/// The binary form of a stored text; None if the text is not of the type.
pub(super) fn range_bytes(of: RangeForm, text: &str) -> Option<Vec<u8>> {
    let set = of.read(text, StatementClock::default()).ok()?;
    let mut out = Vec::new();
    if !of.is_multi {
        write_range(of.of, set.bounds().next(), &mut out);
        return Some(out);
    }
    out.extend_from_slice(&(set.bounds().count() as u32).to_be_bytes());
    for range in set.bounds() {
        sized(&mut out, |out| write_range(of.of, Some(range), out));
    }
    Some(out)
}

/// Writes something after its length.
fn sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn write_range(of: RangeType, bounds: Option<(RangeBound, RangeBound)>, out: &mut Vec<u8>) {
    let Some((lower, upper)) = bounds else { return out.push(EMPTY) };
    let flag = |bound: &RangeBound, infinite: u8, inclusive: u8| match &bound.value {
        None => infinite,
        Some(_) if bound.is_inclusive => inclusive,
        Some(_) => 0,
    };
    out.push(
        flag(&lower, LOWER_INFINITE, LOWER_INCLUSIVE)
            | flag(&upper, UPPER_INFINITE, UPPER_INCLUSIVE),
    );
    for value in [lower.value, upper.value].into_iter().flatten() {
        sized(out, |out| write_point(of, &value, out));
    }
}

fn write_point(of: RangeType, point: &RangePoint, out: &mut Vec<u8>) {
    match (of, point) {
        (_, RangePoint::Number(number)) => write_number(number.text(), out),
        (RangeType::Int4, RangePoint::Whole(whole)) => {
            out.extend_from_slice(&(*whole as i32).to_be_bytes());
        }
        (RangeType::Date, RangePoint::Whole(days)) => {
            let is_endless = [i64::from(i32::MIN), i64::from(i32::MAX)].contains(days);
            let days = if is_endless { *days } else { days - EPOCH_DAYS };
            out.extend_from_slice(&(days as i32).to_be_bytes());
        }
        (RangeType::Ts | RangeType::Tstz, RangePoint::Whole(micros)) => {
            let micros = match *micros {
                endless @ (i64::MIN | i64::MAX) => endless,
                micros => micros.saturating_sub(EPOCH_DAYS * DAY),
            };
            out.extend_from_slice(&micros.to_be_bytes());
        }
        (_, RangePoint::Whole(whole)) => out.extend_from_slice(&whole.to_be_bytes()),
    }
}

/// Words and the signs that stand for them.
const SPECIAL: [(&str, u16); 3] = [("NaN", 0xc000), ("Infinity", 0xd000), ("-Infinity", 0xf000)];

fn write_number(text: &str, out: &mut Vec<u8>) {
    if let Some((_, sign)) = SPECIAL.iter().find(|(word, _)| *word == text) {
        return out.extend([0, 0, *sign, 0].iter().flat_map(|field| field.to_be_bytes()));
    }
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let (whole, places) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let scale = i8::try_from(places.len()).unwrap_or(i8::MAX);
    write_numeric(is_negative, &format!("{whole}{places}"), scale, out);
}

/// Reads the binary form, into the text that is stored.
pub(super) fn read_range(of: RangeForm, bytes: &[u8]) -> Result<String, ParameterError> {
    let mut reader = Reader { rest: bytes, of };
    let set = if of.is_multi {
        let count = reader.number()?;
        let mut ranges = Vec::new();
        for _ in 0..count {
            ranges.push(Reader { rest: reader.value()?, of }.range()?);
        }
        reader.ends()?;
        RangeSet::union(ranges)
    } else {
        reader.range()?
    };
    Ok(of.text(&set, None))
}

struct Reader<'b> {
    rest: &'b [u8],
    of: RangeForm,
}

impl<'b> Reader<'b> {
    fn invalid(&self) -> ParameterError {
        ParameterError(format!("invalid binary form of a value of type {}", self.of.name()))
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], ParameterError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.invalid())?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, ParameterError> {
        let bytes = self.take(4)?.try_into().map_err(|_| self.invalid())?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// What follows a length.
    fn value(&mut self) -> Result<&'b [u8], ParameterError> {
        let length = self.number()?;
        self.take(length as usize)
    }

    fn ends(&self) -> Result<(), ParameterError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.invalid()) }
    }

    fn range(mut self) -> Result<RangeSet, ParameterError> {
        let flags = self.take(1)?[0];
        if flags & EMPTY != 0 {
            self.ends()?;
            return Ok(RangeSet::default());
        }
        let lower = self.bound(flags & LOWER_INFINITE != 0, flags & LOWER_INCLUSIVE != 0)?;
        let upper = self.bound(flags & UPPER_INFINITE != 0, flags & UPPER_INCLUSIVE != 0)?;
        self.ends()?;
        RangeSet::of_bounds(self.of.of, lower, upper).map_err(refused)
    }

    fn bound(
        &mut self,
        is_infinite: bool,
        is_inclusive: bool,
    ) -> Result<RangeBound, ParameterError> {
        if is_infinite {
            return Ok(RangeBound { value: None, is_inclusive: false });
        }
        let value = self.value()?;
        Ok(RangeBound { value: Some(self.point(value)?), is_inclusive })
    }

    fn point(&self, bytes: &[u8]) -> Result<RangePoint, ParameterError> {
        let oid = match self.of.of {
            RangeType::Num => {
                let text = special(bytes).map(str::to_owned).or_else(|| numeric_text(bytes));
                let number = text.and_then(|text| RangeNumber::parse(&text));
                return number.map(RangePoint::Number).ok_or_else(|| self.invalid());
            }
            RangeType::Int4 => INT4,
            RangeType::Int8 => INT8,
            RangeType::Date => DATE,
            RangeType::Ts | RangeType::Tstz => TIMESTAMP,
        };
        Ok(RangePoint::Whole(match from_binary(bytes, oid)? {
            ScalarValue::Int32(Some(whole)) | ScalarValue::Date32(Some(whole)) => whole.into(),
            ScalarValue::Int64(Some(whole)) | ScalarValue::TimestampMicrosecond(Some(whole), _) => {
                whole
            }
            _ => return Err(self.invalid()),
        }))
    }
}

/// The word that a number without digits stands for.
fn special(bytes: &[u8]) -> Option<&'static str> {
    let sign = u16::from_be_bytes(bytes.get(4..6)?.try_into().ok()?);
    let found = SPECIAL.iter().find(|(_, special)| *special == sign)?;
    (bytes.len() == 8).then_some(found.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 sends.
    #[test]
    fn ranges_are_sent_as_by_postgresql() {
        for (form, text, bytes) in [
            (RangeType::Int4, "empty", b"\x01".as_slice()),
            (RangeType::Int4, "(,)", b"\x18"),
            (RangeType::Int4, "[1,6)", b"\x02\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0\x06"),
            (RangeType::Int8, "[-1,)", b"\x12\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff"),
            (RangeType::Num, "(,1.5]", b"\x0c\0\0\0\x0c\0\x02\0\0\0\0\0\x01\0\x01\x13\x88"),
            (RangeType::Date, "[2000-01-02,)", b"\x12\0\0\0\x04\0\0\0\x01"),
        ] {
            let form = RangeForm::range(form);
            assert_eq!(range_bytes(form, text).as_deref(), Some(bytes), "{text}");
            assert_eq!(read_range(form, bytes).expect(text), text);
            for end in 0..bytes.len() {
                assert!(read_range(form, &bytes[..end]).is_err(), "{text} {end}");
            }
        }
    }

    #[test]
    fn texts_keep_their_value_in_binary_form() {
        use RangeType::{Date, Int4, Num, Ts, Tstz};
        for (of, text) in [
            (Int4, "{[1,3),[5,)}"),
            (Int4, "{}"),
            (Num, "{[-12345678901234567890.5,0.00),(1e3,NaN]}"),
            (Num, "{[-Infinity,Infinity)}"),
            (Date, "{[-infinity,2024-01-01),[2024-02-01,infinity]}"),
            (Ts, "{(\"2024-01-01 10:00:00.5\",infinity)}"),
            (Tstz, "{[\"1999-12-31 23:59:59+00\",\"2024-01-01 10:00:00+02\")}"),
        ] {
            let form = RangeForm::multi(of);
            let text = form.canonical(text, StatementClock::default()).expect(text);
            let bytes = range_bytes(form, &text).expect("it is one");
            assert_eq!(read_range(form, &bytes).expect(&text), text);
        }
    }
}
