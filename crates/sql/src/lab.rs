//! What the lab's counter is told: when a query runs, and which pages hold tables.
//!
//! `ATOLL_LAB`, which the lab sets to 1 in its guests, is the number of both: queries run in the
//! region of that number, tables get that tag (1 to 15). Processes with numbers of their own are told
//! apart in one run. Outside of the lab nothing is marked.

use std::sync::OnceLock;

/// The process's number; none outside of the lab.
fn number() -> Option<u8> {
    static NUMBER: OnceLock<Option<u8>> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let number: u8 = std::env::var("ATOLL_LAB").ok()?.parse().ok()?;
        (1..atoll_marker::TAGS).contains(&number).then_some(number)
    })
}

/// A query under way: the region is open until this is dropped.
pub(crate) struct QueryRegion(());

impl QueryRegion {
    /// Opens the region.
    pub(crate) fn begins() -> Self {
        number().inspect(|number| atoll_marker::open(*number));
        Self(())
    }
}

impl Drop for QueryRegion {
    fn drop(&mut self) {
        number().inspect(|number| atoll_marker::close(*number));
    }
}

/// Tags the memory of a chunk that has just been written; reads one byte of each of its pages.
pub(crate) fn holds_a_table(memory: &[u8]) {
    if let Some(number) = number() {
        atoll_marker::tag(number, memory);
    }
}
