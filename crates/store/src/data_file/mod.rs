//! The envelope of all files of a data directory except the log: it identifies a file and
//! reveals any damage.
//!
//! Numbers are little-endian.
//!
//! | Offset | Bytes | What |
//! |---|---|---|
//! | 0 | 8 | what the file is: `ATOLLCHK` (a chunk), `ATOLLTAB` (a table), `ATOLLMAN` (a manifest) |
//! | 8 | 4 | version of the format: 1, or a later one for what 1 cannot hold: tables with serial columns or details of indexes, a manifest with prepared transactions |
//! | 12 | 4 | CRC-32 (IEEE) of the envelope and the padding, with zeros here |
//! | 16 | 16 | id of the database |
//! | 32 | 8 | number of the file; 0 for the manifest |
//! | 40 | 8 | bytes of the payload |
//! | 48 | | payload |
//! | | 0 to 63 | padding: zeros up to a multiple of 64 |
//!
//! Files are written whole, once, under a name that nothing refers to yet, and synced before anything does.
//! They never change.

mod error;

use crate::DatabaseId;
use crate::files::DataFile;

pub use error::DataFileError;

/// The newest version of the files' format that is written and read: that of tables. A file has the lowest one that can
/// hold it.
pub const DATA_FORMAT_VERSION: u32 = 6;

/// The newest version of the manifest's format: 2 has prepared transactions.
pub(crate) const MANIFEST_FORMAT_VERSION: u32 = 2;

/// The version of files that hold nothing newer.
pub(crate) const FIRST_DATA_FORMAT: u32 = 1;

const HEADER_BYTES: usize = 48;
/// Payloads are padded to a multiple of this, so that the data after them is aligned in memory as Arrow expects.
pub(crate) const ALIGNMENT: usize = 64;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFileKind {
    Chunk,
    Table,
    Manifest,
}

/// The envelope of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) kind: DataFileKind,
    pub(crate) database: DatabaseId,
    pub(crate) number: u64,
}

/// An envelope that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) envelope: Envelope,
    /// The version of its format.
    pub(crate) version: u32,
    pub(crate) payload: Vec<u8>,
    /// Its end in the file.
    pub(crate) end: u64,
}

impl DataFileKind {
    /// The newest version of the format of such files.
    fn newest_format(self) -> u32 {
        match self {
            Self::Table => DATA_FORMAT_VERSION,
            Self::Manifest => MANIFEST_FORMAT_VERSION,
            Self::Chunk => FIRST_DATA_FORMAT,
        }
    }

    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Chunk => b"ATOLLCHK",
            Self::Table => b"ATOLLTAB",
            Self::Manifest => b"ATOLLMAN",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Chunk => "a chunk",
            Self::Table => "a table",
            Self::Manifest => "a manifest",
        }
    }
}

impl Envelope {
    /// The bytes of a file in the first version of the format, up to the end of the envelope.
    pub(crate) fn seal(&self, payload: &[u8]) -> Vec<u8> {
        self.seal_as(FIRST_DATA_FORMAT, payload)
    }

    /// The same in another version.
    pub(crate) fn seal_as(&self, version: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity((HEADER_BYTES + payload.len()).next_multiple_of(ALIGNMENT));
        bytes.extend_from_slice(self.kind.magic());
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.database.0);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        let checksum = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the envelope of a file of this kind.
    pub(crate) fn open(file: &dyn DataFile, kind: DataFileKind) -> Result<Opened, DataFileError> {
        let damaged =
            |place: &str, reason: &str| DataFileError::damaged(file.name(), place, reason);
        let file_bytes = file.bytes()?;
        let mut bytes = vec![0; HEADER_BYTES];
        if file_bytes < HEADER_BYTES as u64 {
            return Err(damaged("byte 0", "the file is shorter than its header"));
        }
        file.read_at(0, &mut bytes)?;
        if !bytes.starts_with(kind.magic()) {
            let reason = format!("the file does not begin like {}", kind.noun());
            return Err(damaged("byte 0", &reason));
        }
        let payload = u64_at(&bytes, 40);
        let end = payload.checked_add(HEADER_BYTES as u64);
        let end = end.and_then(|end| end.checked_next_multiple_of(ALIGNMENT as u64));
        let Some(end) = end.filter(|end| *end <= file_bytes) else {
            return Err(damaged("byte 40", "the file is shorter than its header says"));
        };
        bytes.resize(end as usize, 0);
        file.read_at(HEADER_BYTES as u64, &mut bytes[HEADER_BYTES..])?;
        let checksum = u32_at(&bytes, 12);
        bytes[12..16].fill(0);
        if checksum != crc32fast::hash(&bytes) {
            return Err(damaged("byte 12", "the checksum of the header is wrong"));
        }
        let version = u32_at(&bytes, 8);
        match version {
            version if (FIRST_DATA_FORMAT..=kind.newest_format()).contains(&version) => {}
            0 => return Err(damaged("byte 8", "the header has no version")),
            version => {
                return Err(DataFileError::NewerFormat { file: file.name().to_owned(), version });
            }
        }
        let database = DatabaseId(std::array::from_fn(|i| bytes[16 + i]));
        let envelope = Self { kind, database, number: u64_at(&bytes, 32) };
        bytes.drain(..HEADER_BYTES);
        bytes.truncate(payload as usize);
        Ok(Opened { envelope, version, payload: bytes, end })
    }

    /// Reads the envelope of this file; an error when it is another one's.
    pub(crate) fn open_as(&self, file: &dyn DataFile) -> Result<Opened, DataFileError> {
        let opened = Self::open(file, self.kind)?;
        if opened.envelope.database != self.database {
            return Err(DataFileError::Foreign { file: file.name().to_owned() });
        }
        if opened.envelope.number != self.number {
            let reason = "the file's name does not match the number in its header";
            return Err(DataFileError::damaged(file.name(), "byte 32", reason));
        }
        Ok(opened)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::simulated::SimulatedFiles;

    const ENVELOPE: Envelope =
        Envelope { kind: DataFileKind::Chunk, database: DatabaseId([7; 16]), number: 3 };

    fn open(bytes: &[u8]) -> Result<Opened, DataFileError> {
        let file = SimulatedFiles::new().create("f", 0)?;
        file.write_at(0, bytes)?;
        ENVELOPE.open_as(&*file)
    }

    #[test]
    fn a_payload_is_read_as_it_was_written_and_every_flipped_bit_is_noticed() {
        for payload in [&b""[..], b"payload", &[9; 100]] {
            let bytes = ENVELOPE.seal(payload);
            let opened = open(&bytes).unwrap();
            assert_eq!((opened.payload.as_slice(), opened.end), (payload, bytes.len() as u64));
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let error = open(&flipped).unwrap_err();
                assert!(matches!(error, DataFileError::Damaged { .. }), "bit {bit}: {error}");
            }
            for length in 0..bytes.len() {
                assert!(matches!(open(&bytes[..length]), Err(DataFileError::Damaged { .. })));
            }
        }
    }

    #[test]
    fn a_newer_version_and_another_database_are_distinguished_from_damage() {
        let mut bytes = ENVELOPE.seal(b"payload");
        bytes[8] = 3;
        bytes[12..16].fill(0);
        let checksum = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        let error = open(&bytes).unwrap_err();
        assert!(matches!(error, DataFileError::NewerFormat { version: 3, .. }), "{error}");
        let other = Envelope { database: DatabaseId([8; 16]), ..ENVELOPE }.seal(b"payload");
        assert!(matches!(open(&other), Err(DataFileError::Foreign { .. })));
        let other = Envelope { number: 4, ..ENVELOPE }.seal(b"payload");
        assert!(matches!(open(&other), Err(DataFileError::Damaged { .. })));
    }
}
