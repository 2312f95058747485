//! Shared scans: one pass over a table answers all selections that wait at the same time.
//!
//! ```text
//! session ─▶ SharedSelection, bound to values ─┐
//! session ─▶ …                                 ├─▶ TableScan: who waits ─▶ cycle: one batch, one version, one pass
//! session ─▶ …                                 ┘        ▲                          │ each worker over its chunks
//!                                                       └──── rows of each ◀───────┘
//! ```
//!
//! A cycle takes all waiting queries, pins the newest version that is safely on disk, and answers all of them from it;
//! later ones ride the next cycle. So a client sees its own earlier writes, and never half of a change by others. The
//! pass itself is in the store (`atoll_store::clock_scan`).
//!
//! | file | what |
//! |---|---|
//! | `selection.rs` | statements that fit: compiled once, bound to values |
//! | `change.rs` | UPDATE and DELETE of rows that a scan finds |
//! | `above.rs` | aggregates, sorting and limits over the selected rows |
//! | `filters.rs` | filters as tests of columns |
//! | `table_scan.rs` | the queue of a table and its cycles |
//! | `cycle.rs` | one cycle |
//! | `report.rs` | statistics of cycles, for `atoll.scans` |

mod above;
mod change;
mod cycle;
mod filters;
mod report;
mod selection;
mod table_scan;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::DatabaseVersion;
use parking_lot::Mutex;

use crate::database::Database;
pub(crate) use change::SharedChange;
pub(crate) use report::ScanReport;
pub(crate) use selection::{ScannedRows, SharedSelection, sharing};
pub(crate) use table_scan::AloneQuery;
use table_scan::TableScan;

/// The shared scans of a database's tables.
#[derive(Debug, Default)]
pub(crate) struct SharedScans {
    tables: Mutex<HashMap<ScanKey, Arc<TableScan>>>,
}

impl Database {
    /// The shared scans of its tables.
    pub(crate) fn shared_scans(&self) -> Arc<SharedScans> {
        let Ok(scans) = self.extension(|| Ok::<_, Infallible>(SharedScans::default()));
        scans
    }
}

/// A table, and the pool of the sessions; `None` for the common workers.
type ScanKey = (TableId, Option<Arc<str>>);

impl SharedScans {
    fn get_or_create(
        &self,
        table: TableId,
        name: &str,
        pool: Option<&Arc<str>>,
        version: &DatabaseVersion,
    ) -> Arc<TableScan> {
        let mut scans = self.tables.lock();
        let key = (table, pool.cloned());
        if let Some(scan) = scans.get(&key) {
            return Arc::clone(scan);
        }
        forget_dropped(&mut scans, version);
        let scan = Arc::new(TableScan::new(table, name, pool.cloned()));
        scans.insert(key, Arc::clone(&scan));
        scan
    }

    /// The statistics of each table of a version, by name and pool.
    pub(crate) fn reports(&self, version: &DatabaseVersion) -> Vec<ScanReport> {
        let mut scans = self.tables.lock();
        forget_dropped(&mut scans, version);
        let mut reports: Vec<ScanReport> = scans.values().map(|scan| scan.report()).collect();
        reports.sort_by(|a, b| (&a.table, &a.pool).cmp(&(&b.table, &b.pool)));
        reports
    }

    /// Removes the scans of a dropped pool.
    pub(crate) fn forget_pool(&self, name: &str) {
        self.tables.lock().retain(|(_, pool), _| pool.as_deref() != Some(name));
    }
}

/// Removes tables that are not in a version, unless their queries still wait.
fn forget_dropped(scans: &mut HashMap<ScanKey, Arc<TableScan>>, version: &DatabaseVersion) {
    scans.retain(|(table, _), scan| version.table(*table).is_some() || Arc::strong_count(scan) > 1);
}
