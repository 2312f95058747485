//! What the lab's counter is told: when a query runs, and which pages hold tables.
//!
//! Regions are markers, which do nothing on hardware. Tagging reads one byte of every page, so that
//! it is done in the lab only, whose guests have `ATOLL_LAB` in their environment.

use std::sync::OnceLock;

/// Region that is open while queries run; loading is outside.
const QUERIES: u8 = 63;

/// Tag of the pages of tables.
const TABLES: u8 = 15;

/// A query under way: the region is open until this is dropped.
pub(crate) struct Query(());

impl Query {
    /// Opens the region.
    pub(crate) fn begins() -> Self {
        atoll_marker::open(QUERIES);
        Self(())
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        atoll_marker::close(QUERIES);
    }
}

/// Tags the memory of a chunk that has just been written.
pub(crate) fn holds_a_table(memory: &[u8]) {
    static IN_LAB: OnceLock<bool> = OnceLock::new();
    if *IN_LAB.get_or_init(|| std::env::var_os("ATOLL_LAB").is_some()) {
        atoll_marker::tag(TABLES, memory);
    }
}
