//! What the lab's counter is told of tables: which pages hold them.

use std::sync::OnceLock;

/// The number of this process in the lab, which sets `ATOLL_LAB` to 1 in its guests: the tag of its
/// tables, and the region of its queries (1 to 15). Processes with numbers of their own are told apart
/// in one run. None outside of the lab, where nothing is marked.
pub fn lab_number() -> Option<u8> {
    static NUMBER: OnceLock<Option<u8>> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let number: u8 = std::env::var("ATOLL_LAB").ok()?.parse().ok()?;
        (1..atoll_marker::TAGS).contains(&number).then_some(number)
    })
}

/// Tags the memory of a chunk that has just been written; reads one byte of each of its pages.
pub(super) fn holds_a_table(memory: &[u8]) {
    if let Some(number) = lab_number() {
        atoll_marker::tag(number, memory);
    }
}
