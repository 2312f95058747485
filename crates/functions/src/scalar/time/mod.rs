//! Dates, times and intervals.

pub(super) mod buckets;
pub(super) mod clock;
pub(super) mod dates;
pub(super) mod digits;
pub(super) mod extract;
pub(super) mod finite;
pub(super) mod intervals;
pub(super) mod parts;
pub(super) mod spans;
pub(super) mod strftime;
pub(super) mod strptime;
pub(super) mod template;
pub(super) mod zoned_times;
pub(super) mod zones;
