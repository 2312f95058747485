//! TIME WITH TIME ZONE: a time of day and an offset from UTC.

use std::fmt;

use super::input::StatementClock;
use super::moment::{Zone, read_zoned_time};
use super::write::write_time;
use super::zone::{instant, named_zone, offset, posix_zone};
use super::{DAY, SECOND};
use datafusion::arrow::array::timezone::Tz;

/// Offsets are less than this many seconds, as in PostgreSQL.
const OFFSET_MAX: i64 = 16 * 3600;

/// A time of day, and the seconds that its zone is to the west of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedTime {
    micros: i64,
    west: i32,
}

/// Why a text is not a time with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonedTimeError {
    /// It is not a time.
    Syntax,
    /// It has no zone, and no session gives it one.
    NoZone,
}

impl ZonedTime {
    /// Returns a time in a zone; None if either is out of range.
    pub fn new(micros: i64, west: i64) -> Option<Self> {
        let fits = (0..=DAY).contains(&micros) && west.abs() < OFFSET_MAX;
        fits.then(|| Self { micros, west: i32::try_from(west).unwrap_or(0) })
    }

    /// Reads a text. Without a zone it is a time in the session's, of its date or of today.
    ///
    /// # Errors
    /// If the text is not a time, or has no zone.
    pub fn parse(text: &str, clock: StatementClock<'_>) -> Result<Self, ZonedTimeError> {
        let (nanos, zone, days) =
            read_zoned_time(text, clock.style.order).ok_or(ZonedTimeError::Syntax)?;
        let micros = (nanos + 500) / 1000;
        let ahead = match zone {
            Some(Zone::Ahead(seconds)) => seconds,
            Some(Zone::Named(name)) => {
                let local = days.ok_or(ZonedTimeError::Syntax)?.saturating_mul(DAY) + micros;
                ahead_at(name, local).ok_or(ZonedTimeError::Syntax)?
            }
            None => {
                let name = clock.time_zone.ok_or(ZonedTimeError::NoZone)?;
                match days {
                    Some(days) => ahead_at(name, days.saturating_mul(DAY) + micros),
                    None => ahead_now(name, clock),
                }
                .ok_or(ZonedTimeError::Syntax)?
            }
        };
        Self::new(micros, -ahead).ok_or(ZonedTimeError::Syntax)
    }

    /// Returns the same moment of a day in another zone.
    pub fn elsewhere(self, ahead: i64) -> Option<Self> {
        let moved = self.micros + (i64::from(self.west) + ahead) * SECOND;
        Self::new(moved.rem_euclid(DAY), -ahead)
    }

    /// Returns the microseconds of the day.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// Returns the seconds that its zone is to the west of UTC.
    pub fn west(self) -> i32 {
        self.west
    }

    /// Returns PostgreSQL's binary form.
    pub fn to_binary(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.micros.to_be_bytes());
        bytes[8..].copy_from_slice(&self.west.to_be_bytes());
        bytes
    }

    /// Reads PostgreSQL's binary form.
    pub fn from_binary(bytes: &[u8]) -> Option<Self> {
        let (micros, west) = bytes.split_first_chunk::<8>()?;
        let west = i32::from_be_bytes(west.try_into().ok()?);
        Self::new(i64::from_be_bytes(*micros), west.into())
    }

    /// Returns bytes that compare as the time does: by the moment in UTC, then by the zone.
    pub fn order(self) -> [u8; 12] {
        let utc = self.micros + i64::from(self.west) * SECOND;
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&(utc as u64 ^ 1 << 63).to_be_bytes());
        bytes[8..].copy_from_slice(&(self.west as u32 ^ 1 << 31).to_be_bytes());
        bytes
    }
}

impl fmt::Display for ZonedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut time = Vec::new();
        write_time(self.micros, 0, &mut time);
        f.write_str(&String::from_utf8_lossy(&time))?;
        let seconds = self.west.unsigned_abs();
        let sign = if self.west > 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}", seconds / 3600)?;
        if !seconds.is_multiple_of(3600) {
            write!(f, ":{:02}", seconds / 60 % 60)?;
        }
        if !seconds.is_multiple_of(60) {
            write!(f, ":{:02}", seconds % 60)?;
        }
        Ok(())
    }
}

fn zone(name: &str) -> Option<Tz> {
    let known = named_zone(name).or_else(|| posix_zone(name));
    known.as_deref().unwrap_or(name).parse().ok()
}

/// The offset in seconds of a zone at a local time in microseconds.
fn ahead_at(name: &str, local: i64) -> Option<i64> {
    let zone = zone(name)?;
    Some(offset(instant(local, zone)?, zone).into())
}

/// Returns the offset in seconds of a zone of Arrow's when a statement began.
pub(crate) fn ahead_now(name: &str, clock: StatementClock<'_>) -> Option<i64> {
    let zone = name.parse::<Tz>().ok().or_else(|| zone(name))?;
    Some(offset(clock.begun_or_now()?, zone).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, ZonedTimeError> {
        let time_zone = Some("Europe/Berlin");
        let clock = StatementClock { time_zone, begun: Some(0), ..StatementClock::default() };
        ZonedTime::parse(text, clock).map(|time| time.to_string())
    }

    #[test]
    fn times_are_read_and_printed_as_in_postgresql() {
        for (text, shown) in [
            ("12:00", Ok("12:00:00+01")),
            ("2024-07-01 12:00 Europe/Berlin", Ok("12:00:00+02")),
            ("2024-07-01 12:00", Ok("12:00:00+02")),
            ("12:00 Europe/Berlin", Err(ZonedTimeError::Syntax)),
            ("12:00 PST", Ok("12:00:00-08")),
            ("12:00z", Ok("12:00:00+00")),
            ("12:00+2", Ok("12:00:00+02")),
            ("12:00:00.1234567+05:30", Ok("12:00:00.123457+05:30")),
            ("24:00:00+00", Ok("24:00:00+00")),
            ("12:00+15:59:59", Ok("12:00:00+15:59:59")),
            ("12:00+16", Err(ZonedTimeError::Syntax)),
            ("12:00:00-03:30:15", Ok("12:00:00-03:30:15")),
            ("120000+01", Ok("12:00:00+01")),
            ("allballs", Ok("00:00:00+00")),
            ("25:00+00", Err(ZonedTimeError::Syntax)),
            ("x", Err(ZonedTimeError::Syntax)),
            ("", Err(ZonedTimeError::Syntax)),
        ] {
            assert_eq!(read(text), shown.map(str::to_owned), "{text}");
        }
        let without = ZonedTime::parse("12:00", StatementClock::default());
        assert_eq!(without, Err(ZonedTimeError::NoZone));
    }

    #[test]
    fn times_are_ordered_by_utc_and_zone() {
        let parse = |text| ZonedTime::parse(text, StatementClock::default()).expect(text);
        let rising = ["00:00+05", "12:00+05", "11:00+04", "07:00+00", "06:00-01", "12:00+00"];
        for pair in rising.windows(2) {
            assert!(parse(pair[0]).order() < parse(pair[1]).order(), "{pair:?}");
        }
        for text in rising {
            let time = parse(text);
            assert_eq!(ZonedTime::from_binary(&time.to_binary()), Some(time));
        }
        let moved = parse("01:00+05").elsewhere(0).map(|time| time.to_string());
        assert_eq!(moved.as_deref(), Some("20:00:00+00"));
        assert_eq!(ZonedTime::from_binary(&[0; 11]), None);
        assert_eq!(ZonedTime::from_binary(&[0xff; 12]), None);
    }
}
