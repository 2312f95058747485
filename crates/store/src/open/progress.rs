//! The progress of opening a data directory.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_topology::Bytes;

/// The progress of opening a data directory: counted by all threads that take part.
#[derive(Debug, Default)]
pub struct OpenProgress {
    chunks: AtomicU64,
    chunks_total: AtomicU64,
    chunk_bytes: AtomicU64,
    records: AtomicU64,
    records_total: AtomicU64,
}

impl OpenProgress {
    /// Sets the number of chunks to be read.
    pub(super) fn expect_chunks(&self, chunks: u64) {
        self.chunks_total.store(chunks, Ordering::Relaxed);
    }

    /// Counts a chunk that was read, or could not be.
    pub(super) fn chunk(&self, bytes: u64) {
        self.chunk_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a record of the log that is to be applied.
    pub(super) fn expect_record(&self) {
        self.records_total.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an applied record of the log.
    pub(super) fn record(&self) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for OpenProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} of {} chunks read ({}), {} of {} commits of the log applied",
            now(&self.chunks),
            now(&self.chunks_total),
            Bytes(now(&self.chunk_bytes)),
            now(&self.records),
            now(&self.records_total)
        )
    }
}
