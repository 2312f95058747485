//! JSONB as bytes whose order and equality are those of PostgreSQL: objects after lists, then flags, numbers, strings and
//! null; lists and objects by their lengths first. An empty list by itself comes before all, as there.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, bytes};
use super::extract::parsed;
use super::value::Json;

/// Writes the bytes of a value.
fn write(value: &Json<'_>, out: &mut Vec<u8>) {
    match value {
        Json::List(items) if items.is_empty() => out.push(0),
        Json::List(_) | Json::Object(_) => write_within(value, out),
        scalar => {
            out.push(1);
            write_within(scalar, out);
        }
    }
}

/// Writes the bytes of a value within another one. The first byte of lists is greater than what [`write`] puts before
/// scalars.
fn write_within(value: &Json<'_>, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.push(1),
        Json::Text(text) => {
            out.push(2);
            write_text(text, out);
        }
        Json::Number(number) => {
            out.push(3);
            write_number_order(number, out);
        }
        Json::Flag(flag) => out.extend_from_slice(&[4, u8::from(*flag)]),
        Json::List(items) => {
            out.push(5);
            write_length(items.len(), out);
            items.iter().for_each(|item| write_within(item, out));
        }
        Json::Object(pairs) => {
            out.push(6);
            write_length(pairs.len(), out);
            for (key, value) in pairs {
                write_text(key, out);
                write_within(value, out);
            }
        }
    }
}

/// A text of JSONB does not contain the character zero.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u32).to_be_bytes());
}

/// Writes a number: its sign, the place of its first digit, and its digits without zeros at the end. The bytes after the
/// sign of negative numbers are inverted.
pub(in crate::scalar) fn write_number_order(number: &str, out: &mut Vec<u8>) {
    let (is_negative, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(0)),
        None => (unsigned, 0),
    };
    let point = mantissa.find('.').unwrap_or(mantissa.len());
    let digits = || mantissa.bytes().filter(|byte| *byte != b'.');
    let zeros = digits().take_while(|digit| *digit == b'0').count();
    let last = digits().collect::<Vec<_>>().iter().rposition(|digit| *digit != b'0');
    let Some(last) = last else { return out.push(1) };
    let place = (point as i64 - zeros as i64).saturating_add(exponent);
    let place = place.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    out.push(if is_negative { 0 } else { 2 });
    let start = out.len();
    out.extend_from_slice(&((place as u32) ^ (1 << 31)).to_be_bytes());
    out.extend(digits().take(last + 1).skip(zeros));
    out.push(0);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn order(call: &Call) -> Result<ArrayRef> {
    call.binaries(|row, out| {
        write(&parsed(call, 0, row)?, out);
        Ok(true)
    })
}

pub(super) const ALL: &[Entry] = &[Entry {
    name: "jsonb_order",
    aliases: &[],
    arguments: "json",
    about: "Bytes that compare as JSONB does: equal for equal values, in the order of <.",
    example: "jsonb_order('[1.0]') = jsonb_order('[1]')",
    takes: &[Arguments::Are(&[Takes::Json])],
    gives: bytes,
    volatile: false,
    run: order,
}];

#[cfg(test)]
mod tests {
    use super::super::parse::parse_jsonb;
    use super::*;

    fn of(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write(&parse_jsonb(text).expect(text), &mut out);
        out
    }

    #[test]
    fn values_have_the_order_of_postgresql() {
        let rising = [
            "[]",
            "null",
            "\"\"",
            "\"a\"",
            "\"ab\"",
            "\"b\"",
            "-1e400",
            "-10",
            "-9.5",
            "-9",
            "-0.01",
            "-0.001",
            "0",
            "1e-400",
            "0.5",
            "1",
            "1.01",
            "1.1",
            "2",
            "10",
            "100.5",
            "1e400",
            "false",
            "true",
            "[null]",
            "[1]",
            "[2]",
            "[true]",
            "[[]]",
            "[{}]",
            "[1, 2]",
            "[1, 3]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
            "{\"b\": 0}",
            "{\"a\": 1, \"b\": 2}",
        ];
        for pair in rising.windows(2) {
            assert!(of(pair[0]) < of(pair[1]), "{} {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn equal_numbers_have_equal_bytes() {
        for (one, other) in [
            ("1", "1.0"),
            ("[100]", "[1e2]"),
            ("0", "-0.000"),
            ("-0.5", "-50e-2"),
            ("{\"a\": 1200}", "{\"a\": 12e2}"),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }
}
