//! One sequence of records that survives power cuts: changes of transactions are appended, written
//! and synced, and read again after a stop from the last checkpoint on.
//!
//! A record is opaque bytes. Its [`Position`] is the number of log bytes up to its end; positions grow, and
//! everything before a synced position is synced. Sessions use [`GroupCommit`], whose thread syncs once for
//! all that wait; [`Log`] is the same without a thread, stepped by its caller.
//!
//! # On disk
//!
//! Segments: files of one size, created in full and filled with zeros before they are used; a record that
//! does not fit goes into the next segment. [`segment`] and [`frame`] hold the tables that specify
//! both. The end of the log is not marked: it is where no whole record follows.
//!
//! # Guarantees
//!
//! - A record that was synced is read again, in its place, or recovery refuses with
//!   [`LogError::Corrupt`]: damage below a position that is known to be synced is never cut off. Known are
//!   the position of the checkpoint and those in later frame and segment headers, since each contains the
//!   position up to which the log was synced when it was made. So damage to the last records is noticed
//!   once others follow them.
//! - A record that was not synced is read again as a whole or not at all, and never without all records before it.
//! - A failed write or sync is final: every later call returns the first error.
//! - A full disk is detected before a record is taken, and loses nothing.

mod buffer;
mod error;
mod frame;
mod group_commit;
mod position;
mod reader;
mod recovery;
mod segment;
mod space;
mod tail;
mod writer;

use std::sync::Arc;

use crate::DatabaseId;
use crate::files::Files;
use buffer::{CheckedPayload, LogBuffer, check_size};
use frame::{FrameChecksum, frame_bytes};
use reader::list_segments;
pub(crate) use segment::LOG_DIRECTORY;
use segment::{SEGMENT_HEADER_BYTES, segment_name};
use space::LogSpace;
use writer::LogWriter;

pub use error::LogError;
pub use group_commit::{
    Acknowledgement, GroupCommit, GroupCommitOptions, LogRoom, LogStatistics, LogTicket,
    OpenWriter, RoomRequest,
};
pub use position::Position;
pub use recovery::{LogRecord, Recovery, RecoveryReport, RecoveryStart};

/// The version of the log's format that is written, and the newest that can be read.
pub const FORMAT_VERSION: u32 = 1;
/// The largest payload of a record.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// Default size of a segment, in bytes.
const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
/// Size of the first segment of a log, in bytes: a small database takes little disk space.
pub(crate) const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// The layout of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The database of the log.
    pub database: DatabaseId,
    /// Maximum size of a new segment's file: a multiple of 4,096, at least 8,192. The first ones are smaller, each
    /// twice as large as the one before. Existing segments keep their sizes.
    pub segment_bytes: u64,
}

impl LogOptions {
    /// The default layout.
    pub fn new(database: DatabaseId) -> Self {
        Self { database, segment_bytes: SEGMENT_BYTES_DEFAULT }
    }
}

/// A log that can be written, stepped by its caller: [`append`](Self::append) takes records into memory,
/// [`write`](Self::write) passes them to the file, [`sync`](Self::sync) makes them durable.
#[derive(Debug)]
pub struct Log {
    buffer: LogBuffer,
    writer: LogWriter,
}

impl Log {
    /// A new log. An interrupted creation may have left segments without records, which are removed.
    pub fn create(files: Arc<dyn Files>, options: LogOptions) -> Result<Self, LogError> {
        Self::create_at(files, options, Position::START)
    }

    /// A new log that continues where the one of a checkpoint ended.
    pub(crate) fn create_at(
        files: Arc<dyn Files>,
        options: LogOptions,
        start: Position,
    ) -> Result<Self, LogError> {
        let mut space = LogSpace::empty(Arc::clone(&files), options, start)?;
        files.create_directory(LOG_DIRECTORY)?;
        for first in list_segments(&*files)?.into_iter().rev() {
            remove_empty(&*files, first)?;
        }
        space.make(start.after(1), start)?;
        Ok(Self::at(space, FrameChecksum::for_database(options.database), start))
    }

    /// An existing log, to be read first. The size of segments in the options applies to new ones.
    pub fn recover(
        files: Arc<dyn Files>,
        options: LogOptions,
        start: RecoveryStart,
    ) -> Result<Recovery, LogError> {
        Recovery::open(files, options, start)
    }

    fn at(space: LogSpace, checksum: FrameChecksum, end: Position) -> Self {
        Self { buffer: LogBuffer::new(checksum, end), writer: LogWriter::new(space, end) }
    }

    /// Takes a record into memory; returns the position up to which the log must be synced for it. Returns
    /// [`LogError::NoSpace`] while the disk is full.
    pub fn append(&mut self, payload: &[u8]) -> Result<Position, LogError> {
        check_size(payload.len())?;
        self.writer.reserve(self.end().after(frame_bytes(payload.len())))?;
        let payload = CheckedPayload::new(payload, self.buffer.checksum())?;
        Ok(self.buffer.append(payload, self.writer.synced()))
    }

    /// Writes all appended records.
    pub fn write(&mut self) -> Result<(), LogError> {
        let batch = self.buffer.take(Vec::new());
        self.writer.write(&batch)
    }

    /// Waits until all written records are on disk; returns the position up to which the log is.
    pub fn sync(&mut self) -> Result<Position, LogError> {
        self.writer.sync()
    }

    /// The position after the last appended record.
    pub fn end(&self) -> Position {
        self.buffer.end()
    }

    /// The position up to which the log is on disk.
    pub fn synced(&self) -> Position {
        self.writer.synced()
    }

    /// Removes segments that a checkpoint made unnecessary; see [`truncate_before`].
    pub fn truncate_before(&self, position: Position) -> Result<u64, LogError> {
        truncate_before(&**self.writer.space().files(), position.min(self.synced()))
    }
}

/// Removes segments all of whose records end before a position, oldest first; returns their number. The
/// position must be synced, and a checkpoint from which recovery begins there or later must be on disk.
pub fn truncate_before(files: &dyn Files, position: Position) -> Result<u64, LogError> {
    let segments = list_segments(files)?;
    // Records in the next segment show that it is in use, so it is complete.
    let unused = segments.iter().zip(&segments[1.min(segments.len())..]);
    let unused = unused.take_while(|(_, next)| **next < position);
    let mut removed = 0;
    for (first, _) in unused {
        files.remove(&segment_name(*first))?;
        removed += 1;
    }
    Ok(removed)
}

/// Removes a segment left by an interrupted creation. One with records is an error.
fn remove_empty(files: &dyn Files, first: Position) -> Result<(), LogError> {
    let name = segment_name(first);
    let file = files.open(&name)?;
    let end = file.bytes()?;
    let mut at = SEGMENT_HEADER_BYTES as u64;
    let mut bytes = vec![0; 1 << 20];
    while at < end {
        let piece = &mut bytes[..(end - at).min(1 << 20) as usize];
        file.read_at(at, piece)?;
        if piece.iter().any(|byte| *byte != 0) {
            return Err(LogError::Exists { file: name });
        }
        at += piece.len() as u64;
    }
    Ok(files.remove(&name)?)
}
