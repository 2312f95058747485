//! Timestamps to text.

use std::fmt::Write;

use super::{Field, Item, Letters, ROMAN};
use crate::temporal::civil::{
    Civil, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, MONTHS, WEEKDAYS, iso_weekday,
    split, weekday,
};

/// A local time and its zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    /// Microseconds since 1970.
    pub(super) micros: i64,
    /// The name of its zone; None without a zone.
    pub(super) zone: Option<&'a str>,
    /// Minutes east of Greenwich.
    pub(super) offset: i64,
}

/// The day 1970-01-01 as a Julian day.
const JULIAN_EPOCH: i64 = 2_440_588;

/// Writes a timestamp by the parts of a template.
pub(super) fn write(items: &[Item], moment: Moment<'_>, out: &mut String) {
    for item in items {
        match *item {
            Item::Space(letter) | Item::Separator(letter) | Item::Literal(letter) => {
                out.push(letter);
            }
            Item::Field { field, letters, is_bare, ordinal, .. } => {
                let text = of_field(field, letters, is_bare, &moment);
                out.push_str(&text);
                if let (Some(ordinal), true) = (ordinal, field.is_number()) {
                    out.push_str(&ordinal.apply(suffix(&text)));
                }
            }
        }
    }
}

/// Writes months, days and microseconds of an interval by the parts of a template; returns false if a part only applies
/// to timestamps.
pub(super) fn write_interval(items: &[Item], parts: (i64, i64, i64), out: &mut String) -> bool {
    for item in items {
        match *item {
            Item::Space(letter) | Item::Separator(letter) | Item::Literal(letter) => {
                out.push(letter);
            }
            Item::Field { field, is_bare, ordinal, .. } => {
                let Some((value, width)) = of_interval(field, parts) else { return false };
                let width = if is_bare { 0 } else { width + usize::from(value < 0) };
                let text = format!("{value:0width$}");
                out.push_str(&text);
                if let Some(ordinal) = ordinal {
                    out.push_str(&ordinal.apply(suffix(&text)));
                }
            }
        }
    }
    true
}

/// Returns the number in an interval's field, and its width.
fn of_interval(field: Field, (months, days, micros): (i64, i64, i64)) -> Option<(i64, usize)> {
    let hours = micros / MICROS_OF_HOUR;
    Some(match field {
        Field::Year(digits) => (months / 12 % 10_i64.pow(digits.min(9) as u32), digits),
        Field::Month => (months % 12, 2),
        Field::DayOfMonth => (days, 2),
        Field::Hour => (hours, 2),
        Field::HalfDayHour => (if hours % 12 == 0 { 12 } else { hours % 12 }, 2),
        Field::Minute => (micros % MICROS_OF_HOUR / MICROS_OF_MINUTE, 2),
        Field::Second => (micros % MICROS_OF_MINUTE / MICROS_OF_SECOND, 2),
        Field::SecondOfDay => (micros / MICROS_OF_SECOND, 1),
        Field::Fraction(digits) => {
            (micros.abs() % MICROS_OF_SECOND / 10_i64.pow(6 - digits as u32), digits)
        }
        _ => return None,
    })
}

/// Returns the ordinal suffix of a number: `1st`.
fn suffix(number: &str) -> &'static str {
    let digits = number.as_bytes();
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match digits.last() {
        Some(b'1') if !is_teen => "St",
        Some(b'2') if !is_teen => "Nd",
        Some(b'3') if !is_teen => "Rd",
        _ => "Th",
    }
}

fn of_field(field: Field, letters: Letters, is_bare: bool, moment: &Moment<'_>) -> String {
    let (days, of_day) = split(moment.micros);
    let civil = Civil::of_days(days);
    let hour = of_day / MICROS_OF_HOUR;
    let number = |value: i64, width: usize| {
        let width = if is_bare { 0 } else { width + usize::from(value < 0) };
        format!("{value:0width$}")
    };
    let name = |name: &str, width: usize| {
        let width = if is_bare { 0 } else { width };
        format!("{:width$}", letters.apply(name))
    };
    let (month, day_name) = (MONTHS[civil.month as usize - 1], WEEKDAYS[weekday(days) as usize]);
    match field {
        Field::Era(names) => letters.apply(names[usize::from(civil.year <= 0)]),
        Field::HalfDay(names) => letters.apply(names[usize::from(hour >= 12)]),
        Field::Century => number(century(civil.year), 2),
        Field::DayName => name(day_name, 9),
        Field::DayAbbreviation => name(&day_name[..3], 0),
        Field::DayOfYear => number(civil.day_of_year(), 3),
        Field::IsoDayOfYear => {
            let fourth = Civil { year: civil.iso_week().0, month: 1, day: 4 }.days();
            number(days - (fourth - (iso_weekday(fourth) - 1)) + 1, 3)
        }
        Field::DayOfMonth => number(civil.day, 2),
        Field::Weekday => number(weekday(days) + 1, 1),
        Field::IsoWeekday => number(iso_weekday(days), 1),
        Field::Fraction(digits) => {
            let fraction = of_day % MICROS_OF_SECOND / 10_i64.pow(6 - digits as u32);
            format!("{fraction:0digits$}")
        }
        Field::Exact => String::new(),
        Field::Hour => number(hour, 2),
        Field::HalfDayHour => number((hour + 11) % 12 + 1, 2),
        Field::IsoWeek => number(civil.iso_week().1, 2),
        Field::IsoYear(digits) => year(civil.iso_week().0, digits, is_bare),
        Field::JulianDay => (days + JULIAN_EPOCH).to_string(),
        Field::Minute => number(of_day % MICROS_OF_HOUR / MICROS_OF_MINUTE, 2),
        Field::Month => number(civil.month, 2),
        Field::MonthName => name(month, 9),
        Field::MonthAbbreviation => name(&month[..3], 0),
        Field::RomanMonth => name(ROMAN[civil.month as usize - 1], 4),
        Field::Offset => {
            let (sign, offset) = (sign(moment.offset), moment.offset.abs());
            let mut text = format!("{sign}{:02}", offset / 60);
            if offset % 60 != 0 {
                let _ = write!(text, ":{:02}", offset % 60);
            }
            text
        }
        Field::Quarter => number((civil.month - 1) / 3 + 1, 1),
        Field::SecondOfDay => (of_day / MICROS_OF_SECOND).to_string(),
        Field::Second => number(of_day % MICROS_OF_MINUTE / MICROS_OF_SECOND, 2),
        Field::ZoneHour => format!("{}{:02}", sign(moment.offset), moment.offset.abs() / 60),
        Field::ZoneMinute => format!("{:02}", moment.offset.abs() % 60),
        Field::Zone => letters.apply(moment.zone.unwrap_or_default()),
        Field::WeekOfMonth => number((civil.day - 1) / 7 + 1, 1),
        Field::WeekOfYear => number((civil.day_of_year() - 1) / 7 + 1, 2),
        Field::CommaYear => {
            let year = counted(civil.year);
            format!("{},{:03}", year / 1000, year % 1000)
        }
        Field::Year(digits) => year(civil.year, digits, is_bare),
    }
}

fn sign(offset: i64) -> char {
    if offset < 0 { '-' } else { '+' }
}

/// Converts a year to the usual count: the year before 1 is 1 BC.
fn counted(year: i64) -> i64 {
    if year <= 0 { 1 - year } else { year }
}

/// Returns the last digits of a year, or all of them for a pattern of four digits.
fn year(year: i64, digits: usize, is_bare: bool) -> String {
    let year = counted(year);
    let year = if digits < 4 { year % 10_i64.pow(digits as u32) } else { year };
    let width = if is_bare { 0 } else { digits };
    format!("{year:0width$}")
}

fn century(year: i64) -> i64 {
    // Before the year 1, PostgreSQL counts back from 1 BC.
    if year > 0 { (year - 1) / 100 + 1 } else { year / 100 - 1 }
}
