//! Reading a log after the process or the machine stopped, and opening it for writing.
//!
//! Records are read forward from the position of the checkpoint. At the first incomplete record, the bytes
//! after it decide ([`LogTail`]): damage below a synced position is an error, anything else is
//! the rest of an interrupted write and is cut off.
//!
//! [`Recovery::finish`] then prepares the end of the log for writing:
//!
//! 1. Segments after the last one with records are removed, newest first, unless they are complete and
//!    zeroed.
//! 2. The rest of the last segment is overwritten with zeros, so that no frame of the interrupted
//!    write can be mistaken for one of a later write.
//! 3. Records that may not be synced are written once more and synced: after a failed sync,
//!    the kernel returns them although the disk does not have them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame::{
    ENDS_IN_HEADER, ENDS_IN_RECORD, FRAME_ALIGNMENT, FRAME_HEADER_BYTES, FrameChecksum,
    FrameHeader, frame_bytes,
};
use super::reader::{FoundSegment, LogReader};
use super::segment::{LogSegment, segment_name};
use super::space::LogSpace;
use super::tail::LogTail;
use super::{Log, LogError, LogOptions, Position};
use crate::files::Files;

/// Bytes zeroed or rewritten at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Where recovery begins, according to the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStart {
    /// The position after the last record that the checkpoint contains: the first record to be read
    /// begins there.
    pub from: Position,
    /// A position up to which the log is known to be synced; at least `from`.
    pub synced: Position,
}

/// A record as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The position after it, which [`Log::append`] returned when it was appended.
    pub position: Position,
    /// The payload.
    pub payload: &'a [u8],
}

/// The result of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Number of records read.
    pub records: u64,
    /// Where the log continues.
    pub end: Position,
    /// Bytes after the end that were written but never acknowledged, and are cut off.
    pub bytes_cut: u64,
}

/// A log that is being read, from the checkpoint to its end.
#[derive(Debug)]
pub struct Recovery {
    files: Arc<dyn Files>,
    options: LogOptions,
    checksum: FrameChecksum,
    reader: LogReader,
    /// Position of the next record.
    position: Position,
    /// Position up to which the log is known to be synced.
    synced: Position,
    records: u64,
    tail: Option<LogTail>,
}

impl Recovery {
    pub(super) fn open(
        files: Arc<dyn Files>,
        options: LogOptions,
        start: RecoveryStart,
    ) -> Result<Self, LogError> {
        let reader = LogReader::open(&*files, options.database, start.from)?;
        let recovery = Self {
            files,
            options,
            checksum: FrameChecksum::for_database(options.database),
            reader,
            position: start.from,
            synced: start.synced.max(start.from),
            records: 0,
            tail: None,
        };
        recovery.check_segments()?;
        Ok(recovery)
    }

    /// Refuses a log without the position to be read, or with a missing segment: each
    /// is created when the one before is complete, and the oldest is removed first.
    fn check_segments(&self) -> Result<(), LogError> {
        let segments = self.reader.segments();
        match segments.first() {
            Some(first) if first.first <= self.position => {
                first.header.map_err(|reason| self.corrupt(reason))?;
            }
            _ => return Err(self.corrupt("no segment of the log holds this position")),
        }
        let ends = segments.iter().map(|segment| segment.range().end);
        if let Some((end, _)) =
            ends.clone().zip(&segments[1..]).find(|(end, next)| *end != next.first.0)
        {
            return Err(self.corrupt_at(Position(end), "the segment is missing"));
        }
        if ends.max().is_some_and(|end| end < self.position.0) {
            return Err(self.corrupt("the log ends before this position"));
        }
        match self.position.0.is_multiple_of(FRAME_ALIGNMENT) {
            true => Ok(()),
            false => Err(self.corrupt("no record can begin at this position")),
        }
    }

    fn corrupt(&self, reason: &str) -> LogError {
        self.corrupt_at(self.position, reason)
    }

    fn corrupt_at(&self, position: Position, reason: &str) -> LogError {
        let segment = self.reader.segment_at(position.0);
        let file = segment.map_or(segment_name(position), |found| found.file.name().into());
        LogError::Corrupt { file, position, reason: reason.to_owned(), synced: self.synced }
    }

    /// The next record. Returns None after the last one, and an error if the log is damaged below a
    /// synced position.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>, LogError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let start = self.position;
        let header = match self.read_frame()? {
            Ok(header) => header,
            Err(reason) => {
                self.end(reason)?;
                return Ok(None);
            }
        };
        self.position = start.after(frame_bytes(header.payload_bytes));
        self.synced = self.synced.max(header.synced);
        self.records += 1;
        let frame = self.reader.bytes(start, FRAME_HEADER_BYTES + header.payload_bytes)?;
        let payload = &frame[FRAME_HEADER_BYTES..];
        Ok(Some(LogRecord { position: self.position, payload }))
    }

    /// The header of a complete frame at the position, or why there is none.
    fn read_frame(&mut self) -> Result<Result<FrameHeader, &'static str>, LogError> {
        let (position, checksum) = (self.position, self.checksum);
        let bytes = self.reader.bytes(position, FRAME_HEADER_BYTES)?;
        let header = match FrameHeader::decode(bytes, checksum, position) {
            Ok(header) if header.synced > position => {
                return Ok(Err("the record claims that it was synced before it was made"));
            }
            Ok(header) => header,
            Err(reason) => return Ok(Err(reason)),
        };
        let frame = self.reader.bytes(position, frame_bytes(header.payload_bytes) as usize)?;
        Ok(header.check_payload(frame, checksum).map(|()| header))
    }

    /// Decides whether the position is the end of the log.
    fn end(&mut self, reason: &str) -> Result<(), LogError> {
        let tail = LogTail::read(&self.reader, self.position, self.checksum)?;
        self.synced = self.synced.max(tail.synced);
        if self.synced > self.position {
            let segment = self.reader.segment_at(self.position.0);
            let header = segment.map_or(Ok(()), |segment| segment.header.map(drop));
            // A record that begins in a segment may go on in the next one.
            let is_cut = [ENDS_IN_HEADER, ENDS_IN_RECORD].contains(&reason);
            let next = self.reader.segments().iter().find(|next| next.first > self.position);
            return Err(match (header, next.filter(|_| is_cut)) {
                (Err(header), _) => self.corrupt(header),
                (Ok(()), Some(FoundSegment { first, header: Err(header), .. })) => {
                    self.corrupt_at(*first, header)
                }
                (Ok(()), _) => self.corrupt(reason),
            });
        }
        self.tail = Some(tail);
        Ok(())
    }

    /// Opens the log for writing after its last record; unread records are skipped.
    pub fn finish(mut self) -> Result<(Log, RecoveryReport), LogError> {
        while self.next_record()?.is_some() {}
        let tail_end = self.tail.as_ref().map_or(self.position, |tail| tail.end);
        let report = RecoveryReport {
            records: self.records,
            end: self.position,
            bytes_cut: tail_end.0 - self.position.0,
        };
        let end = self.position;
        let mut segments = self.reader.into_segments();
        let is_current = |segment: &FoundSegment| segment.header.is_ok() && segment.first <= end;
        let current = segments.iter().rposition(is_current).unwrap_or(0);
        remove_used(&*self.files, &mut segments, current, tail_end)?;
        zero_from(&segments[current], end, tail_end)?;
        for segment in &segments[..=current] {
            write_again(segment, self.synced.0..end.0)?;
        }
        // Segments before the one being written are no longer needed.
        let kept: VecDeque<LogSegment> = segments.drain(current..).map(as_segment).collect();
        let space = LogSpace::new(self.files, self.options, kept)?;
        Ok((Log::at(space, self.checksum, end), report))
    }
}

/// Removes segments after the current one, newest first, from the first unusable one on.
fn remove_used(
    files: &dyn Files,
    segments: &mut Vec<FoundSegment>,
    current: usize,
    tail_end: Position,
) -> Result<(), LogError> {
    let is_clean = |segment: &FoundSegment| {
        segment.header.is_ok() && segment.is_whole() && tail_end <= segment.first
    };
    let clean = segments[current + 1..].iter().take_while(|segment| is_clean(segment)).count();
    while segments.len() > current + 1 + clean {
        if let Some(segment) = segments.pop() {
            files.remove(segment.file.name())?;
        }
    }
    Ok(())
}

/// Zeroes the bytes of a segment after the end of the log.
fn zero_from(segment: &FoundSegment, end: Position, tail_end: Position) -> Result<(), LogError> {
    let range = segment.range();
    let dirty_end = if segment.is_whole() { tail_end.0.min(range.end) } else { range.end };
    let out = as_segment_ref(segment);
    let zeros = vec![0; PIECE_BYTES as usize];
    let mut at = end.0;
    while at < dirty_end {
        let piece = (dirty_end - at).min(PIECE_BYTES);
        out.write(at, &zeros[..piece as usize])?;
        at += piece;
    }
    segment.file.sync_data()?;
    Ok(())
}

/// Rewrites the bytes of a segment within a range, and syncs them.
fn write_again(segment: &FoundSegment, range: std::ops::Range<u64>) -> Result<(), LogError> {
    let end = segment.range().end.min(range.end);
    let mut at = segment.range().start.max(range.start);
    if at >= end {
        return Ok(());
    }
    let out = as_segment_ref(segment);
    while at < end {
        let piece = (end - at).min(PIECE_BYTES);
        let mut bytes = Vec::new();
        segment.read(at, piece as usize, &mut bytes)?;
        out.write(at, &bytes)?;
        at += piece;
    }
    segment.file.sync_data()?;
    Ok(())
}

fn as_segment_ref(segment: &FoundSegment) -> LogSegment {
    LogSegment { file: Arc::clone(&segment.file), range: segment.range() }
}

fn as_segment(segment: FoundSegment) -> LogSegment {
    as_segment_ref(&segment)
}
