//! The results: for each case all medians, and how Atoll compares.

use std::fmt;

use atoll_tools::bench::Measurement;
use serde::Serialize;

use crate::paired::{self, PairedCase};

/// The report, apart from the measurements.
#[derive(Debug, Serialize)]
pub(super) struct StoreReport {
    /// Rows of the table of single rows, and of the one that is copied.
    pub(super) rows: u64,
    pub(super) bulk_rows: u64,
    /// Where the databases were.
    pub(super) directory: String,
    pub(super) cases: Vec<PairedCase>,
}

impl StoreReport {
    /// For `bench compare`.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        self.cases.iter().flat_map(PairedCase::measurements).collect()
    }
}

impl fmt::Display for StoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, bulk_rows, directory, .. } = self;
        writeln!(f, "- {rows} rows changed and read one by one, {bulk_rows} copied")?;
        writeln!(f, "- databases in {directory}\n")?;
        f.write_str(&paired::table(&self.cases))
    }
}
