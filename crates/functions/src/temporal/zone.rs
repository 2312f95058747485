//! The time of a zone: how far it is ahead of UTC at an instant, and the instant of a local time.

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::types::TimestampMicrosecondType;
use datafusion::arrow::temporal_conversions::as_datetime_with_timezone;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Seconds by which local time is ahead at an instant, in microseconds since 1970.
pub(crate) fn offset(micros: i64, zone: Tz) -> i32 {
    let at = as_datetime_with_timezone::<TimestampMicrosecondType>(micros, zone);
    let ahead = at.map(|at| (at.naive_local() - at.naive_utc()).num_seconds());
    ahead.and_then(|seconds| i32::try_from(seconds).ok()).unwrap_or(0)
}

/// The time in a zone at an instant, both in microseconds; none where that is out of range.
pub(crate) fn local_time(micros: i64, zone: Tz) -> Option<i64> {
    micros.checked_add(i64::from(offset(micros, zone)) * SECOND)
}

/// The instant of a local time, as PostgreSQL finds it: what a change of the clocks skips is counted on from before the
/// change, and of what there is twice the later one is meant.
pub(crate) fn instant(local: i64, zone: Tz) -> Option<i64> {
    let ahead = |at: i64| i64::from(offset(at, zone)) * SECOND;
    let (before, after) = (ahead(local.checked_sub(DAY)?), ahead(local.checked_add(DAY)?));
    let (early, late) = (local.checked_sub(before)?, local.checked_sub(after)?);
    Some(if ahead(late) == after { late } else { early })
}

#[cfg(test)]
mod tests {
    use super::*;

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
