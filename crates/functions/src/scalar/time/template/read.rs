//! Text to timestamps.

use super::{Field, Item, ROMAN, is_blank, is_separator};
use crate::temporal::civil::{
    Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, MONTHS, WEEKDAYS,
    days_of_month, iso_weekday,
};

/// The day 1970-01-01 as a Julian day.
const JULIAN_EPOCH: i64 = 2_440_588;

/// The fields read from a text; as in PostgreSQL, missing ones are 0.
#[derive(Debug, Default)]
struct Parts {
    year: i64,
    /// Number of digits of the year's pattern.
    year_digits: usize,
    century: i64,
    is_before: bool,
    month: i64,
    day: i64,
    day_of_year: i64,
    /// 1 is Sunday.
    weekday: i64,
    week: i64,
    week_of_month: i64,
    julian: i64,
    hour: i64,
    is_half_day: bool,
    is_afternoon: bool,
    minute: i64,
    second: i64,
    second_of_day: i64,
    micros: i64,
    zone_sign: i64,
    zone_hour: i64,
    zone_minute: i64,
    /// Whether the fields are of the ISO 8601 week calendar; None before the first field that decides.
    is_iso: Option<bool>,
}

/// Parses a timestamp, in microseconds since 1970, by a template.
///
/// # Errors
/// A message that says what is wrong with the text.
pub(super) fn read(items: &[Item], text: &str) -> Result<i64, String> {
    let mut reader =
        Reader { text, rest: text, skipped: 0, is_exact: false, parts: Parts::default() };
    for (at, item) in items.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        reader.item(item, at == 0, items.get(at + 1))?;
    }
    reader.parts.moment()
}

struct Reader<'a> {
    text: &'a str,
    /// The unread rest of the text.
    rest: &'a str,
    /// Skipped blanks that are not in the template.
    skipped: i64,
    /// Whether the text must match the template exactly: after `FX`.
    is_exact: bool,
    parts: Parts,
}

impl<'a> Reader<'a> {
    fn item(&mut self, item: &Item, is_first: bool, next: Option<&Item>) -> Result<(), String> {
        let is_field = matches!(item, Item::Field { .. });
        let turns_exact = matches!(item, Item::Field { field: Field::Exact, .. });
        if !self.is_exact && !turns_exact && (is_field || is_first) {
            self.skip_blanks();
        }
        match item {
            Item::Space(_) | Item::Separator(_) if self.is_exact => self.skip(),
            Item::Space(_) | Item::Separator(_) => {
                self.skipped -= 1;
                if self.rest.starts_with(|letter| is_blank(letter) || is_separator(letter)) {
                    self.skip();
                    self.skipped += 1;
                }
            }
            Item::Literal(_) if !self.is_exact && self.skipped > 0 => self.skipped -= 1,
            Item::Literal(_) => self.skip(),
            Item::Field { field, len, is_bare, ordinal, .. } => {
                let slurps = *is_bare || ordinal.is_some() || !is_digit(next);
                self.field(*field, *len, slurps)?;
                if ordinal.is_some() {
                    // Any two characters.
                    self.skip();
                    self.skip();
                }
                if !self.is_exact {
                    self.skipped = 0;
                    self.skip_blanks();
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self) {
        let mut letters = self.rest.chars();
        letters.next();
        self.rest = letters.as_str();
    }

    fn skip_blanks(&mut self) {
        while self.rest.starts_with(is_blank) {
            self.skip();
            self.skipped += 1;
        }
    }

    fn field(&mut self, field: Field, len: usize, slurps: bool) -> Result<(), String> {
        self.heed_convention(field)?;
        let mut number = |len: usize| self_number(&mut self.rest, len, slurps, field);
        let parts = &mut self.parts;
        match field {
            Field::Exact => {
                self.is_exact = true;
                Ok(())
            }
            Field::Era(names) => {
                parts.is_before = named(&mut self.rest, names)? == 1;
                Ok(())
            }
            Field::HalfDay(names) => {
                parts.is_afternoon = named(&mut self.rest, names)? == 1;
                parts.is_half_day = true;
                Ok(())
            }
            Field::DayName => set(&mut parts.weekday, named(&mut self.rest, &WEEKDAYS)? + 1),
            Field::DayAbbreviation => {
                set(&mut parts.weekday, named(&mut self.rest, &abbreviated(&WEEKDAYS))? + 1)
            }
            Field::MonthName => set(&mut parts.month, named(&mut self.rest, &MONTHS)? + 1),
            Field::MonthAbbreviation => {
                set(&mut parts.month, named(&mut self.rest, &abbreviated(&MONTHS))? + 1)
            }
            Field::RomanMonth => {
                // Longer names first, because shorter ones may be their prefixes.
                let mut names: Vec<(usize, &str)> = ROMAN.into_iter().enumerate().collect();
                names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
                let texts: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
                let at = named(&mut self.rest, &texts)?;
                set(&mut parts.month, names[at as usize].0 as i64 + 1)
            }
            Field::HalfDayHour => {
                parts.is_half_day = true;
                set(&mut parts.hour, number(2)?.0)
            }
            Field::Hour => set(&mut parts.hour, number(2)?.0),
            Field::Minute => set(&mut parts.minute, number(2)?.0),
            Field::Second => set(&mut parts.second, number(2)?.0),
            Field::SecondOfDay => set(&mut parts.second_of_day, number(len)?.0),
            Field::Fraction(digits) => {
                let (value, read) = number(digits)?;
                let missing = 6_u32.saturating_sub(u32::try_from(read).unwrap_or(6));
                set(&mut parts.micros, value.saturating_mul(10_i64.pow(missing)))
            }
            Field::Month => set(&mut parts.month, number(2)?.0),
            Field::DayOfMonth => set(&mut parts.day, number(2)?.0),
            Field::DayOfYear | Field::IsoDayOfYear => set(&mut parts.day_of_year, number(3)?.0),
            Field::Weekday => set(&mut parts.weekday, number(1)?.0),
            Field::IsoWeekday => set(&mut parts.weekday, number(1)?.0 % 7 + 1),
            Field::WeekOfYear | Field::IsoWeek => set(&mut parts.week, number(2)?.0),
            Field::WeekOfMonth => set(&mut parts.week_of_month, number(1)?.0),
            // A quarter does not determine a day.
            Field::Quarter => number(1).map(drop),
            Field::Century => set(&mut parts.century, number(2)?.0),
            Field::JulianDay => set(&mut parts.julian, number(1)?.0),
            Field::Year(digits) | Field::IsoYear(digits) => {
                let (value, read) = number(digits)?;
                let is_part = digits < 4 && read < 4;
                parts.year_digits = digits;
                set(&mut parts.year, if is_part { near_2020(value) } else { value })
            }
            Field::CommaYear => {
                let (thousands, _) = self_number(&mut self.rest, 4, true, field)?;
                let comma = self.rest.strip_prefix(',').ok_or("expected a comma in the year")?;
                self.rest = comma;
                let (rest, _) = self_number(&mut self.rest, 3, false, field)?;
                parts.year_digits = 4;
                set(&mut parts.year, thousands * 1000 + rest)
            }
            Field::ZoneHour => {
                let sign = self.rest.chars().next().filter(|sign| "+- ".contains(*sign));
                if sign.is_some() {
                    self.rest = &self.rest[1..];
                }
                // A minus may have been taken for a separator.
                let is_read = self.skipped > 0
                    && self.text[..self.text.len() - self.rest.len()].ends_with('-');
                let is_minus = sign == Some('-') || sign.is_none() && is_read;
                parts.zone_sign = if is_minus { -1 } else { 1 };
                let (hour, _) = self_number(&mut self.rest, 2, slurps, field)?;
                set(&mut parts.zone_hour, hour)
            }
            Field::ZoneMinute => {
                parts.zone_sign = if parts.zone_sign == 0 { 1 } else { parts.zone_sign };
                set(&mut parts.zone_minute, number(2)?.0)
            }
            Field::Zone | Field::Offset => {
                Err("TZ and OF are for to_char; TZH and TZM are read".to_owned())
            }
        }
    }

    /// Rejects calendar fields mixed with ISO 8601 week fields.
    fn heed_convention(&mut self, field: Field) -> Result<(), String> {
        let is_iso = match field {
            Field::IsoYear(_) | Field::IsoWeek | Field::IsoDayOfYear | Field::IsoWeekday => true,
            Field::Year(_)
            | Field::CommaYear
            | Field::Century
            | Field::Month
            | Field::MonthName
            | Field::MonthAbbreviation
            | Field::RomanMonth
            | Field::DayOfMonth
            | Field::DayOfYear
            | Field::WeekOfYear
            | Field::WeekOfMonth
            | Field::Weekday
            | Field::Quarter => false,
            _ => return Ok(()),
        };
        match self.parts.is_iso.replace(is_iso) {
            Some(before) if before != is_iso => Err(
                "years and weeks of ISO 8601 (IYYY, IW) do not go with those of the calendar (YYYY, WW)"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

/// Whether the next character may be a digit.
fn is_digit(next: Option<&Item>) -> bool {
    match next {
        Some(Item::Field { field, .. }) => field.is_number(),
        Some(Item::Literal(letter)) => letter.is_ascii_digit(),
        _ => false,
    }
}

fn set(part: &mut i64, value: i64) -> Result<(), String> {
    match std::mem::replace(part, value) {
        before if before != 0 && before != value => {
            Err(format!("it has both {before} and {value} for one field"))
        }
        _ => Ok(()),
    }
}

/// Reads a number of exactly `len` digits, or of all digits; returns it and its length.
fn self_number(
    rest: &mut &str,
    len: usize,
    slurps: bool,
    field: Field,
) -> Result<(i64, usize), String> {
    let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
    let behind = &rest[blanks..];
    let sign = usize::from(behind.starts_with(['+', '-']));
    let all = behind.as_bytes();
    let most = if slurps { all.len() } else { len.min(all.len()) };
    if !slurps && all.len() < len {
        return Err(format!("it is too short for {len} digits of {}", shown(field)));
    }
    let digits = all[..most].iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err(format!("expected a number for {}, found '{behind}'", shown(field)));
    }
    let end = sign + digits;
    if !slurps && end < len {
        let found = &behind[..end];
        return Err(format!("expected {len} digits for {}, found '{found}'", shown(field)));
    }
    let value: i64 = behind[..end]
        .trim_start_matches('+')
        .parse()
        .ok()
        .filter(|value: &i64| i32::try_from(*value).is_ok())
        .ok_or_else(|| format!("{} is out of range", &behind[..end]))?;
    *rest = &behind[end..];
    Ok((value, if slurps { blanks + end } else { end }))
}

fn shown(field: Field) -> String {
    let name = format!("{field:?}");
    let mut shown = String::new();
    for letter in name.chars().take_while(|letter| *letter != '(') {
        if letter.is_uppercase() && !shown.is_empty() {
            shown.push(' ');
        }
        shown.extend(letter.to_lowercase());
    }
    format!("the {shown}")
}

fn abbreviated(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().map(|name| &name[..3]).collect()
}

/// Finds which of these names the text begins with, ignoring case.
fn named(rest: &mut &str, names: &[&str]) -> Result<i64, String> {
    for (at, name) in names.iter().enumerate() {
        if rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            *rest = &rest[name.len()..];
            return Ok(at as i64);
        }
    }
    let word = rest.split(is_blank).next().unwrap_or_default();
    Err(format!("'{word}' is not one of {}", names.join(", ")))
}

/// Expands a year of fewer than four digits to the one nearest to 2020.
fn near_2020(year: i64) -> i64 {
    year + match year {
        ..70 => 2000,
        70..100 => 1900,
        100..520 => 2000,
        520..1000 => 1000,
        _ => 0,
    }
}

impl Parts {
    fn moment(mut self) -> Result<i64, String> {
        let days = self.days()?;
        let of_day = self.of_day()?;
        let zone = self.zone_sign * (self.zone_hour * 60 + self.zone_minute) * MICROS_OF_MINUTE;
        let moment = days.checked_mul(MICROS_OF_DAY).and_then(|it| it.checked_add(of_day - zone));
        moment.ok_or_else(|| "it is out of range".to_owned())
    }

    fn of_day(&mut self) -> Result<i64, String> {
        if self.second_of_day != 0 {
            let seconds = self.second_of_day;
            self.hour = seconds / 3600;
            self.minute = seconds % 3600 / 60;
            self.second = seconds % 60;
        }
        if self.is_half_day {
            if !(1..=12).contains(&self.hour) {
                return Err(format!("hour {} is not one of a 12-hour clock", self.hour));
            }
            self.hour = self.hour % 12 + if self.is_afternoon { 12 } else { 0 };
        }
        let fits = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..MICROS_OF_SECOND).contains(&self.micros);
        if !fits {
            return Err("a field of the time is out of range".to_owned());
        }
        Ok(self.hour * MICROS_OF_HOUR
            + self.minute * MICROS_OF_MINUTE
            + self.second * MICROS_OF_SECOND
            + self.micros)
    }

    /// The year with 0 for 1 BC.
    fn counted_year(&self) -> i64 {
        if self.year != 0 {
            let mut year = self.year;
            if self.century != 0 && self.year_digits <= 2 {
                let century = if self.is_before { -self.century } else { self.century };
                year %= 100;
                return match (century >= 0, year) {
                    (true, 0) => century * 100,
                    (true, year) => (century - 1) * 100 + year,
                    (false, year) => (century + 1) * 100 - year + 1,
                };
            }
            if self.is_before {
                year = -year;
            }
            return if year < 0 { year + 1 } else { year };
        }
        match (self.century, self.is_before) {
            (0, _) => 0,
            (century, false) => (century - 1) * 100 + 1,
            (century, true) => -century * 100 + 1,
        }
    }

    fn days(&mut self) -> Result<i64, String> {
        let wrong = || "a field of the date is out of range".to_owned();
        let year = self.counted_year();
        let (mut month, mut day) = (1, 1);
        let mut of_julian = None;
        if self.julian != 0 {
            of_julian = Some(self.julian - JULIAN_EPOCH);
        }
        let is_iso = self.is_iso == Some(true);
        if self.week != 0 && is_iso {
            let fourth = Civil::checked(year, 1, 4).ok_or_else(wrong)?.days();
            let monday = fourth - (iso_weekday(fourth) - 1);
            // Sunday is 1, but the last day of an ISO week.
            let of_week = if self.weekday > 1 { self.weekday - 2 } else { 6 };
            let of_week = if self.weekday == 0 { 0 } else { of_week };
            of_julian = Some(monday + (self.week - 1) * 7 + of_week);
        } else if self.week != 0 {
            self.day_of_year = (self.week - 1) * 7 + 1;
        }
        if let Some(days) = of_julian {
            let civil = Civil::of_days(days);
            if self.day == 0 && self.month == 0 && self.week_of_month == 0 {
                return Civil::checked(civil.year, civil.month, civil.day)
                    .map(Civil::days)
                    .ok_or_else(wrong);
            }
            (month, day) = (civil.month, civil.day);
        }
        if self.week_of_month != 0 {
            self.day = (self.week_of_month - 1) * 7 + 1;
        }
        if self.day != 0 {
            day = self.day;
        }
        if self.month != 0 {
            month = self.month;
        }
        if self.day_of_year != 0 && (month <= 1 || day <= 1) {
            if self.year == 0 && self.century == 0 && !self.is_before {
                return Err("the day of a year needs the year".to_owned());
            }
            let first = match is_iso {
                true => {
                    let fourth = Civil::checked(year, 1, 4).ok_or_else(wrong)?.days();
                    fourth - (iso_weekday(fourth) - 1)
                }
                false => Civil::checked(year, 1, 1).ok_or_else(wrong)?.days(),
            };
            let civil = Civil::of_days(first + self.day_of_year - 1);
            if !is_iso && civil.year != year {
                return Err(wrong());
            }
            if is_iso || month <= 1 && day <= 1 {
                return Ok(civil.days());
            }
            month = if month <= 1 { civil.month } else { month };
            day = if day <= 1 { civil.day } else { day };
        }
        if !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
            return Err(wrong());
        }
        Civil::checked(year, month, day).map(Civil::days).ok_or_else(wrong)
    }
}
