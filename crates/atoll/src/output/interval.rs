//! Intervals as DuckDB writes them: `1 year 2 months -3 days 04:05:06.5`.

use std::fmt::Write as _;

use atoll_sql::arrow::array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
};
use atoll_sql::arrow::array::{Array, AsArray};
use atoll_sql::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Months, days and nanoseconds.
#[derive(Debug, Default)]
struct Parts {
    months: i32,
    days: i64,
    nanoseconds: i128,
}

/// Appends the interval of a row.
pub(super) fn push(array: &dyn Array, row: usize, text: &mut String) {
    if let Some(parts) = parts(array, row) {
        parts.push(text);
    }
}

fn parts(array: &dyn Array, row: usize) -> Option<Parts> {
    Some(match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            let months = array.as_primitive_opt::<IntervalYearMonthType>()?.value(row);
            Parts { months, ..Parts::default() }
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive_opt::<IntervalDayTimeType>()?.value(row);
            let nanoseconds = i128::from(value.milliseconds) * 1_000_000;
            Parts { months: 0, days: value.days.into(), nanoseconds }
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive_opt::<IntervalMonthDayNanoType>()?.value(row);
            let (months, days) = (value.months, value.days.into());
            Parts { months, days, nanoseconds: value.nanoseconds.into() }
        }
        DataType::Duration(unit) => {
            let (value, factor) = match unit {
                TimeUnit::Second => {
                    (array.as_primitive_opt::<DurationSecondType>()?.value(row), SECOND)
                }
                TimeUnit::Millisecond => {
                    (array.as_primitive_opt::<DurationMillisecondType>()?.value(row), 1_000_000)
                }
                TimeUnit::Microsecond => {
                    (array.as_primitive_opt::<DurationMicrosecondType>()?.value(row), 1000)
                }
                TimeUnit::Nanosecond => {
                    (array.as_primitive_opt::<DurationNanosecondType>()?.value(row), 1)
                }
            };
            let all = i128::from(value) * factor;
            let days = i64::try_from(all / DAY).ok()?;
            Parts { months: 0, days, nanoseconds: all % DAY }
        }
        _ => return None,
    })
}

impl Parts {
    fn push(&self, text: &mut String) {
        let start = text.len();
        let units = [
            (i64::from(self.months / 12), "year"),
            (i64::from(self.months % 12), "month"),
            (self.days, "day"),
        ];
        for (count, unit) in units.into_iter().filter(|(count, _)| *count != 0) {
            let s = if count.unsigned_abs() == 1 { "" } else { "s" };
            // A String takes everything.
            let _ = write!(text, "{count} {unit}{s} ");
        }
        if self.nanoseconds == 0 && text.len() > start {
            text.pop();
            return;
        }
        self.push_time(text);
    }

    fn push_time(&self, text: &mut String) {
        let sign = if self.nanoseconds < 0 { "-" } else { "" };
        let all = self.nanoseconds.unsigned_abs();
        let (seconds, fraction) = (all / SECOND as u128, all % SECOND as u128);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let _ = write!(text, "{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
        if fraction > 0 {
            let digits = format!("{fraction:09}");
            let _ = write!(text, ".{}", digits.trim_end_matches('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(months: i32, days: i64, nanoseconds: i128) -> String {
        let mut text = String::new();
        Parts { months, days, nanoseconds }.push(&mut text);
        text
    }

    /// DuckDB's answers.
    #[test]
    fn intervals_are_written_as_in_duckdb() {
        let hour = 3600 * SECOND;
        assert_eq!(text(0, 1, 0), "1 day");
        assert_eq!(text(0, -1, 0), "-1 day");
        assert_eq!(text(0, -2, 0), "-2 days");
        assert_eq!(text(0, 0, 0), "00:00:00");
        assert_eq!(text(14, 0, 0), "1 year 2 months");
        assert_eq!(text(-14, 0, 0), "-1 year -2 months");
        assert_eq!(text(0, 0, -hour), "-01:00:00");
        assert_eq!(text(0, 1, -hour), "1 day -01:00:00");
        assert_eq!(text(1, 3, 4 * hour + 306_500_000_000), "1 month 3 days 04:05:06.5");
        assert_eq!(text(14, -3, 100 * hour + 1000), "1 year 2 months -3 days 100:00:00.000001");
    }
}
