//! Dates, times and intervals as text.

use atoll_topology::calendar::civil_from_days;
use datafusion::arrow::array::timezone::Tz;

use super::digits::{write_i64, write_pair, write_u64};
use super::endless::Endless;
use super::zone::offset;
use super::{DAY, SECOND};

/// Writes a date of the proleptic Gregorian calendar, from days since 1970-01-01.
pub(crate) fn write_date(days: i64, out: &mut Vec<u8>) {
    if let Some(endless) = i32::try_from(days).ok().and_then(Endless::of_days) {
        return out.extend_from_slice(endless.word().as_bytes());
    }
    if write_year_month_day(days, out) {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a date; returns whether it is BC, which is written after the time.
fn write_year_month_day(days: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil_from_days(days);
    let (year, is_before) = if year > 0 { (year, false) } else { (1 - year, true) };
    let year = year.unsigned_abs();
    if year < 1000 {
        let zeros: &[u8] = if year < 10 {
            b"000"
        } else if year < 100 {
            b"00"
        } else {
            b"0"
        };
        out.extend_from_slice(zeros);
    }
    write_u64(year, out);
    out.push(b'-');
    write_pair(month as u32, out);
    out.push(b'-');
    write_pair(day as u32, out);
    is_before
}

/// Writes a time of day, from microseconds since midnight and additional nanoseconds.
pub(super) fn write_time(micros: i64, nanos: u32, out: &mut Vec<u8>) {
    let seconds = micros / SECOND;
    write_pair((seconds / 3600) as u32, out);
    out.push(b':');
    write_pair((seconds / 60 % 60) as u32, out);
    out.push(b':');
    write_pair((seconds % 60) as u32, out);
    write_fraction((micros % SECOND) as u32, nanos, out);
}

/// Writes microseconds and nanoseconds after a point, without trailing zeros.
fn write_fraction(micros: u32, nanos: u32, out: &mut Vec<u8>) {
    if micros == 0 && nanos == 0 {
        return;
    }
    out.push(b'.');
    for pair in [micros / 10_000, micros / 100, micros] {
        write_pair(pair, out);
    }
    if nanos > 0 {
        write_pair(nanos / 10, out);
        out.push(b'0' + (nanos % 10) as u8);
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Writes a timestamp, from microseconds since 1970 and additional nanoseconds; `offset` is the UTC offset in seconds,
/// if it is written.
pub(super) fn write_timestamp(micros: i64, nanos: u32, offset: Option<i32>, out: &mut Vec<u8>) {
    if let Some(endless) = Endless::of_moment(micros) {
        return out.extend_from_slice(endless.word().as_bytes());
    }
    let local = i128::from(micros) + i128::from(offset.unwrap_or(0)) * i128::from(SECOND);
    let days = local.div_euclid(DAY.into()) as i64;
    let is_before = write_year_month_day(days, out);
    out.push(b' ');
    write_time(local.rem_euclid(DAY.into()) as i64, nanos, out);
    if let Some(offset) = offset {
        write_offset(offset, out);
    }
    if is_before {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a TIMESTAMP, from microseconds since 1970.
pub(crate) fn write_moment(micros: i64, out: &mut Vec<u8>) {
    write_timestamp(micros, 0, None, out);
}

/// Writes a TIMESTAMPTZ, from microseconds since 1970, in a time zone or in UTC.
pub(crate) fn write_instant(micros: i64, zone: Option<Tz>, out: &mut Vec<u8>) {
    let ahead = zone.map_or(0, |zone| offset(micros, zone));
    write_timestamp(micros, 0, Some(ahead), out);
}

fn write_offset(offset: i32, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let seconds = offset.unsigned_abs();
    write_pair(seconds / 3600, out);
    for part in [seconds / 60 % 60, seconds % 60] {
        let is_last = seconds.is_multiple_of(60);
        if part > 0 || !is_last {
            out.push(b':');
            write_pair(part, out);
        }
        if is_last {
            return;
        }
    }
}

/// Months, days and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalParts {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl IntervalParts {
    /// Writes the interval as PostgreSQL does: `1 year 2 mons -3 days 04:05:06.5`.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut was_negative = false;
        let units = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        for (count, unit) in units.into_iter().filter(|(count, _)| *count != 0) {
            if out.len() > start {
                out.push(b' ');
            }
            if was_negative && count > 0 {
                out.push(b'+');
            }
            was_negative = count < 0;
            write_i64(count.into(), out);
            out.push(b' ');
            out.extend_from_slice(unit.as_bytes());
            if count != 1 {
                out.push(b's');
            }
        }
        if self.micros == 0 && out.len() > start {
            return;
        }
        if out.len() > start {
            out.push(b' ');
        }
        if self.micros < 0 {
            out.push(b'-');
        } else if was_negative {
            out.push(b'+');
        }
        self.write_time(out);
    }

    fn write_time(self, out: &mut Vec<u8>) {
        let micros = self.micros.unsigned_abs();
        let seconds = micros / SECOND.unsigned_abs();
        if seconds < 36_000 {
            out.push(b'0');
        }
        write_u64(seconds / 3600, out);
        out.push(b':');
        write_pair((seconds / 60 % 60) as u32, out);
        out.push(b':');
        write_pair((seconds % 60) as u32, out);
        write_fraction((micros % SECOND.unsigned_abs()) as u32, 0, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("it is text")
    }

    /// PostgreSQL's answers.
    #[test]
    fn moments_are_written_as_in_postgresql() {
        let of = |micros, offset| text(|out| write_timestamp(micros, 0, offset, out));
        assert_eq!(of(0, None), "1970-01-01 00:00:00");
        assert_eq!(of(-1, None), "1969-12-31 23:59:59.999999");
        assert_eq!(of(951_782_400_500_000, Some(0)), "2000-02-29 00:00:00.5+00");
        assert_eq!(of(0, Some(-12_600)), "1969-12-31 20:30:00-03:30");
        assert_eq!(of(0, Some(3208)), "1970-01-01 00:53:28+00:53:28");
        assert_eq!(of(-62_135_596_800_000_000 - DAY, None), "0001-12-31 00:00:00 BC");
        assert_eq!(of(253_402_300_800_000_000, None), "10000-01-01 00:00:00");
        assert!(of(i64::MIN + 1, Some(-50_000)).ends_with("BC"));
        assert_eq!(of(i64::MAX, Some(0)), "infinity");
        assert_eq!(of(i64::MIN, None), "-infinity");
        assert_eq!(text(|out| write_date(i32::MAX.into(), out)), "infinity");
        assert_eq!(text(|out| write_date(-719_528, out)), "0001-01-01 BC");
    }

    #[test]
    fn nanoseconds_follow_microseconds() {
        assert_eq!(text(|out| write_time(1_500_000, 120, out)), "00:00:01.50000012");
        assert_eq!(text(|out| write_time(DAY, 0, out)), "24:00:00");
        assert_eq!(text(|out| write_timestamp(1, 7, None, out)), "1970-01-01 00:00:00.000001007");
    }

    #[test]
    fn intervals_are_written_as_in_postgresql() {
        let of =
            |months, days, micros| text(|out| IntervalParts { months, days, micros }.write(out));
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(14, -3, 14_706_500_000), "1 year 2 mons -3 days +04:05:06.5");
        assert_eq!(of(-14, 1, 0), "-1 years -2 mons +1 day");
        assert_eq!(of(0, 0, -3_600_000_000 * 100), "-100:00:00");
        assert_eq!(of(0, 2, -SECOND), "2 days -00:00:01");
    }
}
