//! Dates and times as text.

use atoll_topology::calendar::civil_from_days;
use datafusion::arrow::array::timezone::Tz;

use super::civil::{MONTHS, WEEKDAYS, weekday};
use super::digits::{write_pair, write_u64};
use super::endless::Endless;
use super::style::{DateFormat, DateOrder, TemporalStyle};
use super::zone::{LocalZone, offset};
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

/// Writes a date in a style.
pub(super) fn write_styled_date(days: i64, style: TemporalStyle, out: &mut Vec<u8>) {
    if let Some(endless) = i32::try_from(days).ok().and_then(Endless::of_days) {
        return out.extend_from_slice(endless.word().as_bytes());
    }
    let is_before = match style.dates {
        DateFormat::Iso => write_year_month_day(days, out),
        DateFormat::Sql => write_separated(days, b'/', style.order, out),
        DateFormat::Postgres => write_separated(days, b'-', style.order, out),
        DateFormat::German => write_separated(days, b'.', DateOrder::Dmy, out),
    };
    if is_before {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a date with the year last; returns whether it is BC.
fn write_separated(days: i64, separator: u8, order: DateOrder, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil_from_days(days);
    let parts = if order == DateOrder::Dmy { [day, month] } else { [month, day] };
    for part in parts {
        write_pair(part as u32, out);
        out.push(separator);
    }
    write_year(year, out)
}

/// Writes a date; returns whether it is BC, which is written after the time.
fn write_year_month_day(days: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil_from_days(days);
    let is_before = write_year(year, out);
    out.push(b'-');
    write_pair(month as u32, out);
    out.push(b'-');
    write_pair(day as u32, out);
    is_before
}

/// Writes a year with at least four digits; returns whether it is BC.
fn write_year(year: i64, out: &mut Vec<u8>) -> bool {
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
pub(super) fn write_fraction(micros: u32, nanos: u32, out: &mut Vec<u8>) {
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

/// Writes a timestamp in a style other than ISO, from microseconds since 1970 and additional nanoseconds; `zone` is
/// the time zone, if it is written.
pub(super) fn write_styled_timestamp(
    (micros, nanos): (i64, u32),
    zone: Option<LocalZone>,
    style: TemporalStyle,
    out: &mut Vec<u8>,
) {
    if let Some(endless) = Endless::of_moment(micros) {
        return out.extend_from_slice(endless.word().as_bytes());
    }
    let offset = zone.map_or(0, |zone| zone.offset(micros));
    let local = i128::from(micros) + i128::from(offset) * i128::from(SECOND);
    let (days, time) = (local.div_euclid(DAY.into()) as i64, local.rem_euclid(DAY.into()) as i64);
    let is_before = match style.dates {
        DateFormat::Postgres => write_in_words(days, (time, nanos), style.order, out),
        _ => {
            let separator = if style.dates == DateFormat::German { b'.' } else { b'/' };
            let is_dmy = style.dates == DateFormat::German || style.order == DateOrder::Dmy;
            let order = if is_dmy { DateOrder::Dmy } else { DateOrder::Mdy };
            let is_before = write_separated(days, separator, order, out);
            out.push(b' ');
            write_time(time, nanos, out);
            is_before
        }
    };
    if let Some(zone) = zone {
        out.push(b' ');
        zone.write_abbreviation(micros, out);
    }
    if is_before {
        out.extend_from_slice(b" BC");
    }
}

/// Writes `Fri Jan 05 10:11:12 2024`; returns whether the year is BC.
fn write_in_words(
    days: i64,
    (time, nanos): (i64, u32),
    order: DateOrder,
    out: &mut Vec<u8>,
) -> bool {
    let (year, month, day) = civil_from_days(days);
    let month = &MONTHS[(month - 1) as usize][..3];
    out.extend_from_slice(&WEEKDAYS[weekday(days) as usize].as_bytes()[..3]);
    out.push(b' ');
    if order == DateOrder::Dmy {
        write_pair(day as u32, out);
        out.push(b' ');
        out.extend_from_slice(month.as_bytes());
    } else {
        out.extend_from_slice(month.as_bytes());
        out.push(b' ');
        write_pair(day as u32, out);
    }
    out.push(b' ');
    write_time(time, nanos, out);
    out.push(b' ');
    write_year(year, out)
}

/// Writes a UTC offset in seconds: `+01`, `-03:30`.
pub(super) fn write_offset(offset: i32, out: &mut Vec<u8>) {
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

    /// PostgreSQL's answers.
    #[test]
    fn other_styles_are_those_of_postgresql() {
        use DateFormat::{German, Postgres, Sql};
        use DateOrder::{Dmy, Mdy, Ymd};
        let berlin = LocalZone::parse("Europe/Berlin").expect("it is known");
        let fixed = LocalZone::parse("+05:30").expect("it is an offset");
        for (dates, order, date, local, zoned) in [
            (Sql, Mdy, "07/04/2024", "07/04/2024 10:11:12.5", "07/04/2024 12:11:12.5 CEST"),
            (Sql, Dmy, "04/07/2024", "04/07/2024 10:11:12.5", "04/07/2024 12:11:12.5 CEST"),
            (Sql, Ymd, "07/04/2024", "07/04/2024 10:11:12.5", "07/04/2024 12:11:12.5 CEST"),
            (
                Postgres,
                Mdy,
                "07-04-2024",
                "Thu Jul 04 10:11:12.5 2024",
                "Thu Jul 04 12:11:12.5 2024 CEST",
            ),
            (
                Postgres,
                Dmy,
                "04-07-2024",
                "Thu 04 Jul 10:11:12.5 2024",
                "Thu 04 Jul 12:11:12.5 2024 CEST",
            ),
            (German, Dmy, "04.07.2024", "04.07.2024 10:11:12.5", "04.07.2024 12:11:12.5 CEST"),
            (German, Mdy, "04.07.2024", "04.07.2024 10:11:12.5", "04.07.2024 12:11:12.5 CEST"),
        ] {
            let style = TemporalStyle { dates, order, ..TemporalStyle::default() };
            let moment = (1_720_087_872_500_000, 0);
            let written = |zone| text(|out| write_styled_timestamp(moment, zone, style, out));
            assert_eq!(text(|out| write_styled_date(19_908, style, out)), date);
            assert_eq!(written(None), local);
            assert_eq!(written(Some(berlin)), zoned);
        }
        let style = TemporalStyle { dates: Postgres, ..TemporalStyle::default() };
        let written =
            |at, zone| text(|out| write_styled_timestamp((at, 0), Some(zone), style, out));
        let before = -63_517_780_800_000_000;
        assert_eq!(written(before, berlin), "Fri Mar 15 12:53:28 0044 LMT BC");
        assert_eq!(written(before, fixed), "Fri Mar 15 17:30:00 0044 +05:30 BC");
        assert_eq!(written(i64::MAX, berlin), "infinity");
        assert_eq!(text(|out| write_styled_date(-719_528, style, out)), "01-01-0001 BC");
        assert_eq!(text(|out| write_styled_date(i32::MIN.into(), style, out)), "-infinity");
    }
}
