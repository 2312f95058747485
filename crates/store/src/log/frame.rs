//! A record as it lies in the log.
//!
//! All numbers are little-endian. A frame begins at a position that is a multiple of 8.
//!
//! | Offset | Bytes | What |
//! |---|---|---|
//! | 0 | 8 | position of the frame |
//! | 8 | 8 | position up to which the log was synced when the frame was made |
//! | 16 | 4 | bytes of the payload |
//! | 20 | 4 | checksum of the payload and the padding |
//! | 24 | 4 | checksum of the 24 bytes before |
//! | 28 | | payload |
//! | | 0 to 7 | padding: zeros up to a multiple of 8 |
//!
//! Checksums are CRC-32 (IEEE), continued from the CRC-32 of the database's id, so that no content of
//! a table can look like a frame. The position distinguishes a frame from old bytes of a reused file, and from
//! a copy of it elsewhere.

use crc32fast::Hasher;

use super::{PAYLOAD_BYTES_MAX, Position};
use crate::DatabaseId;

pub(super) const FRAME_HEADER_BYTES: usize = 28;
/// Why a record cannot be read whose bytes end early.
pub(super) const ENDS_IN_HEADER: &str = "the log ends inside of a record's header";
/// The same after its header.
pub(super) const ENDS_IN_RECORD: &str = "the log ends inside of a record";

/// Frames begin at multiples of this.
pub(super) const FRAME_ALIGNMENT: u64 = 8;

/// Computes the checksums of one database's frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameChecksum(u32);

/// The header of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) synced: Position,
    pub(super) payload_bytes: usize,
    payload_checksum: u32,
}

impl FrameChecksum {
    pub(super) fn for_database(database: DatabaseId) -> Self {
        Self(crc32fast::hash(&database.0))
    }

    /// The checksum of a payload and its padding.
    pub(super) fn payload(self, payload: &[u8]) -> u32 {
        let padding = frame_bytes(payload.len()) as usize - FRAME_HEADER_BYTES - payload.len();
        let mut hasher = Hasher::new_with_initial(self.0);
        hasher.update(payload);
        hasher.update(&[0; FRAME_ALIGNMENT as usize][..padding]);
        hasher.finalize()
    }

    fn bytes(self, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(self.0);
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// Size of a record in the log, in bytes.
pub(super) fn frame_bytes(payload: usize) -> u64 {
    (FRAME_HEADER_BYTES as u64 + payload as u64).next_multiple_of(FRAME_ALIGNMENT)
}

/// Appends a frame to bytes of the log; `payload_checksum` is the result of [`FrameChecksum::payload`].
pub(super) fn put_frame(
    bytes: &mut Vec<u8>,
    checksum: FrameChecksum,
    (position, synced): (Position, Position),
    (payload, payload_checksum): (&[u8], u32),
) {
    let start = bytes.len();
    bytes.reserve(frame_bytes(payload.len()) as usize);
    bytes.extend_from_slice(&position.0.to_le_bytes());
    bytes.extend_from_slice(&synced.0.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&payload_checksum.to_le_bytes());
    let header_checksum = checksum.bytes(&bytes[start..]);
    bytes.extend_from_slice(&header_checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(start + frame_bytes(payload.len()) as usize, 0);
}

impl FrameHeader {
    /// The header at a position, or what is wrong with the bytes there.
    pub(super) fn decode(
        bytes: &[u8],
        checksum: FrameChecksum,
        position: Position,
    ) -> Result<Self, &'static str> {
        let Some(bytes) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Err(ENDS_IN_HEADER);
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Err("no record was written here");
        }
        if u32_at(bytes, 24) != checksum.bytes(&bytes[..24]) {
            return Err("the checksum of a record's header is wrong");
        }
        if u64_at(bytes, 0) != position.0 {
            return Err("the record was written at another position");
        }
        let payload_bytes = u32_at(bytes, 16) as usize;
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err("the record is larger than the limit");
        }
        let synced = Position(u64_at(bytes, 8));
        Ok(Self { synced, payload_bytes, payload_checksum: u32_at(bytes, 20) })
    }

    /// Checks the bytes of the frame, which begin with the header and may be fewer. Returns what is wrong.
    pub(super) fn check_payload(
        &self,
        frame: &[u8],
        checksum: FrameChecksum,
    ) -> Result<(), &'static str> {
        if (frame.len() as u64) < frame_bytes(self.payload_bytes) {
            return Err(ENDS_IN_RECORD);
        }
        match checksum.bytes(&frame[FRAME_HEADER_BYTES..]) == self.payload_checksum {
            true => Ok(()),
            false => Err("the checksum of a record is wrong"),
        }
    }
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKSUM: FrameChecksum = FrameChecksum(7);

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let positions = (Position(64), Position(32));
        put_frame(&mut bytes, CHECKSUM, positions, (payload, CHECKSUM.payload(payload)));
        bytes
    }

    fn check(bytes: &[u8]) -> Result<FrameHeader, &'static str> {
        let header = FrameHeader::decode(bytes, CHECKSUM, Position(64))?;
        header.check_payload(bytes, CHECKSUM)?;
        Ok(header)
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for payload in [&b""[..], b"a", b"four", b"twelve bytes", &[0; 100]] {
            let bytes = frame(payload);
            assert_eq!(bytes.len() as u64, frame_bytes(payload.len()));
            let header = check(&bytes).unwrap();
            assert_eq!((header.synced, header.payload_bytes), (Position(32), payload.len()));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = frame(b"a payload of some bytes");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn misplaced_foreign_and_cut_frames_are_distinguished() {
        let bytes = frame(b"payload");
        let elsewhere = FrameHeader::decode(&bytes, CHECKSUM, Position(72));
        assert_eq!(elsewhere, Err("the record was written at another position"));
        assert!(FrameHeader::decode(&bytes, FrameChecksum(8), Position(64)).is_err());
        assert_eq!(check(&bytes[..20]), Err(ENDS_IN_HEADER));
        assert_eq!(check(&bytes[..30]), Err(ENDS_IN_RECORD));
        assert_eq!(check(&[0; 64]), Err("no record was written here"));
    }
}
