//! Where the pages of a process are: by its page table entries, or by a sample of its pages.

pub(super) mod draw;
pub(super) mod exact;
pub(super) mod homes;
pub(super) mod sample;
