//! Time zones: their names, UTC offsets, and the conversion of local times to instants.

use chrono::TimeZone;
use chrono_tz::OffsetName;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::types::TimestampMicrosecondType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::temporal_conversions::as_datetime_with_timezone;

use super::write::write_offset;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Returns Arrow's name of a zone, ignoring case: `europe/berlin`.
pub fn named_zone(text: &str) -> Option<String> {
    // Arrow accepts offsets too, and counts them to the east.
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let capital = |part: &str| {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        first.to_uppercase() + &rest.to_lowercase()
    };
    let words =
        text.split('/').map(|part| part.split('_').map(capital).collect::<Vec<_>>().join("_"));
    let spellings = [text.to_owned(), text.to_uppercase(), words.collect::<Vec<_>>().join("/")];
    spellings.into_iter().find(|zone| zone.parse::<Tz>().is_ok())
}

/// Converts a zone in POSIX form, an optional name and the hours to the west, to Arrow's name: `GMT+5`,
/// `<-03>3:30`, `-02:00`. None with daylight saving rules, seconds or more than a day.
pub fn posix_zone(text: &str) -> Option<String> {
    let rest = match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?.1,
        None => text.trim_start_matches(|it: char| it.is_ascii_alphabetic()),
    };
    let (east, digits) = match rest.strip_prefix('-') {
        Some(digits) => (1, digits),
        None => (-1, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let number = |digits: &str| -> Option<i64> {
        digits.bytes().all(|it| it.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then(|| zone_ahead(east * (hours * 3600 + minutes * 60)))
}

/// Returns the zone with this offset, to the minute.
pub fn zone_ahead(seconds: i64) -> String {
    let minutes = seconds.unsigned_abs() / 60;
    let sign = if seconds < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Returns the UTC offset in seconds at an instant, in microseconds since 1970.
pub(crate) fn offset(micros: i64, zone: Tz) -> i32 {
    let at = as_datetime_with_timezone::<TimestampMicrosecondType>(micros, zone);
    let ahead = at.map(|at| (at.naive_local() - at.naive_utc()).num_seconds());
    ahead.and_then(|seconds| i32::try_from(seconds).ok()).unwrap_or(0)
}

/// A time zone in which timestamps are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalZone {
    zone: Tz,
    /// The zone with its abbreviations, unless it is an offset.
    named: Option<chrono_tz::Tz>,
}

impl LocalZone {
    /// Finds a zone by the name that Arrow's types have.
    pub(super) fn parse(name: &str) -> Result<Self, ArrowError> {
        let name = if name == "Z" { "UTC" } else { name };
        Ok(Self { zone: name.parse()?, named: name.parse().ok() })
    }

    /// Returns the UTC offset in seconds at an instant, in microseconds since 1970.
    pub(super) fn offset(self, micros: i64) -> i32 {
        offset(micros, self.zone)
    }

    /// Appends the zone's abbreviation at an instant, `CEST`, or its offset if it has none.
    pub(super) fn write_abbreviation(self, micros: i64, out: &mut Vec<u8>) {
        let at = as_datetime_with_timezone::<TimestampMicrosecondType>(micros, self.zone);
        let offset =
            self.named.zip(at).map(|(zone, at)| zone.offset_from_utc_datetime(&at.naive_utc()));
        match offset.as_ref().and_then(OffsetName::abbreviation) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            // The abbreviation of a zone that has no letters for it: `+0545`.
            None if self.named.is_some() => {
                let start = out.len();
                write_offset(self.offset(micros), out);
                let digits: Vec<u8> = out.drain(start..).filter(|byte| *byte != b':').collect();
                out.extend(digits);
            }
            None => write_offset(self.offset(micros), out),
        }
    }
}

/// Returns the local time at an instant, both in microseconds; None if it is out of range.
pub(crate) fn local_time(micros: i64, zone: Tz) -> Option<i64> {
    micros.checked_add(i64::from(offset(micros, zone)) * SECOND)
}

/// Returns the instant of a local time, as PostgreSQL does: a time skipped by a clock change continues from before the
/// change, and a repeated time means the later one.
pub(crate) fn instant(local: i64, zone: Tz) -> Option<i64> {
    let ahead = |at: i64| i64::from(offset(at, zone)) * SECOND;
    let (before, after) = (ahead(local.checked_sub(DAY)?), ahead(local.checked_add(DAY)?));
    let (early, late) = (local.checked_sub(before)?, local.checked_sub(after)?);
    Some(if ahead(late) == after { late } else { early })
}

/// Returns the UTC offset in seconds of PostgreSQL's time zone abbreviations.
pub(crate) fn zone_named(name: &str) -> Option<i64> {
    let half_hours = match name {
        "z" | "zulu" | "utc" | "gmt" | "ut" | "wet" => 0,
        "cet" | "bst" | "met" | "wetdst" | "west" => 2,
        "cest" | "eet" | "mest" | "sast" => 4,
        "eest" | "msk" => 6,
        "jst" | "kst" => 18,
        "acst" => 19,
        "aest" => 20,
        "acdt" => 21,
        "aedt" => 22,
        "nzst" => 24,
        "nzdt" => 26,
        "nst" => -7,
        "ndt" => -5,
        "ast" => -8,
        "adt" => -6,
        "est" => -10,
        "edt" => -8,
        "cst" => -12,
        "cdt" => -10,
        "mst" => -14,
        "mdt" => -12,
        "pst" => -16,
        "pdt" => -14,
        "akst" => -18,
        "akdt" => -16,
        "hst" => -20,
        _ => return None,
    };
    Some(half_hours * 1800)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_names_or_hours_to_the_west() {
        for (text, wanted) in [
            ("europe/berlin", Some("Europe/Berlin")),
            ("america/new_york", Some("America/New_York")),
            ("GMT-02:00", Some("+02:00")),
            ("EET+5", Some("-05:00")),
            ("<-03>3:30", Some("-03:30")),
            ("-02:00", Some("+02:00")),
            ("2", Some("-02:00")),
            ("GMT+99", None),
            ("++5", None),
            ("+", None),
            ("UTC+2:30:15", None),
            ("Nowhere/X", None),
            ("nowhere", None),
            ("", None),
        ] {
            let found = named_zone(text).or_else(|| posix_zone(text));
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
    }

    /// PostgreSQL's answers, in minutes since 2024-03-31 00:00 UTC and 2024-10-27 00:00 UTC.
    #[test]
    fn skipped_and_repeated_times_are_those_of_postgresql() {
        let zone: Tz = "Europe/Berlin".parse().expect("the zone is known");
        let minute = 60 * SECOND;
        for (midnight, local, wanted) in [
            (1_711_843_200, 119, 59),
            (1_711_843_200, 150, 90),
            (1_711_843_200, 180, 60),
            (1_729_987_200, 119, -1),
            (1_729_987_200, 150, 90),
            (1_729_987_200, 180, 120),
        ] {
            let midnight = midnight * SECOND;
            let found = instant(midnight + local * minute, zone).map(|at| (at - midnight) / minute);
            assert_eq!(found, Some(wanted), "{local}");
        }
        assert_eq!(instant(i64::MAX, zone), None);
    }
}
