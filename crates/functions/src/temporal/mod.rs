//! Dates, times and intervals as text, as PostgreSQL writes and reads them.
//!
//! | file | what |
//! |---|---|
//! | `digits` | whole numbers as digits |
//! | `endless` | `infinity` and `-infinity`, which no arithmetic may reach |
//! | `write` | one date, time, moment or interval as text |
//! | `rows` | those of an array |
//! | `interval` | texts as intervals |
//! | `measured` | intervals as how long they are |
//! | `moment` | texts as dates, times and moments |
//! | `input` | those of an array |
//! | `zone` | local times and instants |

pub(crate) mod civil;
mod digits;
mod endless;
mod input;
mod interval;
mod measured;
mod moment;
mod rows;
mod write;
mod zone;

pub use civil::{MONTHS, WEEKDAYS};
pub use digits::{write_i64, write_u64};
pub use endless::{Endless, SetAside, call_with_finite, cast_moments, has_endless, set_aside};
pub(crate) use endless::{Moments, finite_only};
pub use input::{StatementClock, is_read, read_scalar, read_texts};
pub use interval::{IntervalField, IntervalFields, interval_length, read_interval};
pub use measured::{measured, measured_rows, measured_type};
pub(crate) use moment::zone_named;
pub use rows::{
    WriteRow, interval_parts, is_temporal, temporal_texts, temporal_writer, time_micros,
    timestamp_micros,
};
pub use write::IntervalParts;
pub(crate) use zone::{instant, local_time};
pub use zone::{named_zone, posix_zone, zone_ahead};

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL begins to count.
pub const EPOCH_DAYS: i64 = 10_957;

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;

/// Microseconds of a day.
pub const DAY: i64 = 86_400 * SECOND;
