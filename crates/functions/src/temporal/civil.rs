//! The proleptic Gregorian calendar for days since 1970 and microseconds of a day.

use atoll_topology::calendar::{civil_from_days, days_from_civil};
use datafusion::arrow::datatypes::IntervalMonthDayNano;

use crate::temporal::Endless;

pub(crate) const MICROS_OF_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_OF_MINUTE: i64 = 60 * MICROS_OF_SECOND;
pub(crate) const MICROS_OF_HOUR: i64 = 60 * MICROS_OF_MINUTE;
pub(crate) const MICROS_OF_DAY: i64 = 24 * MICROS_OF_HOUR;

/// Returns the length of a fixed-length unit, by any of DuckDB's names; units of days are one day.
pub(crate) fn micros_of_unit(name: &str) -> Option<i64> {
    Some(match name {
        "day" | "days" | "d" | "dayofmonth" | "dow" | "dayofweek" | "weekday" | "isodow"
        | "doy" | "dayofyear" | "julian" => MICROS_OF_DAY,
        "hour" | "hours" | "h" | "hr" | "hrs" => MICROS_OF_HOUR,
        "minute" | "minutes" | "m" | "min" | "mins" => MICROS_OF_MINUTE,
        "second" | "seconds" | "s" | "sec" | "secs" | "epoch" => MICROS_OF_SECOND,
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => 1000,
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => 1,
        _ => return None,
    })
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl Civil {
    /// Returns the date this many days after 1970-01-01.
    pub(crate) fn of_days(days: i64) -> Self {
        let (year, month, day) = civil_from_days(days);
        Self { year, month, day }
    }

    /// Days since 1970-01-01.
    pub(crate) fn days(self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// Creates a date, if it exists.
    pub(crate) fn checked(year: i64, month: i64, day: i64) -> Option<Self> {
        let is_day = (-290_000..=294_000).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day);
        is_day.then_some(Self { year, month, day })
    }

    pub(crate) fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }

    /// Returns the ISO 8601 year and week.
    pub(crate) fn iso_week(self) -> (i64, i64) {
        let days = self.days();
        let thursday = Self::of_days(days - (iso_weekday(days) - 1) + 3);
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }

    /// Months since year 0.
    pub(crate) fn months(self) -> i64 {
        self.year * 12 + self.month - 1
    }
}

/// 0 for Sunday.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// 1 for Monday, 7 for Sunday.
pub(crate) fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Splits a timestamp into days and microseconds of the day.
pub(crate) fn split(micros: i64) -> (i64, i64) {
    (micros.div_euclid(MICROS_OF_DAY), micros.rem_euclid(MICROS_OF_DAY))
}

/// Adds months to a timestamp; uses the last day of the month if the day does not exist.
pub(crate) fn plus_months(micros: i64, months: i64) -> Option<i64> {
    let (days, of_day) = split(micros);
    let civil = Civil::of_days(days);
    let months = civil.months().checked_add(months)?;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let day = civil.day.min(days_of_month(year, month));
    let days = Civil::checked(year, month, day)?.days();
    days.checked_mul(MICROS_OF_DAY)?.checked_add(of_day)
}

/// Adds an interval to a timestamp; infinite values stay infinite.
pub(crate) fn plus(
    moment: Result<i64, Endless>,
    by: IntervalMonthDayNano,
) -> Option<Result<i64, Endless>> {
    let Ok(at) = moment else { return Some(moment) };
    let moved = plus_months(at, by.months.into())?
        .checked_add(i64::from(by.days) * MICROS_OF_DAY)?
        .checked_add(by.nanoseconds / 1000)?;
    // A finite sum never becomes infinite.
    Endless::of_moment(moved).is_none().then_some(Ok(moved))
}

/// Returns the number of a timestamp in microseconds.
pub(crate) fn number(moment: Result<i64, Endless>) -> i64 {
    moment.unwrap_or_else(Endless::moment)
}

/// Begins with January.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Begins with Sunday.
pub const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_to_the_calendar_and_back() {
        for days in (-800_000..800_000).step_by(13) {
            let civil = Civil::of_days(days);
            assert_eq!(civil.days(), days);
            assert!((1..=days_of_month(civil.year, civil.month)).contains(&civil.day));
        }
        assert_eq!(Civil::of_days(0), Civil { year: 1970, month: 1, day: 1 });
        assert_eq!(Civil { year: 2024, month: 12, day: 31 }.iso_week(), (2025, 1));
        assert_eq!(Civil { year: 2021, month: 1, day: 3 }.iso_week(), (2020, 53));
    }
}
