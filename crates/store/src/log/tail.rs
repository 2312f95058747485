//! The bytes after the last readable record: the rest of a write that a power cut interrupted,
//! or acknowledged records that cannot be reached any more.
//!
//! Every frame and every segment header states up to where the log was synced when it was made. A claim
//! beyond the end of the readable records means damage; without one, the bytes were never acknowledged.

use super::frame::{FRAME_ALIGNMENT, FRAME_HEADER_BYTES, FrameChecksum, FrameHeader, u64_at};
use super::reader::{FoundSegment, LogReader};
use super::{LogError, Position};

/// Bytes examined at a time.
const PIECE_BYTES: usize = 1 << 20;
static ZEROS: [u8; 4096] = [0; 4096];

/// The bytes after a position.
#[derive(Debug)]
pub(super) struct LogTail {
    /// The largest position that a header there claims to be synced.
    pub(super) synced: Position,
    /// Position after the last nonzero byte; the position itself if all are zero.
    pub(super) end: Position,
}

impl LogTail {
    /// Examines the bytes after a position.
    pub(super) fn read(
        reader: &LogReader,
        position: Position,
        checksum: FrameChecksum,
    ) -> Result<Self, LogError> {
        let mut tail = Self { synced: Position::START, end: position };
        // Bytes of the log without gaps, up to the end of the current piece.
        let mut bytes = Vec::new();
        let mut start = position.0;
        for segment in reader.segments().iter().filter(|segment| segment.range().end > position.0) {
            tail.claim(segment, position);
            let range = segment.range();
            let mut at = position.0.max(range.start);
            while at < range.end {
                if start + bytes.len() as u64 != at {
                    (start, bytes) = (at, Vec::new());
                }
                let before = bytes.len();
                segment.read(at, PIECE_BYTES, &mut bytes)?;
                if bytes.len() == before {
                    break;
                }
                tail.note_end(at, &bytes[before..]);
                at += (bytes.len() - before) as u64;
                start += tail.search(start, &mut bytes, checksum);
            }
        }
        Ok(tail)
    }

    fn claim(&mut self, segment: &FoundSegment, position: Position) {
        if let Ok(header) = &segment.header
            && segment.first > position
        {
            self.synced = self.synced.max(header.synced);
        }
    }

    fn note_end(&mut self, at: u64, bytes: &[u8]) {
        // Most of a log's space is zeros: whole blocks of them are skipped quickly.
        let zeros = bytes.rchunks(ZEROS.len()).take_while(|block| **block == ZEROS[..block.len()]);
        let rest = bytes.len() - zeros.map(<[u8]>::len).sum::<usize>();
        if let Some(last) = bytes[..rest].iter().rposition(|byte| *byte != 0) {
            self.end = Position(at + last as u64 + 1);
        }
    }

    /// Looks for frames that begin in the bytes, and removes those bytes at which none can begin any
    /// more; returns their number.
    fn search(&mut self, start: u64, bytes: &mut Vec<u8>, checksum: FrameChecksum) -> u64 {
        let mut at = (start.next_multiple_of(FRAME_ALIGNMENT) - start) as usize;
        while at + FRAME_HEADER_BYTES <= bytes.len() {
            let position = start + at as u64;
            if u64_at(bytes, at) == position
                && let Ok(frame) = FrameHeader::decode(&bytes[at..], checksum, Position(position))
            {
                self.synced = self.synced.max(frame.synced);
            }
            at += FRAME_ALIGNMENT as usize;
        }
        let done = at.min(bytes.len());
        bytes.drain(..done);
        done as u64
    }
}
