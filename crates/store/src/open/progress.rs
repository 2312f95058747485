//! How far the opening of a data directory is, for those who wait for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_topology::Bytes;

/// How far the opening of a data directory is: counted while it is opened, by all that take part.
#[derive(Debug, Default)]
pub struct OpenProgress {
    chunks: AtomicU64,
    chunks_total: AtomicU64,
    chunk_bytes: AtomicU64,
    records: AtomicU64,
    records_total: AtomicU64,
}

impl OpenProgress {
    /// So many chunks are to be read.
    pub(super) fn expect_chunks(&self, chunks: u64) {
        self.chunks_total.store(chunks, Ordering::Relaxed);
    }

    /// A chunk was read, or could not be.
    pub(super) fn chunk(&self, bytes: u64) {
        self.chunk_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    /// A record of the log was read, which is to be applied.
    pub(super) fn expect_record(&self) {
        self.records_total.fetch_add(1, Ordering::Relaxed);
    }

    /// A record of the log was applied.
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
