//! Intervals as text, in the formats of IntervalStyle.

use super::SECOND;
use super::digits::{write_i64, write_pair, write_u64};
use super::style::IntervalFormat;
use super::write::write_fraction;

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

/// The time of an interval without its sign.
struct Clock {
    hours: u64,
    minutes: u64,
    seconds: u64,
    /// Microseconds of the second.
    fraction: u32,
}

impl IntervalParts {
    /// Writes the interval in a format.
    pub fn write_in(self, format: IntervalFormat, out: &mut Vec<u8>) {
        match format {
            IntervalFormat::Postgres => self.write(out),
            IntervalFormat::PostgresVerbose => self.write_verbose(out),
            IntervalFormat::SqlStandard => self.write_standard(out),
            IntervalFormat::Iso8601 => self.write_iso(out),
        }
    }

    /// Writes the interval as PostgreSQL does by default: `1 year 2 mons -3 days +04:05:06.5`.
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
        let clock = self.clock();
        if clock.hours < 10 {
            out.push(b'0');
        }
        clock.write(out);
    }

    /// `@ 1 year 2 mons -3 days 4 hours 5 mins 6.5 secs`, and `ago` if the first part is negative.
    fn write_verbose(self, out: &mut Vec<u8>) {
        let Clock { hours, minutes, seconds, fraction } = self.clock();
        let signed = |count: u64| if self.micros < 0 { -(count as i64) } else { count as i64 };
        let units = [
            ((self.months / 12).into(), "year"),
            ((self.months % 12).into(), "mon"),
            (self.days.into(), "day"),
            (signed(hours), "hour"),
            (signed(minutes), "min"),
        ];
        out.push(b'@');
        let mut is_before = None;
        for (count, unit) in units.into_iter().filter(|(count, _)| *count != 0) {
            let count = if *is_before.get_or_insert(count < 0) { -count } else { count };
            out.push(b' ');
            write_i64(count, out);
            out.push(b' ');
            out.extend_from_slice(unit.as_bytes());
            if count != 1 {
                out.push(b's');
            }
        }
        if seconds > 0 || fraction > 0 {
            out.push(b' ');
            if *is_before.get_or_insert(self.micros < 0) != (self.micros < 0) {
                out.push(b'-');
            }
            write_u64(seconds, out);
            write_fraction(fraction, 0, out);
            out.extend_from_slice(if seconds == 1 && fraction == 0 { b" sec" } else { b" secs" });
        }
        match is_before {
            None => out.extend_from_slice(b" 0"),
            Some(true) => out.extend_from_slice(b" ago"),
            Some(false) => {}
        }
    }

    /// `1-2`, `3 4:05:06.5`; years with days or a time, or parts of both signs, all have one: `+1-2 -3 +4:05:06.5`.
    fn write_standard(self, out: &mut Vec<u8>) {
        let Self { months, days, micros } = self;
        let is_negative = months < 0 || days < 0 || micros < 0;
        let is_positive = months > 0 || days > 0 || micros > 0;
        if !is_negative && !is_positive {
            return out.push(b'0');
        }
        let sign = |is_negative: bool| if is_negative { b'-' } else { b'+' };
        let years_and_months = |out: &mut Vec<u8>| {
            write_u64((months.unsigned_abs() / 12).into(), out);
            out.push(b'-');
            write_u64((months.unsigned_abs() % 12).into(), out);
        };
        if is_negative && is_positive || months != 0 && (days != 0 || micros != 0) {
            out.push(sign(months < 0));
            years_and_months(out);
            out.extend_from_slice(&[b' ', sign(days < 0)]);
            write_u64(days.unsigned_abs().into(), out);
            out.extend_from_slice(&[b' ', sign(micros < 0)]);
            return self.clock().write(out);
        }
        if is_negative {
            out.push(b'-');
        }
        if months != 0 {
            return years_and_months(out);
        }
        if days != 0 {
            write_u64(days.unsigned_abs().into(), out);
            out.push(b' ');
        }
        self.clock().write(out);
    }

    /// `P1Y2M-3DT4H5M6.5S`
    fn write_iso(self, out: &mut Vec<u8>) {
        if self == Self::default() {
            return out.extend_from_slice(b"PT0S");
        }
        let part = |count: i64, unit: u8, out: &mut Vec<u8>| {
            if count != 0 {
                write_i64(count, out);
                out.push(unit);
            }
        };
        out.push(b'P');
        part((self.months / 12).into(), b'Y', out);
        part((self.months % 12).into(), b'M', out);
        part(self.days.into(), b'D', out);
        if self.micros == 0 {
            return;
        }
        out.push(b'T');
        let Clock { hours, minutes, seconds, fraction } = self.clock();
        let signed = |count: u64| if self.micros < 0 { -(count as i64) } else { count as i64 };
        part(signed(hours), b'H', out);
        part(signed(minutes), b'M', out);
        if seconds > 0 || fraction > 0 {
            if self.micros < 0 {
                out.push(b'-');
            }
            write_u64(seconds, out);
            write_fraction(fraction, 0, out);
            out.push(b'S');
        }
    }

    fn clock(self) -> Clock {
        let micros = self.micros.unsigned_abs();
        let seconds = micros / SECOND.unsigned_abs();
        Clock {
            hours: seconds / 3600,
            minutes: seconds / 60 % 60,
            seconds: seconds % 60,
            fraction: (micros % SECOND.unsigned_abs()) as u32,
        }
    }
}

impl Clock {
    /// `4:05:06.5`
    fn write(&self, out: &mut Vec<u8>) {
        write_u64(self.hours, out);
        out.push(b':');
        write_pair(self.minutes as u32, out);
        out.push(b':');
        write_pair(self.seconds as u32, out);
        write_fraction(self.fraction, 0, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: (i32, i32, i64), format: IntervalFormat) -> String {
        let (months, days, micros) = parts;
        let mut out = Vec::new();
        IntervalParts { months, days, micros }.write_in(format, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn intervals_are_written_as_in_postgresql() {
        let of = |months, days, micros| text((months, days, micros), IntervalFormat::Postgres);
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(14, -3, 14_706_500_000), "1 year 2 mons -3 days +04:05:06.5");
        assert_eq!(of(-14, 1, 0), "-1 years -2 mons +1 day");
        assert_eq!(of(0, 0, -3_600_000_000 * 100), "-100:00:00");
        assert_eq!(of(0, 2, -SECOND), "2 days -00:00:01");
    }

    /// PostgreSQL's answers.
    #[test]
    fn other_formats_are_those_of_postgresql() {
        for (parts, verbose, standard, iso) in [
            ((0, 0, 0), "@ 0", "0", "PT0S"),
            ((14, 0, 0), "@ 1 year 2 mons", "1-2", "P1Y2M"),
            ((-14, 0, 0), "@ 1 year 2 mons ago", "-1-2", "P-1Y-2M"),
            ((0, 3, 0), "@ 3 days", "3 0:00:00", "P3D"),
            ((0, -3, 0), "@ 3 days ago", "-3 0:00:00", "P-3D"),
            ((0, 0, 14_706_500_000), "@ 4 hours 5 mins 6.5 secs", "4:05:06.5", "PT4H5M6.5S"),
            (
                (0, 0, -14_706_500_000),
                "@ 4 hours 5 mins 6.5 secs ago",
                "-4:05:06.5",
                "PT-4H-5M-6.5S",
            ),
            (
                (14, -3, 14_706_500_000),
                "@ 1 year 2 mons -3 days 4 hours 5 mins 6.5 secs",
                "+1-2 -3 +4:05:06.5",
                "P1Y2M-3DT4H5M6.5S",
            ),
            ((-14, 1, 0), "@ 1 year 2 mons -1 days ago", "-1-2 +1 +0:00:00", "P-1Y-2M1D"),
            (
                (14, 3, 14_706_500_000),
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.5 secs",
                "+1-2 +3 +4:05:06.5",
                "P1Y2M3DT4H5M6.5S",
            ),
            (
                (-14, -3, -14_706_500_000),
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.5 secs ago",
                "-1-2 -3 -4:05:06.5",
                "P-1Y-2M-3DT-4H-5M-6.5S",
            ),
            ((0, 2, -1_000_000), "@ 2 days -1 sec", "+0-0 +2 -0:00:01", "P2DT-1S"),
            ((0, -2, -1_500_000), "@ 2 days 1.5 secs ago", "-2 0:00:01.5", "P-2DT-1.5S"),
            ((0, 0, -500_000), "@ 0.5 secs ago", "-0:00:00.5", "PT-0.5S"),
            ((0, 0, 1_000_000), "@ 1 sec", "0:00:01", "PT1S"),
            ((0, 0, 1), "@ 0.000001 secs", "0:00:00.000001", "PT0.000001S"),
            ((1, 1, 1_000_000), "@ 1 mon 1 day 1 sec", "+0-1 +1 +0:00:01", "P1M1DT1S"),
            ((0, 0, 60_000_000), "@ 1 min", "0:01:00", "PT1M"),
            ((-1, 0, 60_000_000), "@ 1 mon -1 mins ago", "-0-1 +0 +0:01:00", "P-1MT1M"),
            ((0, -1, 1_500_000), "@ 1 day -1.5 secs ago", "+0-0 -1 +0:00:01.5", "P-1DT1.5S"),
            ((0, 0, 360_000_000_000), "@ 100 hours", "100:00:00", "PT100H"),
            (
                (i32::MAX, i32::MAX, i64::MAX),
                "@ 178956970 years 7 mons 2147483647 days 2562047788 hours 54.775807 secs",
                "+178956970-7 +2147483647 +2562047788:00:54.775807",
                "P178956970Y7M2147483647DT2562047788H54.775807S",
            ),
        ] {
            assert_eq!(text(parts, IntervalFormat::PostgresVerbose), verbose, "{parts:?}");
            assert_eq!(text(parts, IntervalFormat::SqlStandard), standard, "{parts:?}");
            assert_eq!(text(parts, IntervalFormat::Iso8601), iso, "{parts:?}");
        }
    }
}
