//! Dates and times in other forms than SQL's, by a format such as `%d.%m.%Y %H:%M`.

use atoll_functions::temporal::{MONTHS, WEEKDAYS};

/// The parts of a moment that a text gives.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parts {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    /// Seconds east of Greenwich.
    offset: Option<i32>,
    afternoon: Option<bool>,
}

/// The date of a text in SQL's form; `None` if the text does not match the format.
pub(super) fn date(text: &str, format: &str) -> Option<String> {
    let parts = parse(text, format)?;
    Some(format!("{:04}-{:02}-{:02}", parts.year, parts.month, parts.day))
}

/// The moment of a text in SQL's form; `None` if the text does not match the format.
pub(super) fn timestamp(text: &str, format: &str) -> Option<String> {
    let parts = parse(text, format)?;
    let Parts { year, month, day, hour, minute, second, nanosecond, offset, .. } = parts;
    let mut written =
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanosecond:09}");
    if let Some(offset) = offset {
        let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
        written.push_str(&format!("{sign}{:02}:{:02}", offset / 60, offset % 60));
    }
    Some(written)
}

fn parse(text: &str, format: &str) -> Option<Parts> {
    let mut parts = Parts {
        year: 1900,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        nanosecond: 0,
        offset: None,
        afternoon: None,
    };
    let rest = take_all(text.trim(), format, &mut parts)?;
    if !rest.is_empty() || !is_valid(&parts) {
        return None;
    }
    if let Some(afternoon) = parts.afternoon {
        if !(1..=12).contains(&parts.hour) {
            return None;
        }
        parts.hour = parts.hour % 12 + if afternoon { 12 } else { 0 };
    }
    Some(parts)
}

fn is_valid(parts: &Parts) -> bool {
    let leap = parts.year % 4 == 0 && (parts.year % 100 != 0 || parts.year % 400 == 0);
    let days = match parts.month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&parts.day)
        && (0..=9999).contains(&parts.year)
        && parts.hour < 24
        && parts.minute < 60
        && parts.second < 60
}

fn take_all<'a>(mut text: &'a str, format: &str, parts: &mut Parts) -> Option<&'a str> {
    let mut format = format.chars();
    while let Some(c) = format.next() {
        if c.is_whitespace() {
            text = text.trim_start();
        } else if c != '%' {
            text = text.strip_prefix(c)?;
        } else {
            let mut what = format.next()?;
            if what == '-' {
                what = format.next()?;
            }
            text = take(text, what, parts)?;
        }
    }
    Some(text)
}

fn take<'a>(text: &'a str, what: char, parts: &mut Parts) -> Option<&'a str> {
    let mut rest = text;
    match what {
        'Y' => parts.year = number(&mut rest, 4)? as i32,
        'y' => {
            let year = number(&mut rest, 2)? as i32;
            parts.year = year + if year < 69 { 2000 } else { 1900 };
        }
        'm' => parts.month = number(&mut rest, 2)?,
        'd' | 'e' => parts.day = number(&mut rest, 2)?,
        'H' | 'I' => parts.hour = number(&mut rest, 2)?,
        'M' => parts.minute = number(&mut rest, 2)?,
        'S' => parts.second = number(&mut rest, 2)?,
        'f' | 'g' | 'n' => parts.nanosecond = fraction(&mut rest)?,
        'p' => parts.afternoon = Some(one_of(&mut rest, &["am", "pm"], 2)? == 1),
        'b' | 'h' => parts.month = one_of(&mut rest, &MONTHS, 3)? as u32 + 1,
        'B' => parts.month = one_of(&mut rest, &MONTHS, usize::MAX)? as u32 + 1,
        'a' => drop(one_of(&mut rest, &WEEKDAYS, 3)?),
        'A' => drop(one_of(&mut rest, &WEEKDAYS, usize::MAX)?),
        'z' => parts.offset = Some(offset(&mut rest)?),
        'Z' => {
            rest = rest.strip_prefix("UTC").or_else(|| rest.strip_prefix('Z'))?;
            parts.offset = Some(0);
        }
        'T' | 'X' => rest = take_all(rest, "%H:%M:%S", parts)?,
        'F' | 'x' => rest = take_all(rest, "%Y-%m-%d", parts)?,
        'D' => rest = take_all(rest, "%m/%d/%y", parts)?,
        'R' => rest = take_all(rest, "%H:%M", parts)?,
        'c' => rest = take_all(rest, "%Y-%m-%d %H:%M:%S", parts)?,
        '%' => rest = rest.strip_prefix('%')?,
        _ => return None,
    }
    Some(rest)
}

/// A number of up to `most` digits.
fn number(text: &mut &str, most: usize) -> Option<u32> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    number.parse().ok()
}

fn fraction(text: &mut &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    (1..=9).contains(&digits).then(|| format!("{number:0<9}").parse().ok())?
}

/// The word that begins the text, in either case; `letters` of each are compared.
fn one_of(text: &mut &str, words: &[&str], letters: usize) -> Option<usize> {
    for (at, word) in words.iter().enumerate() {
        let length = word.len().min(letters);
        let Some(first) = text.get(..length) else { continue };
        if first.eq_ignore_ascii_case(&word[..length]) {
            *text = &text[length..];
            return Some(at);
        }
    }
    None
}

fn offset(text: &mut &str) -> Option<i32> {
    if let Some(rest) = text.strip_prefix('Z') {
        *text = rest;
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    *text = rest;
    let hours = number(text, 2)? as i32;
    *text = text.strip_prefix(':').unwrap_or(text);
    let minutes = if text.is_empty() { 0 } else { number(text, 2)? as i32 };
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_by_their_format() {
        for (text, format, expected) in [
            ("31.12.2020", "%d.%m.%Y", "2020-12-31"),
            ("1/2/99", "%m/%d/%y", "1999-01-02"),
            ("1/2/68", "%-m/%-d/%y", "2068-01-02"),
            ("5 Mar 2021", "%d %b %Y", "2021-03-05"),
            ("March 5, 2021", "%B %d, %Y", "2021-03-05"),
            ("20200229", "%Y%m%d", "2020-02-29"),
        ] {
            assert_eq!(date(text, format).as_deref(), Some(expected), "{text}");
        }
        for (text, format, expected) in [
            ("31.12.2020 07:05", "%d.%m.%Y %H:%M", "2020-12-31T07:05:00.000000000"),
            ("12/31/2020 12:05:09 AM", "%m/%d/%Y %I:%M:%S %p", "2020-12-31T00:05:09.000000000"),
            (
                "2020-01-01T01:02:03.5+0130",
                "%Y-%m-%dT%H:%M:%S.%f%z",
                "2020-01-01T01:02:03.500000000+01:30",
            ),
        ] {
            assert_eq!(timestamp(text, format).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_dates_are_none() {
        for (text, format) in [
            ("30.02.2020", "%d.%m.%Y"),
            ("29.02.2021", "%d.%m.%Y"),
            ("1.13.2020", "%d.%m.%Y"),
            ("1.1.2020x", "%d.%m.%Y"),
            ("", "%d"),
            ("13:00 PM", "%I:%M %p"),
            ("5", "%d%"),
            ("ä", "%b"),
        ] {
            assert_eq!(date(text, format), None, "{text} {format}");
        }
    }
}
