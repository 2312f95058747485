//! The files of the log, their names and their headers.
//!
//! A segment is a file `log/<first position in 20 digits>.log`: a header of 4,096 bytes, then records,
//! then zeros. Byte `p` of the log lies at `4096 + p - first position`. Numbers are little-endian.
//!
//! | Offset | Bytes | What |
//! |---|---|---|
//! | 0 | 8 | `ATOLLLOG` |
//! | 8 | 4 | version of the format: 1 |
//! | 12 | 4 | CRC-32 (IEEE) of the 4,096 bytes with zeros here |
//! | 16 | 16 | id of the database |
//! | 32 | 8 | first position: bytes of the log before this segment |
//! | 40 | 8 | bytes of the file: a multiple of 4,096 |
//! | 48 | 8 | position up to which the log was synced when the segment was made |
//! | 56 | 4040 | zeros |
//!
//! The header is written once, when everything else is zeros on disk: a segment without one was
//! not finished and has never held a record.

use std::ops::Range;
use std::sync::Arc;

use super::frame::{u32_at, u64_at};
use super::{FORMAT_VERSION, Position};
use crate::DatabaseId;
use crate::files::{DataFile, FileError};

/// The directory of the segments.
pub(crate) const LOG_DIRECTORY: &str = "log";
pub(super) const SEGMENT_HEADER_BYTES: usize = 4096;
pub(super) const SEGMENT_BYTES_MIN: u64 = 8192;
const MAGIC: &[u8; 8] = b"ATOLLLOG";

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) database: DatabaseId,
    pub(super) first: Position,
    pub(super) file_bytes: u64,
    pub(super) synced: Position,
}

/// Why the header of a segment cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentHeaderFlaw {
    Damaged(&'static str),
    Newer(u32),
}

/// A segment that can be written.
#[derive(Clone, Debug)]
pub(super) struct LogSegment {
    pub(super) file: Arc<dyn DataFile>,
    /// The log bytes that it contains.
    pub(super) range: Range<u64>,
}

/// The name of the segment that starts at a position.
pub(super) fn segment_name(first: Position) -> String {
    format!("{LOG_DIRECTORY}/{:020}.log", first.0)
}

/// The first position in a file name of the directory of the log.
pub(super) fn first_position(name: &str) -> Option<Position> {
    let digits = name.strip_suffix(".log")?;
    let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(Position)).flatten()
}

/// Whether this is a valid segment size.
pub(super) fn is_segment_size(bytes: u64) -> bool {
    bytes >= SEGMENT_BYTES_MIN && bytes.is_multiple_of(SEGMENT_HEADER_BYTES as u64)
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        put(16, &self.database.0);
        put(32, &self.first.0.to_le_bytes());
        put(40, &self.file_bytes.to_le_bytes());
        put(48, &self.synced.0.to_le_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, SegmentHeaderFlaw> {
        use SegmentHeaderFlaw::{Damaged, Newer};
        let mut unsigned = *bytes;
        unsigned[12..16].fill(0);
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Damaged("the segment has no header"));
        }
        if !bytes.starts_with(MAGIC) {
            return Err(Damaged("the file does not begin like a log segment"));
        }
        if u32_at(bytes, 12) != crc32fast::hash(&unsigned) {
            return Err(Damaged("the checksum of the segment's header is wrong"));
        }
        match u32_at(bytes, 8) {
            FORMAT_VERSION => {}
            0 => return Err(Damaged("the segment's header has no version")),
            newer => return Err(Newer(newer)),
        }
        let header = Self {
            database: DatabaseId(std::array::from_fn(|i| bytes[16 + i])),
            first: Position(u64_at(bytes, 32)),
            file_bytes: u64_at(bytes, 40),
            synced: Position(u64_at(bytes, 48)),
        };
        match is_segment_size(header.file_bytes) {
            true => Ok(header),
            false => Err(Damaged("the segment's header has an invalid size")),
        }
    }
}

impl LogSegment {
    pub(super) fn new(file: Arc<dyn DataFile>, first: Position, file_bytes: u64) -> Self {
        let end = first.0 + file_bytes - SEGMENT_HEADER_BYTES as u64;
        Self { file, range: first.0..end }
    }

    /// Size of the file, in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.range.end - self.range.start + SEGMENT_HEADER_BYTES as u64
    }

    /// Writes bytes of the log, which must be within the segment.
    pub(super) fn write(&self, position: u64, bytes: &[u8]) -> Result<(), FileError> {
        let offset = SEGMENT_HEADER_BYTES as u64 + position - self.range.start;
        self.file.write_at(offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        database: DatabaseId([7; 16]),
        first: Position(4096),
        file_bytes: 8192,
        synced: Position(4000),
    };

    #[test]
    fn a_header_is_read_as_it_was_written_and_every_flipped_bit_is_noticed() {
        let bytes = HEADER.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(HEADER));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let flaw = SegmentHeader::decode(&flipped);
            assert!(matches!(flaw, Err(SegmentHeaderFlaw::Damaged(_))), "bit {bit}: {flaw:?}");
        }
    }

    #[test]
    fn a_newer_version_is_distinguished_from_damage() {
        let mut bytes = HEADER.encode();
        bytes[8] = 2;
        bytes[12..16].fill(0);
        let checksum = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentHeaderFlaw::Newer(2)));
    }

    #[test]
    fn names_are_first_positions() {
        assert_eq!(segment_name(Position(4096)), "log/00000000000000004096.log");
        assert_eq!(first_position("00000000000000004096.log"), Some(Position(4096)));
        for name in [
            "4096.log",
            "0000000000000000409x.log",
            "00000000000000004096",
            "99999999999999999999.log",
        ] {
            assert_eq!(first_position(name), None, "{name}");
        }
    }
}
