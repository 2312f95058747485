//! Space reserved for the next checkpoint, so that it can finish on a full disk and free the log's space.
//!
//! Files in a directory of their own take the space. They hold no data, and a checkpoint that finds the disk full
//! removes them.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::files::{FileError, Files};

/// The sizes of small files are multiples of this.
const PIECE_BYTES_MIN: u64 = 1 << 20;

/// Directory of the files that reserve space.
pub(crate) const RESERVE_DIRECTORY: &str = "reserve";

/// The space reserved in a directory.
pub(super) struct SpaceReserve {
    files: Arc<dyn Files>,
    /// Maximum size of a new file, in bytes.
    piece_bytes: u64,
    pieces: Mutex<Vec<ReservedPiece>>,
}

struct ReservedPiece {
    number: u64,
    bytes: u64,
}

impl SpaceReserve {
    /// Opens the space reserved in a directory; new files have at most `piece_bytes`.
    pub(super) fn open(files: Arc<dyn Files>, piece_bytes: u64) -> Result<Self, FileError> {
        let mut pieces = Vec::new();
        for name in files.list(RESERVE_DIRECTORY)? {
            let number = name.strip_suffix(".reserve").and_then(|number| number.parse().ok());
            let Some(number) = number else { continue };
            let bytes = files.open(&piece_name(number))?.bytes()?;
            pieces.push(ReservedPiece { number, bytes });
        }
        Ok(Self { files, piece_bytes: piece_bytes.max(1), pieces: Mutex::new(pieces) })
    }

    /// Reserves at least this many bytes, and little more.
    pub(super) fn keep(&self, bytes: u64) -> Result<(), FileError> {
        let mut pieces = self.pieces.lock();
        let kept = |pieces: &[ReservedPiece]| pieces.iter().map(|piece| piece.bytes).sum::<u64>();
        if pieces.is_empty() {
            self.files.create_directory(RESERVE_DIRECTORY)?;
        }
        while kept(&pieces) < bytes {
            let number = pieces.iter().map(|piece| piece.number + 1).max().unwrap_or(0);
            let missing = bytes - kept(&pieces);
            let piece = missing.next_multiple_of(PIECE_BYTES_MIN).min(self.piece_bytes);
            self.files.reserve(&piece_name(number), piece)?;
            pieces.push(ReservedPiece { number, bytes: piece });
        }
        // Do not alternate when the target varies a little.
        while let Some(last) = pieces.last()
            && kept(&pieces) - last.bytes >= bytes + self.piece_bytes
        {
            self.files.remove(&piece_name(last.number))?;
            pieces.pop();
        }
        Ok(())
    }

    /// Frees one file; returns whether there was one.
    pub(super) fn release(&self) -> bool {
        let mut pieces = self.pieces.lock();
        match pieces.pop() {
            Some(piece) => self.files.remove(&piece_name(piece.number)).is_ok(),
            None => false,
        }
    }
}

fn piece_name(number: u64) -> String {
    format!("{RESERVE_DIRECTORY}/{number}.reserve")
}

impl fmt::Debug for SpaceReserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = self.pieces.lock().len();
        f.debug_struct("SpaceReserve").field("pieces", &pieces).finish_non_exhaustive()
    }
}
