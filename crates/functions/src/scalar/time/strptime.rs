//! `strptime`: text to timestamp.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, timestamp};
use crate::scalar::time::strftime::{Piece, pieces};
use crate::temporal::civil::{
    Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, MONTHS, WEEKDAYS,
    iso_weekday,
};

/// The fields read from a text.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    afternoon: Option<bool>,
    /// Minutes east of Greenwich.
    offset: i64,
}

impl Parts {
    const NONE: Self = Self {
        year: 1900,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        micros: 0,
        day_of_year: None,
        iso_year: None,
        iso_week: None,
        iso_day: None,
        afternoon: None,
        offset: 0,
    };

    fn moment(&self) -> Option<i64> {
        let days = match (self.iso_year, self.day_of_year) {
            (Some(year), _) => {
                let fourth = Civil::checked(year, 1, 4)?.days();
                let first = fourth - (iso_weekday(fourth) - 1);
                first + (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1) - 1
            }
            (None, Some(day)) => {
                let days = Civil::checked(self.year, 1, 1)?.days() + day - 1;
                (Civil::of_days(days).year == self.year).then_some(days)?
            }
            (None, None) => Civil::checked(self.year, self.month, self.day)?.days(),
        };
        let hour = match self.afternoon {
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(true) => self.hour % 12 + 12,
            Some(false) => self.hour % 12,
            None => self.hour,
        };
        let of_day = hour * MICROS_OF_HOUR
            + (self.minute - self.offset) * MICROS_OF_MINUTE
            + self.second * MICROS_OF_SECOND
            + self.micros;
        days.checked_mul(MICROS_OF_DAY)?.checked_add(of_day)
    }
}

/// Reads a number with at most this many digits.
fn number(text: &mut &str, digits: usize) -> Option<i64> {
    let end = text.bytes().take(digits).take_while(u8::is_ascii_digit).count();
    let value = text[..end].parse().ok()?;
    *text = &text[end..];
    Some(value)
}

fn within(value: i64, first: i64, last: i64) -> Option<i64> {
    (first..=last).contains(&value).then_some(value)
}

/// Reads a fraction of a second with this many digits; missing ones are zeros.
fn fraction(text: &mut &str, digits: u32) -> Option<i64> {
    let end = text.bytes().take(digits as usize).take_while(u8::is_ascii_digit).count();
    let value: i64 = text[..end].parse().ok()?;
    *text = &text[end..];
    Some(value * 10_i64.pow(digits - end as u32))
}

/// Finds which of these names a text begins with, in full or by its first three letters.
fn named(text: &mut &str, names: &[&str], whole: bool) -> Option<i64> {
    for (at, name) in names.iter().enumerate() {
        let name = if whole { name } else { &name[..3] };
        if text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            *text = &text[name.len()..];
            return Some(at as i64);
        }
    }
    None
}

/// `+02`, `-0330`, `+05:30`, `Z`, in minutes.
fn offset(text: &mut &str) -> Option<i64> {
    let sign = match text.chars().next()? {
        'Z' => {
            *text = &text[1..];
            return Some(0);
        }
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *text = &text[1..];
    let hours = number(text, 2)?;
    *text = text.strip_prefix(':').unwrap_or(text);
    let minutes = number(text, 2).unwrap_or(0);
    Some(sign * (hours * 60 + minutes))
}

/// Parses a timestamp by the parts of a format.
fn parse(pieces: &[Piece<'_>], text: &str) -> Option<i64> {
    let mut parts = Parts::NONE;
    let mut rest = text.trim_start();
    for piece in pieces {
        match *piece {
            Piece::Literal(literal) => match rest.strip_prefix(literal) {
                Some(after) => rest = after,
                None if literal.trim().is_empty() && rest.is_empty() => return None,
                None => return None,
            },
            Piece::Specifier(letter, _) => specifier(letter, &mut rest, &mut parts)?,
        }
    }
    rest.trim_end().is_empty().then_some(())?;
    parts.moment()
}

fn specifier(letter: char, rest: &mut &str, parts: &mut Parts) -> Option<()> {
    match letter {
        'd' => parts.day = within(number(rest, 2)?, 1, 31)?,
        'm' => parts.month = within(number(rest, 2)?, 1, 12)?,
        'y' => {
            let year = number(rest, 2)?;
            parts.year = if year < 69 { 2000 + year } else { 1900 + year };
        }
        'Y' => {
            let sign = match rest.strip_prefix('-') {
                Some(after) => {
                    *rest = after;
                    -1
                }
                None => 1,
            };
            parts.year = sign * number(rest, 4)?;
        }
        'H' => parts.hour = within(number(rest, 2)?, 0, 23)?,
        'I' => parts.hour = within(number(rest, 2)?, 1, 12)?,
        'M' => parts.minute = within(number(rest, 2)?, 0, 59)?,
        'S' => parts.second = within(number(rest, 2)?, 0, 59)?,
        'f' => parts.micros = fraction(rest, 6)?,
        'g' => parts.micros = fraction(rest, 3)? * 1000,
        'n' => parts.micros = fraction(rest, 9)? / 1000,
        'j' => parts.day_of_year = Some(within(number(rest, 3)?, 1, 366)?),
        'G' => parts.iso_year = Some(number(rest, 4)?),
        'V' => parts.iso_week = Some(within(number(rest, 2)?, 1, 53)?),
        'u' => parts.iso_day = Some(within(number(rest, 1)?, 1, 7)?),
        'w' => drop(within(number(rest, 1)?, 0, 6)?),
        'U' | 'W' => drop(within(number(rest, 2)?, 0, 53)?),
        'a' => drop(named(rest, &WEEKDAYS, false)?),
        'A' => drop(named(rest, &WEEKDAYS, true)?),
        'b' => parts.month = named(rest, &MONTHS, false)? + 1,
        'B' => parts.month = named(rest, &MONTHS, true)? + 1,
        'p' => parts.afternoon = Some(named(rest, &["AM", "PM"], true)? == 1),
        'z' => parts.offset = offset(rest)?,
        // Zone names would require the time zone database; UTC is supported.
        _ => *rest = rest.strip_prefix("UTC").or_else(|| rest.strip_prefix("GMT"))?,
    }
    Some(())
}

fn run(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let texts = call.text(0);
    let read = |format: &str, text: &str| -> Result<Option<i64>> {
        match pieces(format) {
            Ok(pieces) => Ok(parse(&pieces, text)),
            Err(why) => call.fails(why),
        }
    };
    let failed = |row: usize, format: &str| match is_tried {
        true => Ok(None),
        false => {
            let text = texts.value(row);
            call.fails(format_args!("'{text}' does not match the format '{format}'"))
        }
    };
    if let DataType::List(_) = call.arrays[1].data_type() {
        let formats = call.list(1);
        return call.timestamps(|row| {
            let formats = formats.value(row);
            for format in formats.as_string::<i32>().iter().flatten() {
                if let Some(at) = read(format, texts.value(row))? {
                    return Ok(Some(at));
                }
            }
            failed(row, "any of the list")
        });
    }
    let formats = call.text(1);
    let constant = match (0..formats.len()).find(|&row| !call.is_null(row)) {
        Some(row) => match pieces(formats.value(row)) {
            Ok(pieces) => Some((formats.value(row), pieces)),
            Err(why) => return call.fails(why),
        },
        None => None,
    };
    call.timestamps(|row| {
        let (format, text) = (formats.value(row), texts.value(row));
        let at = match &constant {
            Some((same, pieces)) if *same == format => parse(pieces, text),
            _ => read(format, text)?,
        };
        at.map_or_else(|| failed(row, format), |at| Ok(Some(at)))
    })
}

const TAKES: &[Arguments] =
    &[Arguments::Are(&[Takes::Text, Takes::Text]), Arguments::Are(&[Takes::Text, Takes::Texts])];

const BOTH: &[Entry] = &[
    Entry {
        name: "strptime",
        aliases: &[],
        arguments: "text, format or list of formats",
        about: "A text as a timestamp, by a format as of strftime or the first of a list that fits. \
                Of zones, %z knows distances from UTC (which are taken off) and %Z knows UTC.",
        example: "strptime('05.03.2024', '%d.%m.%Y') = TIMESTAMP '2024-03-05 00:00:00'",
        takes: TAKES,
        gives: timestamp,
        volatile: false,
        run: |call| run(call, false),
    },
    Entry {
        name: "try_strptime",
        aliases: &[],
        arguments: "text, format or list of formats",
        about: "As strptime, but NULL where the text does not match.",
        example: "try_strptime('x', '%d') IS NULL",
        takes: TAKES,
        gives: timestamp,
        volatile: false,
        run: |call| run(call, true),
    },
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[BOTH];
