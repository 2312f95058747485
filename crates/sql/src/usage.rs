//! Resource usage of a database, for monitoring.

use crate::database::Database;

/// The usage of a database's memory, log and shared scans. Counts are since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseUsage {
    /// Bytes of memory that tables and queries have reserved.
    pub memory: u64,
    /// Bytes that they may reserve.
    pub memory_limit: u64,
    /// Commits that changed something.
    pub commits: u64,
    /// Bytes of records that were written to the log; 0 without a directory.
    pub log_bytes: u64,
    /// Syncs of the log; 0 without a directory.
    pub log_syncs: u64,
    /// Locks of open transactions.
    pub locks: u64,
    /// Passes of shared scans over their tables.
    pub scan_cycles: u64,
    /// Queries that they answered.
    pub scan_queries: u64,
    /// Bytes that workers read from memory of their own node.
    pub bytes_local: u64,
    /// Bytes that they read from memory of other nodes.
    pub bytes_remote: u64,
}

impl Database {
    /// The usage of its memory, log and scans.
    pub fn usage(&self) -> DatabaseUsage {
        let store = self.store();
        let log = store.log_statistics().unwrap_or_default();
        let scans = self.shared_scans().reports(&store.published());
        let traffic = self.pools().traffic();
        DatabaseUsage {
            memory: self.pool().reserved() as u64,
            memory_limit: self.limit() as u64,
            commits: store.newest().epoch().get(),
            log_bytes: log.bytes,
            log_syncs: log.syncs,
            locks: store.locked() as u64,
            scan_cycles: scans.iter().map(|scan| scan.cycles).sum(),
            scan_queries: scans.iter().map(|scan| scan.queries).sum(),
            bytes_local: traffic.local().0,
            bytes_remote: traffic.remote().0,
        }
    }
}
