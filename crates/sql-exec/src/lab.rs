//! Marks queries for the lab's counter: while one runs, the region of the process's number is open.

use atoll_store::table::lab_region;

/// A query under way: the region is open until this is dropped.
pub struct QueryRegion(());

impl QueryRegion {
    /// Opens the region.
    pub fn begins() -> Self {
        lab_region().inspect(|number| atoll_marker::open(*number));
        Self(())
    }
}

impl Drop for QueryRegion {
    fn drop(&mut self) {
        lab_region().inspect(|number| atoll_marker::close(*number));
    }
}
