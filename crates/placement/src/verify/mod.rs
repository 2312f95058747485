//! Placement achieved: what the kernel says about pages and threads, beside what was wanted.

mod pages;
mod threads;

pub use pages::{PAGES_SEEN_MAX, PageRange, PagesReport, verify_pages, verify_pages_sampled};
pub use threads::{ThreadReport, verify_thread};
