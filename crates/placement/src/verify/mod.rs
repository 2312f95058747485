//! Verified placement: the kernel's report of pages and threads, compared with the request.

mod pages;
mod threads;

pub use pages::{PAGES_SEEN_MAX, PageRange, PagesReport, verify_pages, verify_pages_sampled};
pub use threads::{ThreadReport, verify_thread};
