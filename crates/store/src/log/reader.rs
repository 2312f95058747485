//! The bytes of an opened log: all its segments as one sequence.

use std::ops::Range;
use std::sync::Arc;

use super::segment::{
    LOG_DIRECTORY, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentHeaderFlaw, first_position,
    segment_name,
};
use super::{LogError, Position};
use crate::DatabaseId;
use crate::files::{DataFile, Files};

/// Bytes read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// Reads the log forward, in windows.
#[derive(Debug)]
pub(super) struct LogReader {
    segments: Vec<FoundSegment>,
    window: Vec<u8>,
    window_start: u64,
}

/// A segment as found.
#[derive(Debug)]
pub(super) struct FoundSegment {
    pub(super) file: Arc<dyn DataFile>,
    pub(super) first: Position,
    /// The header, or what is wrong with it.
    pub(super) header: Result<SegmentHeader, &'static str>,
    /// Number of log bytes that its file can hold.
    range: Range<u64>,
    /// Number of log bytes that the file has.
    length: u64,
}

impl FoundSegment {
    fn open(files: &dyn Files, first: Position, database: DatabaseId) -> Result<Self, LogError> {
        let file = files.open(&segment_name(first))?;
        let file_bytes = file.bytes()?;
        let header = read_header(&*file, file_bytes, first, database)?;
        let full = header.map_or(file_bytes, |header| header.file_bytes);
        let capacity = |bytes: u64| bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64);
        let range = first.0..first.0.saturating_add(capacity(full));
        Ok(Self { file, first, header, range, length: capacity(file_bytes.min(full)) })
    }

    /// Number of log bytes that its file can hold.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Whether the file is as long as its header says.
    pub(super) fn is_whole(&self) -> bool {
        self.length == self.range.end - self.range.start
    }

    /// Bytes from a position on, up to a number of them; fewer at the end of the file.
    pub(super) fn read(
        &self,
        position: u64,
        bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), LogError> {
        let end = (self.first.0 + self.length).min(position + bytes as u64);
        if position < end {
            let start = into.len();
            into.resize(start + (end - position) as usize, 0);
            let offset = SEGMENT_HEADER_BYTES as u64 + position - self.first.0;
            self.file.read_at(offset, &mut into[start..])?;
        }
        Ok(())
    }
}

fn read_header(
    file: &dyn DataFile,
    file_bytes: u64,
    first: Position,
    database: DatabaseId,
) -> Result<Result<SegmentHeader, &'static str>, LogError> {
    if file_bytes < SEGMENT_HEADER_BYTES as u64 {
        return Ok(Err("the segment is shorter than its header"));
    }
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut bytes)?;
    let name = || file.name().to_owned();
    match SegmentHeader::decode(&bytes) {
        Err(SegmentHeaderFlaw::Newer(version)) => {
            Err(LogError::NewerFormat { file: name(), version })
        }
        Err(SegmentHeaderFlaw::Damaged(reason)) => Ok(Err(reason)),
        Ok(header) if header.database != database => Err(LogError::Foreign { file: name() }),
        Ok(header) if header.first != first => {
            Ok(Err("the file's name does not match the position in its header"))
        }
        Ok(header) => Ok(Ok(header)),
    }
}

/// First positions of all segments, in order.
pub(super) fn list_segments(files: &dyn Files) -> Result<Vec<Position>, LogError> {
    let names = files.list(LOG_DIRECTORY)?;
    let mut first: Vec<Position> = names.iter().filter_map(|name| first_position(name)).collect();
    first.sort();
    Ok(first)
}

impl LogReader {
    /// Opens the segments that contain or follow a position.
    pub(super) fn open(
        files: &dyn Files,
        database: DatabaseId,
        from: Position,
    ) -> Result<Self, LogError> {
        let first = list_segments(files)?;
        let needed = first.iter().rposition(|first| *first <= from);
        let needed = &first[needed.unwrap_or(0)..];
        let open = |first: &Position| FoundSegment::open(files, *first, database);
        let segments = needed.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { segments, window: Vec::new(), window_start: 0 })
    }

    pub(super) fn segments(&self) -> &[FoundSegment] {
        &self.segments
    }

    pub(super) fn into_segments(self) -> Vec<FoundSegment> {
        self.segments
    }

    /// The segment in which a byte lies.
    pub(super) fn segment_at(&self, position: u64) -> Option<&FoundSegment> {
        self.segments.iter().find(|segment| segment.range.contains(&position))
    }

    /// The bytes from a position on, up to a number of them; fewer if the log ends or cannot be
    /// read further.
    pub(super) fn bytes(&mut self, position: Position, bytes: usize) -> Result<&[u8], LogError> {
        let window = self.window_start..self.window_start + self.window.len() as u64;
        let end = position.0 + bytes as u64;
        if !(window.contains(&position.0) && end <= window.end) {
            self.fill(position.0, bytes.max(WINDOW_BYTES))?;
        }
        let start = (position.0 - self.window_start) as usize;
        let end = (start + bytes).min(self.window.len());
        Ok(&self.window[start..end])
    }

    fn fill(&mut self, position: u64, bytes: usize) -> Result<(), LogError> {
        self.window.clear();
        self.window.shrink_to(WINDOW_BYTES);
        self.window_start = position;
        let mut position = position;
        while self.window.len() < bytes {
            let segment = self.segments.iter().find(|segment| segment.range.contains(&position));
            let Some(segment) = segment.filter(|segment| segment.header.is_ok()) else { break };
            let wanted = bytes - self.window.len();
            let wanted = wanted.min((segment.range.end - position) as usize);
            segment.read(position, wanted, &mut self.window)?;
            position += wanted as u64;
            if self.window_start + self.window.len() as u64 != position {
                break;
            }
        }
        Ok(())
    }
}
