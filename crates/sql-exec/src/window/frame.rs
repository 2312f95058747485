//! The frames of rows: the range of rows over which a function is computed.

use std::ops::Range;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::rows::OrderedRows;

/// An end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameEnd {
    Unbounded,
    /// These many rows or groups after the current one, or before.
    Ahead(i64),
}

/// A frame whose ends do not depend on values.
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
}

impl Frame {
    /// `None` if an end depends on values.
    pub(super) fn new(frame: &WindowFrame) -> Option<Self> {
        let by_value = frame.units == WindowFrameUnits::Range;
        let start = frame_end(&frame.start_bound, by_value)?;
        let end = frame_end(&frame.end_bound, by_value)?;
        Some(Self { counts_groups: frame.units != WindowFrameUnits::Rows, start, end })
    }

    pub(super) fn frames(&self, ordered: &OrderedRows) -> Frames {
        let rows = ordered.len();
        let mut frames =
            Frames { starts: Vec::with_capacity(rows), ends: Vec::with_capacity(rows) };
        for partition in ordered.partitions() {
            match self.counts_groups {
                true => self.by_group(&ordered.peers, partition, &mut frames),
                false => self.by_row(&partition, &mut frames),
            }
        }
        frames
    }

    fn by_row(&self, partition: &Range<usize>, frames: &mut Frames) {
        let (first, end) = (partition.start as i64, partition.end as i64);
        for row in first..end {
            let from = match self.start {
                FrameEnd::Unbounded => first,
                FrameEnd::Ahead(rows) => row.saturating_add(rows).clamp(first, end),
            };
            let to = match self.end {
                FrameEnd::Unbounded => end,
                FrameEnd::Ahead(rows) => {
                    row.saturating_add(rows).saturating_add(1).clamp(from, end)
                }
            };
            frames.starts.push(from as u32);
            frames.ends.push(to as u32);
        }
    }

    fn by_group(&self, peers: &[bool], partition: Range<usize>, frames: &mut Frames) {
        let starts = partition.clone().filter(|row| *row == partition.start || !peers[*row]);
        let mut bounds: Vec<usize> = starts.collect();
        let groups = bounds.len() as i64;
        bounds.push(partition.end);
        for group in 0..groups {
            let from = match self.start {
                FrameEnd::Unbounded => 0,
                FrameEnd::Ahead(ahead) => group.saturating_add(ahead).clamp(0, groups),
            };
            let to = match self.end {
                FrameEnd::Unbounded => groups,
                FrameEnd::Ahead(ahead) => {
                    group.saturating_add(ahead).saturating_add(1).clamp(from, groups)
                }
            };
            let (from, to) = (bounds[from as usize] as u32, bounds[to as usize] as u32);
            for _ in bounds[group as usize]..bounds[group as usize + 1] {
                frames.starts.push(from);
                frames.ends.push(to);
            }
        }
    }
}

fn frame_end(bound: &WindowFrameBound, by_value: bool) -> Option<FrameEnd> {
    let (distance, sign) = match bound {
        WindowFrameBound::CurrentRow => return Some(FrameEnd::Ahead(0)),
        WindowFrameBound::Preceding(distance) => (distance, -1),
        WindowFrameBound::Following(distance) => (distance, 1),
    };
    match distance {
        distance if distance.is_null() => Some(FrameEnd::Unbounded),
        ScalarValue::UInt64(Some(distance)) if !by_value => {
            Some(FrameEnd::Ahead(sign * i64::try_from(*distance).unwrap_or(i64::MAX)))
        }
        _ => None,
    }
}
