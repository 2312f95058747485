//! Records waiting to be written.

use std::mem;

use super::frame::{FrameChecksum, put_frame};
use super::{LogError, PAYLOAD_BYTES_MAX, Position};

/// Records that are framed but not yet written, only in memory.
#[derive(Debug)]
pub(super) struct LogBuffer {
    checksum: FrameChecksum,
    batch: LogBatch,
}

/// Records that are written together.
#[derive(Debug, Default)]
pub(super) struct LogBatch {
    pub(super) start: Position,
    pub(super) bytes: Vec<u8>,
    pub(super) records: u64,
}

/// A payload with its checksum, which is computed outside of locks because it takes time.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPayload<'a> {
    bytes: &'a [u8],
    checksum: u32,
}

impl<'a> CheckedPayload<'a> {
    pub(super) fn new(bytes: &'a [u8], checksum: FrameChecksum) -> Result<Self, LogError> {
        check_size(bytes.len())?;
        Ok(Self { bytes, checksum: checksum.payload(bytes) })
    }
}

/// Refuses payloads that are too large for a record.
pub(super) fn check_size(payload: usize) -> Result<(), LogError> {
    match payload <= PAYLOAD_BYTES_MAX {
        true => Ok(()),
        false => Err(LogError::TooLarge { bytes: payload as u64 }),
    }
}

impl LogBatch {
    pub(super) fn end(&self) -> Position {
        self.start.after(self.bytes.len() as u64)
    }
}

impl LogBuffer {
    pub(super) fn new(checksum: FrameChecksum, start: Position) -> Self {
        Self { checksum, batch: LogBatch { start, ..LogBatch::default() } }
    }

    pub(super) fn checksum(&self) -> FrameChecksum {
        self.checksum
    }

    /// Position of the first record: all before it were taken.
    pub(super) fn start(&self) -> Position {
        self.batch.start
    }

    /// The position after the last record.
    pub(super) fn end(&self) -> Position {
        self.batch.end()
    }

    pub(super) fn bytes(&self) -> usize {
        self.batch.bytes.len()
    }

    /// Adds a record; returns its position.
    pub(super) fn append(&mut self, payload: CheckedPayload<'_>, synced: Position) -> Position {
        let positions = (self.end(), synced);
        let payload = (payload.bytes, payload.checksum);
        put_frame(&mut self.batch.bytes, self.checksum, positions, payload);
        self.batch.records += 1;
        self.end()
    }

    /// Takes all records. `bytes` is the buffer of an earlier batch to reuse.
    pub(super) fn take(&mut self, mut bytes: Vec<u8>) -> LogBatch {
        bytes.clear();
        let next = LogBatch { start: self.end(), bytes, records: 0 };
        mem::replace(&mut self.batch, next)
    }
}
