//! Text to intervals: `1 day 02:03:04`, `1-2`, `P1DT2H`, `3 hours ago`, and `1:30` with named fields.

use datafusion::arrow::datatypes::IntervalMonthDayNano;

use super::style::IntervalFormat;

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

/// A field in the declaration of an interval: `INTERVAL '1:30' HOUR TO MINUTE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalField {
    /// Years.
    Year,
    /// Months.
    Month,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds.
    Second,
}

/// The declared fields of an interval, and its seconds precision.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalFields {
    /// The first field and the last one.
    pub range: Option<(IntervalField, IntervalField)>,
    /// Fraction digits of seconds.
    pub digits: Option<u32>,
}

/// Parses an interval as PostgreSQL does; None if the text is not one, or is out of range. In the SQL standard's format,
/// a minus at the beginning applies to all parts if no other has a sign.
pub fn read_interval(
    text: &str,
    fields: IntervalFields,
    format: IntervalFormat,
) -> Option<IntervalMonthDayNano> {
    let text = text.trim();
    let sum = match text.strip_prefix('P') {
        Some(rest) => iso(rest)?,
        None => words(text, fields, format)?,
    };
    sum.within(fields).finish()
}

/// Returns the length of an interval in nanoseconds: a month has 30 days, and a day 24 hours.
pub fn interval_length(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * DAY + i128::from(interval.nanoseconds)
}

/// The sum of an interval's parts.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    months: i128,
    days: i128,
    nanos: i128,
}

impl Sum {
    fn finish(self) -> Option<IntervalMonthDayNano> {
        Some(IntervalMonthDayNano::new(
            self.months.try_into().ok()?,
            self.days.try_into().ok()?,
            self.nanos.try_into().ok()?,
        ))
    }

    fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, nanos: -self.nanos }
    }

    /// Adds a number of units; its fraction becomes smaller units, as in PostgreSQL.
    fn add(&mut self, number: Number, unit: Unit) {
        let Number { whole, behind } = number;
        match unit {
            Unit::Months(months) => {
                self.months += whole * months;
                match months {
                    1 => self.add_days(behind * 30.0),
                    months => self.months += (behind * months as f64).round_ties_even() as i128,
                }
            }
            Unit::Days(days) => {
                self.days += whole * days;
                self.add_days(behind * days as f64);
            }
            Unit::Nanos(nanos) => {
                self.nanos += whole * nanos + micros(behind * nanos as f64 / 1000.0);
            }
        }
    }

    fn add_days(&mut self, days: f64) {
        let whole = days.trunc();
        self.days += whole as i128;
        self.nanos += micros((days - whole) * (DAY / 1000) as f64);
    }

    /// Removes what is below the last declared field and above the first.
    fn within(self, fields: IntervalFields) -> Self {
        use IntervalField::{Day, Hour, Minute, Month, Second, Year};
        let mut sum = self;
        if let Some((_, last)) = fields.range {
            if last == Year {
                sum.months -= sum.months % 12;
            }
            if matches!(last, Year | Month) {
                sum.days = 0;
            }
            sum.nanos -= match last {
                Year | Month | Day => sum.nanos,
                Hour => sum.nanos % HOUR,
                Minute => sum.nanos % MINUTE,
                Second => 0,
            };
        }
        if let Some(digits @ 0..=6) = fields.digits {
            let step = 10_i128.pow(9 - digits);
            let half = if sum.nanos < 0 { -step / 2 } else { step / 2 };
            sum.nanos = (sum.nanos + half) / step * step;
        }
        sum
    }
}

/// Rounds to microseconds, in nanoseconds.
fn micros(value: f64) -> i128 {
    value.round_ties_even() as i128 * 1000
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Months(i128),
    Days(i128),
    Nanos(i128),
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "millennium" | "millennia" | "millenniums" | "mil" | "mils" => Self::Months(12_000),
            "century" | "centuries" | "cent" | "c" => Self::Months(1200),
            "decade" | "decades" | "dec" | "decs" => Self::Months(120),
            "year" | "years" | "yr" | "yrs" | "y" => Self::Months(12),
            "quarter" | "quarters" | "qtr" => Self::Months(3),
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "week" | "weeks" | "w" => Self::Days(7),
            "day" | "days" | "d" => Self::Days(1),
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Nanos(HOUR),
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Nanos(MINUTE),
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Nanos(SECOND),
            "millisecond" | "milliseconds" | "msecond" | "mseconds" | "msec" | "msecs" | "ms" => {
                Self::Nanos(1_000_000)
            }
            "microsecond" | "microseconds" | "usecond" | "useconds" | "usec" | "usecs" | "us" => {
                Self::Nanos(1000)
            }
            "nanosecond" | "nanoseconds" | "nsec" | "nsecs" | "ns" => Self::Nanos(1),
            _ => return None,
        })
    }

    fn from_field(field: IntervalField) -> Self {
        match field {
            IntervalField::Year => Self::Months(12),
            IntervalField::Month => Self::Months(1),
            IntervalField::Day => Self::Days(1),
            IntervalField::Hour => Self::Nanos(HOUR),
            IntervalField::Minute => Self::Nanos(MINUTE),
            IntervalField::Second => Self::Nanos(SECOND),
        }
    }
}

/// A number before and after its point.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    whole: i128,
    behind: f64,
}

impl Number {
    /// Parses `12`, `1.5`, `.5`, with the preceding sign.
    fn read(text: &str, is_negative: bool) -> Option<Self> {
        const DIGITS_MAX: usize = 18;
        let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = !(whole.is_empty() && behind.is_empty())
            && whole.len() <= DIGITS_MAX
            && are_digits(whole)
            && are_digits(behind);
        if !is_number {
            return None;
        }
        let sign = if is_negative { -1 } else { 1 };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let behind = if behind.is_empty() { 0.0 } else { format!("0.{behind}").parse().ok()? };
        Some(Self { whole: whole * sign, behind: behind * sign as f64 })
    }
}

/// A token of a text.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    /// Digits with points, colons and dashes between them, and the sign before them.
    Digits(&'a str, Sign),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    None,
    Plus,
    Minus,
}

impl Sign {
    fn is_negative(self) -> bool {
        self == Self::Minus
    }
}

/// Splits a text into tokens; None if it contains anything else.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\n', '\r', ',', '@']);
    while let Some(first) = rest.bytes().next() {
        let sign = match first {
            b'-' => Sign::Minus,
            b'+' => Sign::Plus,
            _ => Sign::None,
        };
        if first.is_ascii_alphabetic() {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..end]));
            rest = &rest[end..];
        } else {
            let digits = if sign == Sign::None { rest } else { rest[1..].trim_start() };
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-');
            let end = digits.find(|c: char| !is_part(c)).unwrap_or(digits.len());
            let starts = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            if !starts {
                return None;
            }
            tokens.push(Token::Digits(&digits[..end], sign));
            rest = &digits[end..];
        }
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', '@']);
    }
    Some(tokens)
}

/// Parses numbers with units, times, and years with months. Like PostgreSQL, goes from the last token to the first: a
/// number without a unit before a time counts days.
fn words(text: &str, fields: IntervalFields, format: IntervalFormat) -> Option<Sum> {
    let mut tokens = tokens(text)?;
    if format == IntervalFormat::SqlStandard && is_sign_of_all(&tokens) {
        for token in &mut tokens {
            if let Token::Digits(_, sign) = token {
                *sign = Sign::Minus;
            }
        }
    }
    let mut sum = Sum::default();
    let mut unit: Option<Unit> = None;
    let mut has_unit_without_number = false;
    let mut is_ago = false;
    let mut seen: Vec<String> = Vec::new();
    if !tokens.iter().any(|token| matches!(token, Token::Digits(..))) {
        return None;
    }
    for (at, token) in tokens.iter().enumerate().rev() {
        match token {
            Token::Word(word) => {
                let word = word.to_ascii_lowercase();
                if has_unit_without_number {
                    return None;
                }
                if word == "ago" && at + 1 == tokens.len() {
                    is_ago = true;
                    continue;
                }
                unit = Some(Unit::named(&word)?);
                let name = format!("{unit:?}");
                if seen.contains(&name) {
                    return None;
                }
                seen.push(name);
                has_unit_without_number = true;
            }
            Token::Digits(digits, sign) if digits.contains(':') => {
                if has_unit_without_number || seen.iter().any(|name| name.contains("Nanos")) {
                    return None;
                }
                let nanos = clock(digits, fields)?;
                sum.nanos += if sign.is_negative() { -nanos } else { nanos };
                seen.push("Nanos of a clock".to_owned());
                unit = Some(Unit::Days(1));
            }
            Token::Digits(digits, sign) => {
                if let Some((years, months)) = digits.split_once('-') {
                    let is_digits = months.bytes().all(|digit| digit.is_ascii_digit());
                    let months: i128 = months.parse().ok().filter(|months| *months < 12)?;
                    if !is_digits {
                        return None;
                    }
                    let years = Number::read(years, false).filter(|years| years.behind == 0.0)?;
                    let months = years.whole * 12 + months;
                    sum.months += if sign.is_negative() { -months } else { months };
                } else {
                    let of_range = fields.range.map(|(_, last)| Unit::from_field(last));
                    let unit = unit.or(of_range).unwrap_or(Unit::Nanos(SECOND));
                    sum.add(Number::read(digits, sign.is_negative())?, unit);
                }
                has_unit_without_number = false;
                unit = None;
            }
        }
    }
    if has_unit_without_number {
        return None;
    }
    Some(if is_ago { sum.negated() } else { sum })
}

/// Whether the first token has a minus, and no other a sign.
fn is_sign_of_all(tokens: &[Token<'_>]) -> bool {
    let is_signed = |token: &Token<'_>| matches!(token, Token::Digits(_, Sign::Plus | Sign::Minus));
    match tokens {
        [Token::Digits(_, Sign::Minus), rest @ ..] => !rest.iter().any(is_signed),
        _ => false,
    }
}

/// `1:30`, `1:30:15.5`; `10:30.5` is minutes and seconds.
fn clock(text: &str, fields: IntervalFields) -> Option<i128> {
    let parts: Vec<&str> = text.split(':').collect();
    let whole = |text: &str| text.parse::<u64>().ok().map(i128::from);
    let below_60 = |text: &str| whole(text).filter(|value| *value < 60);
    let minutes_first = fields.range == Some((IntervalField::Minute, IntervalField::Second));
    match parts[..] {
        [minutes, seconds] if minutes_first || seconds.contains('.') => {
            Some(whole(minutes)? * MINUTE + seconds_of(seconds)?)
        }
        [hours, minutes] => Some(whole(hours)? * HOUR + below_60(minutes)? * MINUTE),
        [hours, minutes, seconds] => {
            Some(whole(hours)? * HOUR + below_60(minutes)? * MINUTE + seconds_of(seconds)?)
        }
        _ => None,
    }
}

/// Seconds below a minute.
fn seconds_of(text: &str) -> Option<i128> {
    let Number { whole, behind } = Number::read(text, false)?;
    (whole <= 60).then(|| whole * SECOND + micros(behind * 1e6))
}

/// Parses ISO 8601's forms after the `P`: `1Y2M3DT4H5M6S`, `0001-02-03T04:05:06`.
fn iso(text: &str) -> Option<Sum> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    match date.trim_start_matches('-').contains('-') && date.ends_with(|c: char| c.is_ascii_digit())
    {
        true => {
            let units = [Unit::Months(12), Unit::Months(1), Unit::Days(1)];
            for (part, unit) in date.split('-').zip(units) {
                sum.add(Number::read(part, false)?, unit);
            }
        }
        false => designated(date, &mut sum, |unit| match unit {
            'Y' => Some(Unit::Months(12)),
            'M' => Some(Unit::Months(1)),
            'W' => Some(Unit::Days(7)),
            'D' => Some(Unit::Days(1)),
            _ => None,
        })?,
    }
    match time {
        Some("") => return None,
        Some(time) if time.contains(':') => {
            sum.nanos += clock(time, IntervalFields::default())?;
        }
        Some(time) => designated(time, &mut sum, |unit| match unit {
            'H' => Some(Unit::Nanos(HOUR)),
            'M' => Some(Unit::Nanos(MINUTE)),
            'S' => Some(Unit::Nanos(SECOND)),
            _ => None,
        })?,
        None if date.is_empty() => return None,
        None => {}
    }
    Some(sum)
}

/// Parses numbers, each followed by the letter of its unit.
fn designated(text: &str, sum: &mut Sum, unit: fn(char) -> Option<Unit>) -> Option<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let letter = rest[end..].chars().next()?;
        let (digits, is_negative) = match rest[..end].strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (rest[..end].trim_start_matches('+'), false),
        };
        sum.add(Number::read(digits, is_negative)?, unit(letter)?);
        rest = &rest[end + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use IntervalField::{Day, Hour, Minute, Month, Second, Year};

    fn text(interval: IntervalMonthDayNano) -> String {
        let mut out = Vec::new();
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        super::super::IntervalParts { months, days, micros: nanoseconds / 1000 }.write(&mut out);
        String::from_utf8(out).expect("it is text")
    }

    /// PostgreSQL's answers.
    #[test]
    fn intervals_are_read_as_in_postgresql() {
        for (given, wanted) in [
            ("1 day", "1 day"),
            ("1 day 02:03:04", "1 day 02:03:04"),
            ("1 year 2 months -3 days 04:05:06.5", "1 year 2 mons -3 days +04:05:06.5"),
            ("1 day 2 hours ago", "-1 days -02:00:00"),
            ("-1 day +2 hours", "-1 days +02:00:00"),
            ("1 month - 1 day", "1 mon -1 days"),
            ("@ 1 day ago", "-1 days"),
            ("  1   DAY  ", "1 day"),
            ("1d2h", "1 day 02:00:00"),
            ("12:00", "12:00:00"),
            ("-12:00", "-12:00:00"),
            ("12:00:01.123456", "12:00:01.123456"),
            ("100:00:00", "100:00:00"),
            ("5", "00:00:05"),
            ("5.5", "00:00:05.5"),
            ("3 4:05:06", "3 days 04:05:06"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("1-2 3 4:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("1 millennium", "1000 years"),
            ("10 us", "00:00:00.00001"),
            ("P1DT2H", "1 day 02:00:00"),
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
            ("P2W", "14 days"),
            ("PT36H", "36:00:00"),
            ("P-1DT-2H", "-1 days -02:00:00"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ] {
            let read = read_interval(given, IntervalFields::default(), IntervalFormat::Postgres);
            assert_eq!(read.map(text).as_deref(), Some(wanted), "{given}");
        }
    }

    #[test]
    fn other_texts_are_not_intervals() {
        for given in [
            "",
            "foo",
            "1 foo",
            "1 day 1 day",
            "day",
            "1 day day",
            "P",
            "PT",
            "P1",
            "1:60",
            "1 day -",
        ] {
            assert_eq!(
                read_interval(given, IntervalFields::default(), IntervalFormat::Postgres),
                None,
                "{given}"
            );
        }
        let days = "999999999999 days";
        assert_eq!(read_interval(days, IntervalFields::default(), IntervalFormat::Postgres), None);
    }

    #[test]
    fn fields_say_what_numbers_count_and_where_the_interval_ends() {
        for (given, range, digits, wanted) in [
            ("1", Some((Day, Day)), None, "1 day"),
            ("1", Some((Year, Year)), None, "1 year"),
            ("1-2", Some((Year, Month)), None, "1 year 2 mons"),
            ("1:30", Some((Hour, Minute)), None, "01:30:00"),
            ("1 10:30", Some((Day, Minute)), None, "1 day 10:30:00"),
            ("1 10:30:15", Some((Day, Second)), None, "1 day 10:30:15"),
            ("10:30", Some((Minute, Second)), None, "00:10:30"),
            ("10:30.5", Some((Minute, Second)), None, "00:10:30.5"),
            ("1.5", Some((Day, Day)), None, "1 day"),
            ("3 days", Some((Second, Second)), None, "3 days"),
            ("1 day 12:34:56.789", Some((Day, Day)), None, "1 day"),
            ("1.23456", Some((Second, Second)), Some(2), "00:00:01.23"),
            ("1.23456 seconds", None, Some(3), "00:00:01.235"),
        ] {
            let read =
                read_interval(given, IntervalFields { range, digits }, IntervalFormat::Postgres);
            assert_eq!(read.map(text).as_deref(), Some(wanted), "{given}");
        }
    }

    /// PostgreSQL's answers.
    #[test]
    fn a_sign_may_apply_to_all_parts() {
        for (given, plain, standard) in [
            (
                "-1-2 3 4:05:06",
                "-1 years -2 mons +3 days 04:05:06",
                "-1 years -2 mons -3 days -04:05:06",
            ),
            ("-1 2:00:00", "-1 days +02:00:00", "-1 days -02:00:00"),
            (
                "-1-2 -3 4:05:06",
                "-1 years -2 mons -3 days +04:05:06",
                "-1 years -2 mons -3 days +04:05:06",
            ),
            ("-1 day +2:00", "-1 days +02:00:00", "-1 days +02:00:00"),
            ("-1 day 2:00", "-1 days +02:00:00", "-1 days -02:00:00"),
            ("- 1 day 2 hours", "-1 days +02:00:00", "-1 days -02:00:00"),
            ("1 -2:00:00", "1 day -02:00:00", "1 day -02:00:00"),
            ("-1 day 2 hours ago", "1 day -02:00:00", "1 day 02:00:00"),
            (
                "-1 year 2 mons 3 days 1.5 secs",
                "-10 mons +3 days 00:00:01.5",
                "-1 years -2 mons -3 days -00:00:01.5",
            ),
            ("-1 hour 30 mins", "-00:30:00", "-01:30:00"),
            ("-1.5 years 2 mons", "-1 years -4 mons", "-1 years -8 mons"),
            ("-1-2", "-1 years -2 mons", "-1 years -2 mons"),
            ("-4:05:06", "-04:05:06", "-04:05:06"),
            (
                "+1-2 -3 +4:05:06.5",
                "1 year 2 mons -3 days +04:05:06.5",
                "1 year 2 mons -3 days +04:05:06.5",
            ),
        ] {
            for (format, wanted) in
                [(IntervalFormat::Postgres, plain), (IntervalFormat::SqlStandard, standard)]
            {
                let read = read_interval(given, IntervalFields::default(), format);
                assert_eq!(read.map(text).as_deref(), Some(wanted), "{given} {format:?}");
            }
        }
    }
}
