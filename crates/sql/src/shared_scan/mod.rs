//! Shared scans: selections that wait at the same time are answered by one pass over their table.
//!
//! ```text
//! session ─▶ SharedSelection, bound to values ─┐
//! session ─▶ …                                 ├─▶ TableScan: who waits ─▶ cycle: one batch, one version, one pass
//! session ─▶ …                                 ┘        ▲                          │ each worker over its chunks
//!                                                       └──── rows of each ◀───────┘
//! ```
//!
//! A cycle takes all who wait, pins the newest version that is safe on disk, and answers all of them from it;
//! who comes meanwhile rides the next one. So a client sees what it wrote before, and no half of what others
//! write. The pass itself is the store's (`atoll_store::clock_scan`).
//!
//! | file | what |
//! |---|---|
//! | `selection.rs` | statements that fit, compiled once, bound to values |
//! | `above.rs` | aggregates, sorting and limits over the rows that were selected |
//! | `filters.rs` | filters as tests of columns |
//! | `table_scan.rs` | who waits for a table, and its cycles |
//! | `texts.rs` | statements sent as text, planned once for all sessions that read them alike |
//! | `cycle.rs` | one cycle |
//! | `report.rs` | what cycles did, for `atoll.scans` |

mod above;
mod cycle;
mod filters;
mod report;
mod selection;
mod table_scan;
mod texts;

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::TableId;
use parking_lot::Mutex;

pub(crate) use report::ScanReport;
pub(crate) use selection::{ScannedRows, SharedSelection, sharing};
pub(crate) use table_scan::AloneQuery;
use table_scan::TableScan;
use texts::TextSelections;
pub(crate) use texts::{TextScope, TextSelection};

/// The shared scans of a database's tables.
#[derive(Debug, Default)]
pub(crate) struct SharedScans {
    tables: Mutex<HashMap<TableId, Arc<TableScan>>>,
    texts: TextSelections,
}

impl SharedScans {
    /// What sessions sent as text.
    pub(crate) fn texts(&self) -> &TextSelections {
        &self.texts
    }

    fn of(&self, table: TableId, name: &str) -> Arc<TableScan> {
        let mut scans = self.tables.lock();
        Arc::clone(scans.entry(table).or_insert_with(|| Arc::new(TableScan::new(table, name))))
    }

    /// What the cycles of each table did, by name.
    pub(crate) fn reports(&self) -> Vec<ScanReport> {
        let mut reports: Vec<ScanReport> =
            self.tables.lock().values().map(|scan| scan.report()).collect();
        reports.sort_by(|a, b| a.table.cmp(&b.table));
        reports
    }
}
