//! Tags the pages of tables for the lab's counter.

use std::sync::OnceLock;

/// The number of this process in the lab, which sets `ATOLL_LAB` to 1 in its guests: the tag of its
/// tables, and the region of its queries (1 to 15). Processes with different numbers are distinguished
/// in one run. `None` outside of the lab, where nothing is tagged.
pub fn lab_number() -> Option<u8> {
    static NUMBER: OnceLock<Option<u8>> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let number: u8 = std::env::var("ATOLL_LAB").ok()?.parse().ok()?;
        (1..atoll_marker::TAGS).contains(&number).then_some(number)
    })
}

/// Tags the memory of a newly written chunk; reads one byte of each of its pages.
pub(super) fn holds_a_table(memory: &[u8]) {
    if let Some(number) = lab_number() {
        atoll_marker::tag(number, memory);
    }
}
