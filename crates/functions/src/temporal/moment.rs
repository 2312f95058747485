//! Text to dates, times and timestamps: `2024-01-05 10:11:12.5+02`, `Jan 5 2024 10:11 PM`, `infinity`, `tomorrow`.

use atoll_topology::calendar::days_from_civil;

use super::endless::Endless;
use super::style::DateOrder;
use super::zone::zone_named;
use crate::temporal::civil::{MONTHS, WEEKDAYS, days_of_month};

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// The range of years, as in PostgreSQL.
const YEAR_MAX: i64 = 5_874_897;

/// The meaning of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading<'a> {
    At(Moment<'a>),
    /// `infinity`, and `-infinity`.
    Endless(Endless),
    /// `now`
    Now,
    /// A number of days after today, and the time of that day.
    Today(Moment<'a>),
}

/// A day, a time of that day, and the time zone of both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment<'a> {
    /// Days since 1970, or since today.
    pub(super) days: i64,
    /// Nanoseconds of the day; 24:00 is the whole day.
    pub(super) nanos: i64,
    pub(super) zone: Option<Zone<'a>>,
}

/// A time zone in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Zone<'a> {
    /// The UTC offset in seconds.
    Ahead(i64),
    Named(&'a str),
}

/// Parses a text as PostgreSQL does; None if it is not a timestamp. `order` is that of the numbers in its date.
pub(super) fn read_moment(text: &str, order: DateOrder) -> Option<Reading<'_>> {
    let text = text.trim();
    let word = |word: &str| text.eq_ignore_ascii_case(word);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        if word("infinity") || word("+infinity") {
            return Some(Reading::Endless(Endless::Future));
        }
        if word("-infinity") {
            return Some(Reading::Endless(Endless::Past));
        }
        if word("now") {
            return Some(Reading::Now);
        }
        if word("epoch") {
            return Some(Reading::At(Moment { days: 0, nanos: 0, zone: Some(Zone::Ahead(0)) }));
        }
    }
    let mut fields = Fields { order, ..Fields::default() };
    fields.scan(text)?;
    let nanos = fields.nanos()?.unwrap_or(0);
    if let Some(days) = fields.days_from_today {
        let is_alone = !fields.has_date() && fields.numbers.is_empty() && !fields.is_before_christ;
        return is_alone.then_some(Reading::Today(Moment { days, nanos, zone: fields.zone }));
    }
    Some(Reading::At(Moment { days: fields.days()?, nanos, zone: fields.zone }))
}

/// Parses a time of day in nanoseconds; None if the text is not a time. Ignores a date and a time zone in the text.
pub(super) fn read_time(text: &str, order: DateOrder) -> Option<i64> {
    read_zoned_time(text, order).map(|(nanos, ..)| nanos)
}

/// Parses a time of day in nanoseconds, its zone and the days of its date.
pub(super) fn read_zoned_time(
    text: &str,
    order: DateOrder,
) -> Option<(i64, Option<Zone<'_>>, Option<i64>)> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("allballs") {
        return Some((0, Some(Zone::Ahead(0)), None));
    }
    let is_time = !text.contains(['-', '/', ' ']);
    let mut fields = Fields { is_time, order, ..Fields::default() };
    fields.scan(text)?;
    let days = if fields.has_date() { Some(fields.days()?) } else { None };
    Some((fields.nanos()??, fields.zone, days))
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Fields<'a> {
    order: DateOrder,
    /// Whether plain digits are a time, because no date precedes them.
    is_time: bool,
    date: Option<Date>,
    month: Option<i64>,
    /// Plain numbers next to a month's name, with their length.
    numbers: Vec<(i64, usize)>,
    days_from_today: Option<i64>,
    time: Option<Clock>,
    is_afternoon: Option<bool>,
    is_before_christ: bool,
    zone: Option<Zone<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Date {
    Civil(i64, i64, i64),
    DayOfYear(i64, i64),
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    hour: i64,
    minute: i64,
    /// Nanoseconds of the minute.
    nanos: i64,
}

impl<'a> Fields<'a> {
    fn scan(&mut self, text: &'a str) -> Option<()> {
        let mut rest = text;
        while let Some(first) = rest.bytes().next() {
            rest = match first {
                b' ' | b'\t' | b'\n' | b'\r' | b',' => &rest[1..],
                b'0'..=b'9' => self.number(rest)?,
                b'+' | b'-' if self.time.is_some() && self.zone.is_none() => self.ahead(rest)?,
                // pgjdbc's form of dates: `2024-01-05 +01`.
                b'+' | b'-' if self.date.is_some() && self.zone.is_none() => {
                    let before = &text[..text.len() - rest.len()];
                    before.ends_with(' ').then(|| self.ahead(rest))??
                }
                _ if first.is_ascii_alphabetic() => self.word(rest)?,
                _ => return None,
            };
        }
        Some(())
    }

    fn has_date(&self) -> bool {
        self.date.is_some() || self.month.is_some()
    }

    /// Reads a token that begins with digits; returns the rest of the text.
    fn number(&mut self, text: &'a str) -> Option<&'a str> {
        let (digits, rest) = digits_of(text);
        let follows = |rest: &str| rest.as_bytes().get(1).is_some_and(u8::is_ascii_alphanumeric);
        match rest.bytes().next() {
            Some(b':') => self.clock(digits, &rest[1..]),
            Some(separator @ (b'-' | b'/' | b'.'))
                if !self.has_date() && !self.is_time && follows(rest) =>
            {
                self.separated(digits, char::from(separator), &rest[1..])
            }
            Some(b'.') if self.time.is_none() && digits.len() == 6 => {
                let (fraction, rest) = digits_of(&rest[1..]);
                self.plain(digits)?;
                self.time.as_mut()?.nanos += fraction_nanos(fraction)?;
                Some(rest)
            }
            _ => {
                self.plain(digits)?;
                Some(rest)
            }
        }
    }

    /// Reads `10:11` or `10:11:12.5` after the hour.
    fn clock(&mut self, hour: &str, text: &'a str) -> Option<&'a str> {
        if self.time.is_some() || hour.len() > 2 {
            return None;
        }
        let (minute, mut rest) = digits_of(text);
        let mut nanos = 0;
        if let Some(seconds) = rest.strip_prefix(':') {
            let (second, behind) = two_digits(seconds)?;
            (nanos, rest) = (second * SECOND, behind);
            if let Some(fraction) = rest.strip_prefix('.') {
                let (fraction, behind) = digits_of(fraction);
                nanos += fraction_nanos(fraction)?;
                rest = behind;
            }
        }
        let minute = (minute.len() <= 2).then(|| minute.parse().ok())??;
        self.time = Some(Clock { hour: hour.parse().ok()?, minute, nanos });
        Some(rest)
    }

    /// Reads `2024-01-05`, `05-Jan-2024`, `01/05/2024`, `2024.005` or `2024-005` after the first part.
    fn separated(&mut self, first: &str, separator: char, text: &'a str) -> Option<&'a str> {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (second, rest) = text.split_at(end);
        let value: i64 = first.parse().ok()?;
        let is_last = !rest.starts_with(separator);
        let is_day_of_year =
            matches!(separator, '.' | '-') && first.len() == 4 && second.len() == 3;
        if is_last && is_day_of_year {
            self.date = Some(Date::DayOfYear(value, second.parse().ok()?));
            return Some(rest);
        }
        let (third, rest) = digits_of(rest.strip_prefix(separator)?);
        let third_value: i64 = third.parse().ok()?;
        let is_year_first = first.len() >= 3 || self.order == DateOrder::Ymd;
        self.date = Some(match second.parse::<i64>() {
            Ok(second) if is_year_first => {
                Date::Civil(full_year(value, first.len()), second, third_value)
            }
            Ok(second) => {
                let year = full_year(third_value, third.len());
                match self.order {
                    DateOrder::Dmy => Date::Civil(year, second, value),
                    _ => Date::Civil(year, value, second),
                }
            }
            Err(_) => {
                let numbers = [(value, first.len()), (third_value, third.len())];
                self.beside_month(month_named(second)?, numbers)
            }
        });
        Some(rest)
    }

    /// Returns the date of a month's name and the numbers in its neighbourhood, with their lengths: a long one is the
    /// year, which otherwise comes first in the order YMD and last in the others.
    fn beside_month(&self, month: i64, numbers: [(i64, usize); 2]) -> Date {
        let [first, second] = numbers;
        let is_year_first = first.1 >= 3 || self.order == DateOrder::Ymd && second.1 < 3;
        let (year, day) = if is_year_first { (first, second) } else { (second, first) };
        Date::Civil(full_year(year.0, year.1), month, day.0)
    }

    /// Reads digits without separators.
    fn plain(&mut self, digits: &str) -> Option<()> {
        let value: i64 = digits.parse().ok()?;
        let pair = |at: usize| digits[at..at + 2].parse::<i64>().ok();
        match digits.len() {
            8.. if !self.has_date() && !self.is_time && self.numbers.is_empty() => {
                let at = digits.len() - 4;
                let year = digits[..at].parse().ok()?;
                self.date = Some(Date::Civil(year, pair(at)?, pair(at + 2)?));
            }
            4 | 6 if (self.date.is_some() || self.is_time) && self.time.is_none() => {
                let second = if digits.len() == 6 { pair(4)? } else { 0 };
                self.time =
                    Some(Clock { hour: pair(0)?, minute: pair(2)?, nanos: second * SECOND });
            }
            6 if !self.has_date() => {
                let year = full_year(pair(0)?, 2);
                self.date = Some(Date::Civil(year, pair(2)?, pair(4)?));
            }
            length if self.date.is_none() && self.numbers.len() < 2 => {
                self.numbers.push((value, length));
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads `+02`, `-03:30` or `+0530`.
    fn ahead(&mut self, text: &'a str) -> Option<&'a str> {
        let is_west = text.starts_with('-');
        let (digits, mut rest) = digits_of(&text[1..]);
        let (hours, mut minutes, mut seconds): (i64, i64, i64) = match digits.len() {
            1 | 2 => (digits.parse().ok()?, 0, 0),
            3 | 4 => {
                let at = digits.len() - 2;
                (digits[..at].parse().ok()?, digits[at..].parse().ok()?, 0)
            }
            _ => return None,
        };
        if digits.len() <= 2 {
            for part in [&mut minutes, &mut seconds] {
                let Some(next) = rest.strip_prefix(':') else { break };
                (*part, rest) = two_digits(next)?;
            }
        }
        if hours > 15 || minutes > 59 || seconds > 59 {
            return None;
        }
        let ahead = hours * 3600 + minutes * 60 + seconds;
        self.zone = Some(Zone::Ahead(if is_west { -ahead } else { ahead }));
        Some(rest)
    }

    /// Reads a token that begins with a letter.
    fn word(&mut self, text: &'a str) -> Option<&'a str> {
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let lower = word.to_ascii_lowercase();
        let is_before_digit = rest.starts_with(|c: char| c.is_ascii_digit());
        match lower.as_str() {
            "t" if is_before_digit && self.time.is_none() => {
                self.is_time |= !self.has_date();
            }
            "am" | "pm" if self.is_afternoon.is_none() && self.time.is_some() => {
                self.is_afternoon = Some(lower == "pm");
            }
            "bc" => self.is_before_christ = true,
            "ad" | "at" | "on" => {}
            "today" | "tomorrow" | "yesterday" if self.days_from_today.is_none() => {
                self.days_from_today = Some(match lower.as_str() {
                    "today" => 0,
                    "tomorrow" => 1,
                    _ => -1,
                });
            }
            _ if self.zone.is_none() && self.time.is_some() && zone_named(&lower).is_some() => {
                self.zone = zone_named(&lower).map(Zone::Ahead);
            }
            _ if is_weekday(&lower) => {}
            _ => match month_named(word) {
                Some(month) if !self.has_date() => self.month = Some(month),
                Some(_) => return None,
                None => return self.place(text),
            },
        }
        Some(rest)
    }

    /// Reads `Europe/Berlin`.
    fn place(&mut self, text: &'a str) -> Option<&'a str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
        let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if self.time.is_none() || self.zone.is_some() {
            return None;
        }
        self.zone = Some(Zone::Named(name));
        Some(rest)
    }

    /// Returns days since 1970.
    fn days(&self) -> Option<i64> {
        let date = match (self.date, self.month, self.numbers.as_slice()) {
            (date @ Some(_), None, []) => date,
            (None, Some(month), [first, second]) => {
                Some(self.beside_month(month, [*first, *second]))
            }
            _ => None,
        };
        let (year, month, day) = match date? {
            Date::Civil(year, month, day) => (year, month, day),
            Date::DayOfYear(year, day) => {
                let is_day = (1..=YEAR_MAX).contains(&year)
                    && (1..=337 + days_of_month(year, 2)).contains(&day)
                    && !self.is_before_christ;
                return is_day.then(|| days_from_civil(year, 1, 1) + day - 1);
            }
        };
        let year = match self.is_before_christ {
            true => 1 - year,
            false => year,
        };
        let is_year = if self.is_before_christ { year <= 0 } else { year > 0 };
        let is_date = is_year
            && (-4713..=YEAR_MAX).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day);
        is_date.then(|| days_from_civil(year, month, day))
    }

    /// Returns nanoseconds of the day if there is a time; None if it is invalid.
    fn nanos(&self) -> Option<Option<i64>> {
        let Some(Clock { hour, minute, nanos }) = self.time else { return Some(None) };
        let hour = match self.is_afternoon {
            None => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(is_afternoon) => hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let all = hour * HOUR + minute * MINUTE + nanos;
        let is_time = minute < 60 && nanos <= 60 * SECOND && all <= DAY;
        is_time.then_some(Some(all))
    }
}

/// Splits leading digits off a text.
fn digits_of(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Splits a number of one or two digits off a text.
fn two_digits(text: &str) -> Option<(i64, &str)> {
    let (digits, rest) = digits_of(text);
    (digits.len() <= 2).then(|| Some((digits.parse().ok()?, rest)))?
}

/// Converts fraction digits to nanoseconds.
fn fraction_nanos(digits: &str) -> Option<i64> {
    let kept = &digits[..digits.len().min(9)];
    if kept.is_empty() {
        return Some(0);
    }
    Some(kept.parse::<i64>().ok()? * 10_i64.pow(9 - kept.len() as u32))
}

/// Expands a year of two digits to one of 1970 to 2069.
fn full_year(year: i64, digits: usize) -> i64 {
    match digits {
        1 | 2 if year < 70 => year + 2000,
        1 | 2 => year + 1900,
        _ => year,
    }
}

fn month_named(name: &str) -> Option<i64> {
    let found = MONTHS.iter().position(|month| is_word(name, month));
    let found = found.or_else(|| name.eq_ignore_ascii_case("sept").then_some(8));
    found.and_then(|at| i64::try_from(at + 1).ok())
}

/// Whether a text is a word, or its first three letters.
fn is_word(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word) || text.eq_ignore_ascii_case(&word[..3])
}

fn is_weekday(name: &str) -> bool {
    WEEKDAYS.iter().any(|day| is_word(name, day))
        || matches!(name, "tues" | "weds" | "thur" | "thurs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(String, Option<Zone<'_>>)> {
        at_in(text, DateOrder::Mdy)
    }

    fn at_in(text: &str, order: DateOrder) -> Option<(String, Option<Zone<'_>>)> {
        match read_moment(text, order)? {
            Reading::At(Moment { days, nanos, zone }) => {
                let mut out = Vec::new();
                let micros = days * 86_400_000_000 + nanos / 1000;
                super::super::write::write_timestamp(micros, 0, None, &mut out);
                Some((String::from_utf8(out).expect("it is text"), zone))
            }
            _ => None,
        }
    }

    /// PostgreSQL's answers.
    #[test]
    fn moments_are_read_as_in_postgresql() {
        for (given, wanted) in [
            ("2024-01-05", "2024-01-05 00:00:00"),
            ("2024-1-5", "2024-01-05 00:00:00"),
            ("20240105", "2024-01-05 00:00:00"),
            ("2024/01/05", "2024-01-05 00:00:00"),
            ("2024.005", "2024-01-05 00:00:00"),
            ("2024-366", "2024-12-31 00:00:00"),
            ("01/05/2024", "2024-01-05 00:00:00"),
            ("05-Jan-2024", "2024-01-05 00:00:00"),
            ("January 5, 2024", "2024-01-05 00:00:00"),
            ("5 January 2024", "2024-01-05 00:00:00"),
            ("Jan 5 2024 10:11:12", "2024-01-05 10:11:12"),
            ("Fri Jan 5 10:11:12 2024", "2024-01-05 10:11:12"),
            ("2024-01-05 10:11", "2024-01-05 10:11:00"),
            ("2024-01-05T10:11:12.123456", "2024-01-05 10:11:12.123456"),
            ("2024-01-05 10:11 PM", "2024-01-05 22:11:00"),
            ("2024-01-05 12:11 am", "2024-01-05 00:11:00"),
            ("20240105T101112", "2024-01-05 10:11:12"),
            ("20240105 101112.5", "2024-01-05 10:11:12.5"),
            ("2024-01-05 24:00:00", "2024-01-06 00:00:00"),
            ("2024-01-05 10:11:60", "2024-01-05 10:12:00"),
            ("0044-03-15 10:00:00 BC", "0044-03-15 10:00:00 BC"),
            ("10000-01-01 00:00:00", "10000-01-01 00:00:00"),
        ] {
            assert_eq!(at(given), Some((wanted.to_owned(), None)), "{given}");
        }
    }

    /// PostgreSQL's answers.
    #[test]
    fn the_order_of_numbers_is_that_of_the_session() {
        for (given, mdy, dmy, ymd) in [
            ("01/02/2003", "2003-01-02", "2003-02-01", ""),
            ("01/02/03", "2003-01-02", "2003-02-01", "2001-02-03"),
            ("13/01/2003", "", "2003-01-13", ""),
            ("01/13/2003", "2003-01-13", "", ""),
            ("2003/01/02", "2003-01-02", "2003-01-02", "2003-01-02"),
            ("01-02-2003", "2003-01-02", "2003-02-01", ""),
            ("01.02.2003", "2003-01-02", "2003-02-01", ""),
            ("99/01/02", "", "", "1999-01-02"),
            ("01-02-03", "2003-01-02", "2003-02-01", "2001-02-03"),
            ("05-Jan-2024", "2024-01-05", "2024-01-05", "2024-01-05"),
            ("05-Jan-24", "2024-01-05", "2024-01-05", "2005-01-24"),
            ("2024-Jan-05", "2024-01-05", "2024-01-05", "2024-01-05"),
            ("24-Jan-05", "2005-01-24", "2005-01-24", "2024-01-05"),
            ("Jan 5 2024", "2024-01-05", "2024-01-05", "2024-01-05"),
            ("Jan 5 24", "2024-01-05", "2024-01-05", "2005-01-24"),
            ("5 Jan 24", "2024-01-05", "2024-01-05", "2005-01-24"),
            ("24 Jan 05", "2005-01-24", "2005-01-24", "2024-01-05"),
            ("5 January 2024", "2024-01-05", "2024-01-05", "2024-01-05"),
            ("20240105", "2024-01-05", "2024-01-05", "2024-01-05"),
            ("010203", "2001-02-03", "2001-02-03", "2001-02-03"),
            ("1/2/3", "2003-01-02", "2003-02-01", "2001-02-03"),
            ("100/01/02", "0100-01-02", "0100-01-02", "0100-01-02"),
        ] {
            for (order, wanted) in
                [(DateOrder::Mdy, mdy), (DateOrder::Dmy, dmy), (DateOrder::Ymd, ymd)]
            {
                let found = at_in(given, order).map(|(text, _)| text);
                let wanted = (!wanted.is_empty()).then(|| format!("{wanted} 00:00:00"));
                assert_eq!(found, wanted, "{given} {order:?}");
            }
        }
    }

    #[test]
    fn time_zones_are_offsets_abbreviations_and_places() {
        for (given, wanted) in [
            ("2024-01-05 10:11+02", Zone::Ahead(7200)),
            ("2024-01-05 10:11 -8", Zone::Ahead(-28_800)),
            ("2024-01-05 +01", Zone::Ahead(3600)),
            ("2024-01-05 -01:30", Zone::Ahead(-5400)),
            ("2024-01-05 10:11+0530", Zone::Ahead(19_800)),
            ("2024-01-05 10:11:12.5+05:30", Zone::Ahead(19_800)),
            ("2024-01-05T10:11:12Z", Zone::Ahead(0)),
            ("2024-01-05 10:11 PST", Zone::Ahead(-28_800)),
            ("2024-01-05 10:11 Europe/Berlin", Zone::Named("Europe/Berlin")),
        ] {
            assert_eq!(at(given).and_then(|(_, zone)| zone), Some(wanted), "{given}");
        }
    }

    #[test]
    fn other_texts_are_not_timestamps() {
        for given in [
            "",
            "foo",
            "2024",
            "2024-02-30",
            "2024-13-01",
            "2024-01-05 25:00",
            "10:11",
            "2024-01-05 10:61",
            "2024-01-05 13:00 PM",
            "2024-01-05 2024-01-06",
            "0000-01-01",
            "0000.005",
            "0000-005",
            "2023.366",
            "today 77",
            "today 2024-01-01",
            "today Jan",
            "today BC",
            "2024-01-05 10:11:12 10:11:12",
            "-2024-01-05",
            "1",
        ] {
            assert_eq!(read_moment(given, DateOrder::Mdy), None, "{given}");
        }
    }

    #[test]
    fn words_name_dates_and_timestamps() {
        let read = |text| read_moment(text, DateOrder::Mdy);
        assert_eq!(read("Infinity"), Some(Reading::Endless(Endless::Future)));
        assert_eq!(read(" -infinity "), Some(Reading::Endless(Endless::Past)));
        assert_eq!(read("now"), Some(Reading::Now));
        let morning = |days, zone| Some(Reading::Today(Moment { days, nanos: 10 * HOUR, zone }));
        assert_eq!(read("tomorrow 10:00"), morning(1, None));
        assert_eq!(read("10:00 yesterday"), morning(-1, None));
        assert_eq!(read("today 10:00+02"), morning(0, Some(Zone::Ahead(7200))));
        assert_eq!(at("epoch").map(|(text, _)| text).as_deref(), Some("1970-01-01 00:00:00"));
    }

    #[test]
    fn times_are_alone_or_after_a_date() {
        for (given, wanted) in [
            ("10:11", 10 * HOUR + 11 * MINUTE),
            ("10:11:12.5", 10 * HOUR + 11 * MINUTE + 12 * SECOND + SECOND / 2),
            ("10:11 PM", 22 * HOUR + 11 * MINUTE),
            ("1011", 10 * HOUR + 11 * MINUTE),
            ("101112", 10 * HOUR + 11 * MINUTE + 12 * SECOND),
            ("24:00:00", DAY),
            ("allballs", 0),
            ("10:11+02", 10 * HOUR + 11 * MINUTE),
            ("2024-01-05 10:11", 10 * HOUR + 11 * MINUTE),
        ] {
            assert_eq!(read_time(given, DateOrder::Mdy), Some(wanted), "{given}");
        }
        for given in ["", "25:00", "10:60", "24:00:01", "foo", "10"] {
            assert_eq!(read_time(given, DateOrder::Mdy), None, "{given}");
        }
    }
}
