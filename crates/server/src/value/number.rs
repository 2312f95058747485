//! Numbers as text.

use std::fmt::{Display, LowerExp};
use std::io::Write;

use atoll_sql::temporal::write_u64;

/// Writes a decimal: these digits, without their sign, times ten to the power of `scale`.
pub(super) fn write_decimal(is_negative: bool, digits: &str, scale: i8, out: &mut Vec<u8>) {
    if is_negative {
        out.push(b'-');
    }
    let Ok(places) = usize::try_from(scale) else {
        out.extend_from_slice(digits.as_bytes());
        if digits != "0" {
            out.extend(std::iter::repeat_n(b'0', scale.unsigned_abs().into()));
        }
        return;
    };
    if places == 0 {
        return out.extend_from_slice(digits.as_bytes());
    }
    match digits.len().checked_sub(places) {
        Some(whole) if whole > 0 => {
            out.extend_from_slice(&digits.as_bytes()[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[whole..]);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', places - digits.len()));
            out.extend_from_slice(digits.as_bytes());
        }
    }
}

/// Writes a decimal of at most 18 digits, the common case.
pub(super) fn write_short_decimal(value: i64, scale: u32, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let unit = 10_u64.pow(scale);
    let value = value.unsigned_abs();
    write_u64(value / unit, out);
    if scale > 0 {
        out.push(b'.');
        let start = out.len();
        write_u64(value % unit + unit, out);
        // The marker digit in front kept the zeros.
        out.remove(start);
    }
}

/// Floats from this power of ten on have an exponent.
const FLOAT4_END: f64 = 1e6;
const FLOAT8_END: f64 = 1e15;

/// So do floats below this one, except zero.
const PLAIN_MIN: f64 = 1e-4;

/// Writes a double as PostgreSQL does: with the shortest digits that parse back to it.
pub(super) fn write_f64(value: f64, out: &mut Vec<u8>) {
    write_float(value, value, FLOAT8_END, out);
}

/// Writes a float in the same way.
pub(super) fn write_f32(value: f32, out: &mut Vec<u8>) {
    write_float(value, value.into(), FLOAT4_END, out);
}

fn write_float(digits: impl Display + LowerExp, value: f64, end: f64, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    // Writing to a Vec cannot fail.
    if magnitude == 0.0 || (PLAIN_MIN..end).contains(&magnitude) {
        let _ = write!(out, "{digits}");
    } else if value.is_finite() {
        let _ = write!(out, "{digits:e}");
        pad_exponent(out);
    } else {
        let text = if value.is_nan() { "NaN" } else { "Infinity" };
        out.extend_from_slice(if value == f64::NEG_INFINITY { b"-" } else { b"" });
        out.extend_from_slice(text.as_bytes());
    }
}

/// Turns a final `e7` into `e+07`.
fn pad_exponent(out: &mut Vec<u8>) {
    let Some(at) = out.iter().rposition(|byte| *byte == b'e') else { return };
    let exponent = std::str::from_utf8(&out[at + 1..]).ok().and_then(|text| text.parse().ok());
    let exponent: i32 = exponent.unwrap_or(0);
    out.truncate(at + 1);
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{sign}{:02}", exponent.abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8(out.split_off(1)).expect("it is text")
    }

    /// PostgreSQL's output.
    #[test]
    fn floats_are_written_as_in_postgresql() {
        let of = |value: f64| text(|out| write_f64(value, out));
        assert_eq!(of(0.0), "0");
        assert_eq!(of(-0.0), "-0");
        assert_eq!(of(0.1), "0.1");
        assert_eq!(of(1e-4), "0.0001");
        assert_eq!(of(1e-5), "1e-05");
        assert_eq!(of(123_456_789_012_345.0), "123456789012345");
        assert_eq!(of(1e15), "1e+15");
        assert_eq!(of(1.5e300), "1.5e+300");
        assert_eq!(of(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(of(f64::NAN), "NaN");
        let of = |value: f32| text(|out| write_f32(value, out));
        assert_eq!(of(0.1), "0.1");
        assert_eq!(of(123_456.0), "123456");
        assert_eq!(of(1_234_567.0), "1.234567e+06");
    }

    #[test]
    fn decimals_keep_their_places() {
        let of = |value: i128, scale| {
            let digits = value.unsigned_abs().to_string();
            text(|out| write_decimal(value < 0, &digits, scale, out))
        };
        assert_eq!(of(12_345, 2), "123.45");
        assert_eq!(of(-5, 2), "-0.05");
        assert_eq!(of(0, 2), "0.00");
        assert_eq!(of(12, -2), "1200");
        assert_eq!(of(100, 0), "100");
        for (value, scale) in [(12_345, 2), (-5, 2), (0, 2), (99, 0), (-100_001, 5)] {
            let short = text(|out| write_short_decimal(value, scale, out));
            assert_eq!(short, of(value.into(), scale as i8));
        }
    }
}
