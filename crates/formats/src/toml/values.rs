//! Single values in both directions: sizes with units, times, quoted texts.

use std::time::{Duration, SystemTime};

use toml::value::{Datetime, Offset};

use atoll_topology::Bytes;
use atoll_topology::calendar::{civil_from_days, days_from_civil};

const UNITS: [(&str, u32); 6] =
    [("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

const DAY_SECONDS: i64 = 86_400;

/// A whole number and a binary unit: `24MiB`, `32 GiB`.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let (unit, bits) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    number.checked_mul(1 << bits).map(Bytes)
}

/// A size in the largest unit that divides it, in quotes; a plain number below 1 KiB.
pub(super) fn size_written(size: Bytes) -> String {
    let fits = |&&(_, bits): &&(&str, u32)| size.0 >= 1 << bits && size.0.is_multiple_of(1 << bits);
    match UNITS.iter().find(fits) {
        Some(&(unit, bits)) if bits > 0 => format!("\"{}{unit}\"", size.0 >> bits),
        _ => size.0.to_string(),
    }
}

/// A text in quotes, always on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The time of a TOML date and time with an offset from UTC. Returns None if one of the three is missing.
pub(super) fn time(moment: &Datetime) -> Option<SystemTime> {
    let (date, time, offset) = (moment.date?, moment.time?, moment.offset?);
    let offset_minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let days = days_from_civil(i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let minutes = i64::from(time.hour) * 60 + i64::from(time.minute) - offset_minutes;
    let seconds = days * DAY_SECONDS + minutes * 60 + i64::from(time.second.unwrap_or_default());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = match seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(whole)?,
        false => SystemTime::UNIX_EPOCH.checked_add(whole)?,
    };
    start.checked_add(Duration::from_nanos(u64::from(time.nanosecond.unwrap_or_default())))
}

/// RFC 3339 in UTC with as many decimals as needed; whole seconds since 1970 for years with more than four digits.
pub(super) fn time_written(time: SystemTime) -> String {
    let (seconds, nanos) = since_epoch(time);
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY_SECONDS));
    if !(0..=9999).contains(&year) {
        return seconds.to_string();
    }
    let second = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let decimals = match nanos {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{decimals}Z")
}

/// Seconds since 1970, rounded down, and the remaining nanoseconds.
fn since_epoch(time: SystemTime) -> (i64, u32) {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (seconds(after), after.subsec_nanos()),
        Err(error) => match error.duration() {
            before if before.subsec_nanos() == 0 => (-seconds(before), 0),
            before => (-seconds(before) - 1, 1_000_000_000 - before.subsec_nanos()),
        },
    }
}
