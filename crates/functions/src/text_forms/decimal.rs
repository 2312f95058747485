//! Decimals written with an exponent: `1.5e-7`.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The exponents that are written out: beyond these, a number is too large for any decimal, or is zero.
const EXPONENTS: RangeInclusive<i32> = -1000..=80;

/// The same number without an exponent; other texts as they are.
pub fn without_exponent(text: &str) -> Cow<'_, str> {
    expanded(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn expanded(text: &str) -> Option<String> {
    let text = text.trim();
    let (number, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, places].concat();
    let is_number = !all.is_empty() && all.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number || !EXPONENTS.contains(&exponent) {
        return None;
    }
    // The digits before the point.
    let point = i64::from(exponent) + whole.len() as i64;
    Some(match usize::try_from(point) {
        Err(_) | Ok(0) => {
            let zeros = "0".repeat(point.unsigned_abs() as usize);
            format!("{sign}0.{zeros}{all}")
        }
        Ok(point) if point >= all.len() => format!("{sign}{all}{}", "0".repeat(point - all.len())),
        Ok(point) => format!("{sign}{}.{}", &all[..point], &all[point..]),
    })
}

#[cfg(test)]
mod tests {
    use super::without_exponent;

    #[test]
    fn exponents_move_the_point() {
        for (text, wanted) in [
            ("1E-7", "0.0000001"),
            ("4E+8", "400000000"),
            (" -1.5e1 ", "-15"),
            ("1.25e1", "12.5"),
            ("12.5e-2", "0.125"),
            ("+5e0", "5"),
            (".5e1", "5"),
            ("0e-3", "0.000"),
            ("1e99", "1e99"),
            ("1e", "1e"),
            ("e5", "e5"),
            ("1e5x", "1e5x"),
            ("1.2.3e4", "1.2.3e4"),
            ("1e99999999999", "1e99999999999"),
            ("12", "12"),
            ("", ""),
        ] {
            assert_eq!(without_exponent(text), wanted, "{text}");
        }
    }
}
