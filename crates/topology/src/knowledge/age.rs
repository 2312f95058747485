//! Times and ages of facts.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calendar::civil_from_days;

/// The age of a fact: `12 s ago`, `3 min ago`, `5 h ago`, `40 days ago`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub Duration);

impl Age {
    /// The age at `now` of a fact from `at`; zero if the clock was set back since.
    pub fn since(at: SystemTime, now: SystemTime) -> Self {
        Self(now.duration_since(at).unwrap_or_default())
    }
}

impl fmt::Display for Age {
    /// In whole units, rounded down: 119 seconds are `1 min ago`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        match self.0.as_secs() {
            0 => f.pad("just now"),
            seconds @ 1..MINUTE => f.pad(&format!("{seconds} s ago")),
            seconds @ MINUTE..HOUR => f.pad(&format!("{} min ago", seconds / MINUTE)),
            seconds @ HOUR..DAY => f.pad(&format!("{} h ago", seconds / HOUR)),
            seconds if seconds < 2 * DAY => f.pad("1 day ago"),
            seconds => f.pad(&format!("{} days ago", seconds / DAY)),
        }
    }
}

/// A time in UTC in RFC 3339 format, in seconds: `2026-11-21T23:31:25Z`. Times before 1970 and after the year 9999,
/// which the format cannot represent, are clamped.
pub fn rfc3339(at: SystemTime) -> String {
    const LAST: u64 = 253_402_300_799;
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().min(LAST) as i64);
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
