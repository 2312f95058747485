//! Chunks as files: written once, read back into memory at their home.
//!
//! A file `chunks/<number in 20 digits>.chunk` is an [envelope](crate::data_file) whose payload is the
//! directory, followed by the body: the buffers of all arrays as they lie in memory, each padded with zeros to a
//! multiple of 64 bytes, so that reading the body is loading the chunk. The directory, in the forms of
//! [`codec`](crate::codec):
//!
//! | What | As |
//! |---|---|
//! | bytes of the body | number |
//! | rows of the chunk | number |
//! | node whose workers scan it | optional number |
//! | where it lies | byte: 0 unbound, 1 on a node, 2 a copy on every node; for 1 the node, a number |
//! | columns, with their stored types | schema |
//! | for each block of 8,192 rows, for each column | encoding, in the first block only; the rows; for a dictionary, in the first block, its values |
//!
//! An encoding is a byte: 0 plain, 1 to 4 narrow (8, 16, 32, 64 bits), 5 and 6 dictionary (codes of 8 or 16
//! bits). An array is the CRC-32 of its part of the body (four bytes), continued from that of the database's
//! id, then its layout: for the values of a dictionary and parts of nested arrays the number of entries, a flag
//! whether it has nulls, the list of the sizes of its buffers without padding, the list of its parts. The body
//! contains the null bits, the buffers, then the parts.
//!
//! Statistics of a chunk (bounds, zones) are not in the file: reading computes them as loading does, so they
//! always match the rows that were read.

mod files;
mod home;
mod layout;
mod read;
mod write;

use crc32fast::Hasher;

use crate::{ChunkFileId, DatabaseId};

pub use files::{ChunkFiles, WrittenChunk};
pub use home::HomeChange;
pub use read::LoadedChunk;

/// The directory of the files.
pub(crate) const CHUNK_DIRECTORY: &str = "chunks";

/// The file's name in the data directory.
pub(crate) fn chunk_file_name(id: ChunkFileId) -> String {
    format!("{CHUNK_DIRECTORY}/{:020}.chunk", id.get())
}

/// The number in a file name of the directory of chunks.
pub(crate) fn chunk_file_id(name: &str) -> Option<ChunkFileId> {
    let digits = name.strip_suffix(".chunk")?;
    let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(ChunkFileId::new)).flatten()
}

/// Starts the checksum of an array's part of the body.
fn checksum(database: DatabaseId) -> Hasher {
    Hasher::new_with_initial(crc32fast::hash(&database.0))
}
