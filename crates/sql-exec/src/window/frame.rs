//! The frames of rows: the range of rows over which a function is computed.

use std::ops::Range;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::rows::{OrderedRows, RowKeys};

const DAY_NANOS: i128 = 86_400_000_000_000;

/// An end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameEnd {
    Unbounded,
    /// These many rows or groups after the current one, or before.
    Ahead(i64),
    /// Rows whose key is at most this much after that of the current row in the order, or before.
    Distance(i128),
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    counts_groups: bool,
    start: FrameEnd,
    end: FrameEnd,
}

/// The frames of all rows.
pub(super) struct Frames {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

impl Frames {
    #[inline]
    pub(super) fn of(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.ends[row] as usize
    }

    fn push(&mut self, frame: Range<usize>) {
        self.starts.push(frame.start as u32);
        self.ends.push(frame.end as u32);
    }
}

impl Frame {
    /// The frame over rows in the order of a key of this type, if it is the only one. `None` if an end depends on its
    /// values in a way that is unknown here.
    pub(super) fn new(frame: &WindowFrame, key: Option<&DataType>) -> Option<Self> {
        let key = (frame.units == WindowFrameUnits::Range).then_some(key);
        let start = frame_end(&frame.start_bound, key)?;
        let end = frame_end(&frame.end_bound, key)?;
        Some(Self { counts_groups: frame.units != WindowFrameUnits::Rows, start, end })
    }

    /// Whether an end depends on the values of the key.
    pub(super) fn reads_keys(&self) -> bool {
        [self.start, self.end].iter().any(|end| matches!(end, FrameEnd::Distance(_)))
    }

    /// The frames of rows with these keys; without keys, of a frame that does not read any.
    pub(super) fn frames(&self, ordered: &OrderedRows, keys: Option<&RowKeys>) -> Frames {
        let rows = ordered.len();
        let mut frames =
            Frames { starts: Vec::with_capacity(rows), ends: Vec::with_capacity(rows) };
        for partition in ordered.partitions() {
            match (keys, self.counts_groups) {
                (Some(keys), _) => self.by_distance(&ordered.peers, partition, keys, &mut frames),
                (None, true) => self.by_group(&ordered.peers, partition, &mut frames),
                (None, false) => self.by_row(&partition, &mut frames),
            }
        }
        frames
    }

    fn by_row(&self, partition: &Range<usize>, frames: &mut Frames) {
        let (first, end) = (partition.start as i64, partition.end as i64);
        for row in first..end {
            let from = match self.start {
                FrameEnd::Ahead(rows) => row.saturating_add(rows).clamp(first, end),
                _ => first,
            };
            let to = match self.end {
                FrameEnd::Ahead(rows) => {
                    row.saturating_add(rows).saturating_add(1).clamp(from, end)
                }
                _ => end,
            };
            frames.push(from as usize..to as usize);
        }
    }

    fn by_group(&self, peers: &[bool], partition: Range<usize>, frames: &mut Frames) {
        let bounds = group_bounds(peers, &partition);
        let groups = bounds.len() as i64 - 1;
        for group in 0..groups {
            let from = match self.start {
                FrameEnd::Ahead(ahead) => group.saturating_add(ahead).clamp(0, groups),
                _ => 0,
            };
            let to = match self.end {
                FrameEnd::Ahead(ahead) => {
                    group.saturating_add(ahead).saturating_add(1).clamp(from, groups)
                }
                _ => groups,
            };
            for _ in bounds[group as usize]..bounds[group as usize + 1] {
                frames.push(bounds[from as usize]..bounds[to as usize]);
            }
        }
    }

    /// Both ends only move forwards from one row to the next. Rows without a key are near each other only.
    fn by_distance(
        &self,
        peers: &[bool],
        partition: Range<usize>,
        keys: &RowKeys,
        frames: &mut Frames,
    ) {
        let known = keys.known(partition.clone());
        let (mut from, mut to) = (known.start, known.start);
        for group in group_bounds(peers, &partition).windows(2) {
            let group = group[0]..group[1];
            let is_known = known.contains(&group.start);
            let start = match self.start {
                FrameEnd::Unbounded => partition.start,
                FrameEnd::Distance(ahead) if is_known => {
                    let least = keys.values[group.start].saturating_add(ahead);
                    while from < known.end && keys.values[from] < least {
                        from += 1;
                    }
                    from
                }
                _ => group.start,
            };
            let end = match self.end {
                FrameEnd::Unbounded => partition.end,
                FrameEnd::Distance(ahead) if is_known => {
                    let most = keys.values[group.start].saturating_add(ahead);
                    while to < known.end && keys.values[to] <= most {
                        to += 1;
                    }
                    to
                }
                _ => group.end,
            };
            for _ in group {
                frames.push(start..end.max(start));
            }
        }
    }
}

/// The first rows of the groups of peers in a partition, and its end.
fn group_bounds(peers: &[bool], partition: &Range<usize>) -> Vec<usize> {
    let starts = partition.clone().filter(|row| *row == partition.start || !peers[*row]);
    starts.chain([partition.end]).collect()
}

/// An end of a frame of rows or groups, or of values of a key.
fn frame_end(bound: &WindowFrameBound, key: Option<Option<&DataType>>) -> Option<FrameEnd> {
    let (distance, sign) = match bound {
        WindowFrameBound::CurrentRow => return Some(FrameEnd::Ahead(0)),
        WindowFrameBound::Preceding(distance) => (distance, -1),
        WindowFrameBound::Following(distance) => (distance, 1),
    };
    if distance.is_null() {
        return Some(FrameEnd::Unbounded);
    }
    match (key, distance) {
        (Some(key), distance) => {
            Some(FrameEnd::Distance(i128::from(sign) * key_distance(distance, key?)?))
        }
        (None, ScalarValue::UInt64(Some(distance))) => {
            Some(FrameEnd::Ahead(sign * i64::try_from(*distance).unwrap_or(i64::MAX)))
        }
        _ => None,
    }
}

/// A distance as a whole number in the unit of the key.
fn key_distance(distance: &ScalarValue, key: &DataType) -> Option<i128> {
    match (distance, key) {
        (ScalarValue::IntervalMonthDayNano(Some(interval)), key) => {
            let unit = match key {
                DataType::Date32 => DAY_NANOS,
                // A day is not always as long in a time zone.
                DataType::Timestamp(_, Some(_)) if interval.days != 0 => return None,
                DataType::Timestamp(unit, _) => unit_nanos(*unit),
                _ => return None,
            };
            let IntervalMonthDayNano { months: 0, days, nanoseconds } = interval else {
                return None;
            };
            let nanos = i128::from(*days) * DAY_NANOS + i128::from(*nanoseconds);
            (nanos % unit == 0).then_some(nanos / unit)
        }
        (ScalarValue::Decimal128(Some(distance), _, scale), DataType::Decimal128(_, of)) => {
            (scale == of).then_some(*distance)
        }
        (distance, key) if key.is_integer() && distance.data_type().is_integer() => {
            match distance.cast_to(&DataType::Decimal128(38, 0)).ok()? {
                ScalarValue::Decimal128(distance, ..) => distance,
                _ => None,
            }
        }
        _ => None,
    }
}

fn unit_nanos(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
