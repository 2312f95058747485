//! Space for records: segments that are created and zeroed before they are needed.
//!
//! The next segment is zeroed twice as fast as the last one fills, in pieces, so that no single
//! write waits for a whole segment, and a full disk is detected when half a segment is left. Each segment is twice as
//! large as the one before, up to the configured size.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::segment::{
    LogSegment, SEGMENT_HEADER_BYTES, SegmentHeader, is_segment_size, segment_name,
};
use super::{FIRST_SEGMENT_BYTES, LogError, LogOptions, Position};
use crate::files::{DataFile, FileError, FileErrorKind, Files};

/// Bytes zeroed and synced at a time.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// The segments from the one being written to the last prepared one, and the one being created.
pub(super) struct LogSpace {
    files: Arc<dyn Files>,
    options: LogOptions,
    segments: VecDeque<LogSegment>,
    growing: Option<GrowingSegment>,
    /// First position of the next segment.
    end: Position,
}

struct GrowingSegment {
    file: Arc<dyn DataFile>,
    file_bytes: u64,
    /// Number of bytes of the file that are zeros on disk.
    zeroed: u64,
}

impl LogSpace {
    pub(super) fn new(
        files: Arc<dyn Files>,
        options: LogOptions,
        segments: VecDeque<LogSegment>,
    ) -> Result<Self, LogError> {
        let end = Position(segments.back().map_or(0, |segment| segment.range.end));
        Ok(Self { segments, ..Self::empty(files, options, end)? })
    }

    /// The space of a log without segments, the first of which starts at a position.
    pub(super) fn empty(
        files: Arc<dyn Files>,
        options: LogOptions,
        start: Position,
    ) -> Result<Self, LogError> {
        if !is_segment_size(options.segment_bytes) {
            return Err(LogError::SegmentSize { bytes: options.segment_bytes });
        }
        Ok(Self { files, options, segments: VecDeque::new(), growing: None, end: start })
    }

    pub(super) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// The position up to which records can be written.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &LogSegment> {
        self.segments.iter()
    }

    /// Drops segments before a position up to which everything is synced.
    pub(super) fn forget_before(&mut self, position: Position) {
        while self.segments.len() > 1 && self.segments[0].range.end <= position.0 {
            self.segments.pop_front();
        }
    }

    /// Makes space for records up to a position.
    pub(super) fn make(&mut self, end: Position, synced: Position) -> Result<(), LogError> {
        while self.end < end {
            self.grow(synced)?;
        }
        Ok(())
    }

    /// Makes space for records up to a position, and the space to be prepared after it.
    pub(super) fn make_ahead(&mut self, end: Position, synced: Position) -> Result<(), LogError> {
        self.make(end, synced)?;
        while self.growing.as_ref().map_or(0, |growing| growing.zeroed) < self.wanted(end) {
            self.grow(synced)?;
        }
        Ok(())
    }

    /// Number of bytes of the next segment to be zeroed when records reach up to a position.
    fn wanted(&self, end: Position) -> u64 {
        let next = self.next_bytes();
        let Some(last) = self.segments.back() else { return next };
        let used = end.0.saturating_sub(last.range.start);
        (2 * used * next.div_ceil(last.file_bytes())).min(next)
    }

    /// Size of the next segment's file, in bytes.
    fn next_bytes(&self) -> u64 {
        let next = self.segments.back().map_or(FIRST_SEGMENT_BYTES, |last| 2 * last.file_bytes());
        next.min(self.options.segment_bytes)
    }

    /// Creates a piece of the next segment.
    fn grow(&mut self, synced: Position) -> Result<(), LogError> {
        let grown = self.try_grow(synced);
        if let Err(LogError::NoSpace(_)) = &grown
            && self.growing.take().is_some()
        {
            // Others need the space more; the next attempt removes the file if this fails.
            let _ = self.files.remove(&segment_name(self.end));
        }
        grown
    }

    fn try_grow(&mut self, synced: Position) -> Result<(), LogError> {
        let Some(growing) = &mut self.growing else {
            let (file, file_bytes) = (self.create_file()?, self.next_bytes());
            self.growing = Some(GrowingSegment { file, file_bytes, zeroed: 0 });
            return Ok(());
        };
        let file_bytes = growing.file_bytes;
        if growing.zeroed < file_bytes {
            let piece = (file_bytes - growing.zeroed).min(ZEROS.len() as u64);
            growing.file.write_at(growing.zeroed, &ZEROS[..piece as usize])?;
            growing.file.sync_data()?;
            growing.zeroed += piece;
        }
        if growing.zeroed == file_bytes {
            let file = Arc::clone(&growing.file);
            let database = self.options.database;
            let header = SegmentHeader { database, first: self.end, file_bytes, synced };
            file.write_at(0, &header.encode())?;
            file.sync_data()?;
            let segment = LogSegment::new(file, self.end, file_bytes);
            self.end = Position(segment.range.end);
            self.segments.push_back(segment);
            self.growing = None;
        }
        Ok(())
    }

    fn create_file(&self) -> Result<Arc<dyn DataFile>, FileError> {
        let name = segment_name(self.end);
        match self.files.create(&name, 0) {
            // Left by an attempt that found the disk full.
            Err(error) if error.kind == FileErrorKind::Exists => {
                self.files.remove(&name)?;
                self.files.create(&name, 0)
            }
            made => made,
        }
    }
}

impl fmt::Debug for LogSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSpace")
            .field("segments", &self.segments)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

const _: () = assert!(ZEROS.len().is_multiple_of(SEGMENT_HEADER_BYTES));
