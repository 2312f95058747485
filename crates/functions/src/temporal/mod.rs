//! PostgreSQL's text forms of dates, times and intervals.
//!
//! | file | contents |
//! |---|---|
//! | `digits` | integers to digits |
//! | `endless` | `infinity` and `-infinity`, which arithmetic never reaches |
//! | `style` | DateStyle and IntervalStyle |
//! | `write` | a date, time or timestamp to text |
//! | `write_interval` | an interval to text |
//! | `rows` | arrays of these to text |
//! | `interval` | text to intervals |
//! | `measured` | lengths of intervals |
//! | `moment` | text to dates, times and timestamps |
//! | `input` | arrays of texts to these |
//! | `zone` | local times and instants |
//! | `zoned_time` | times of day with a zone |

pub(crate) mod civil;
mod digits;
mod endless;
mod input;
mod interval;
mod measured;
mod moment;
mod rows;
mod style;
mod write;
mod write_interval;
mod zone;
mod zoned_time;

pub use civil::{MONTHS, WEEKDAYS};
pub use digits::{write_i64, write_u64};
pub use endless::{Endless, SetAside, call_with_finite, cast_moments, has_endless, set_aside};
pub(crate) use endless::{Moments, finite_only};
pub use input::{StatementClock, is_read, read_scalar, read_texts};
pub use interval::{IntervalField, IntervalFields, interval_length, read_interval};
pub use measured::{measured, measured_rows, measured_type};
pub use rows::{
    WriteRow, interval_parts, is_temporal, temporal_texts, temporal_writer, time_micros,
    timestamp_micros,
};
pub use style::{DateFormat, DateOrder, IntervalFormat, TemporalStyle};
pub(crate) use write::{write_date, write_instant, write_moment};
pub use write_interval::IntervalParts;
pub(crate) use zone::{instant, local_time, zone_named};
pub use zone::{named_zone, posix_zone, zone_ahead};
pub(crate) use zoned_time::ahead_now;
pub use zoned_time::{ZonedTime, ZonedTimeError};

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
pub const EPOCH_DAYS: i64 = 10_957;

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;

/// Microseconds of a day.
pub const DAY: i64 = 86_400 * SECOND;
