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
//! | `change.rs` | UPDATE and DELETE of rows that a scan finds |
//! | `above.rs` | aggregates, sorting and limits over the rows that were selected |
//! | `filters.rs` | filters as tests of columns |
//! | `table_scan.rs` | who waits for a table, and its cycles |
//! | `cycle.rs` | one cycle |
//! | `report.rs` | what cycles did, for `atoll.scans` |

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

/// A table, and the pool whose sessions ask; none for the common workers.
type ScanKey = (TableId, Option<Arc<str>>);

impl SharedScans {
    fn of(
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

    /// What the cycles of each table of a version did, by name and pool.
    pub(crate) fn reports(&self, version: &DatabaseVersion) -> Vec<ScanReport> {
        let mut scans = self.tables.lock();
        forget_dropped(&mut scans, version);
        let mut reports: Vec<ScanReport> = scans.values().map(|scan| scan.report()).collect();
        reports.sort_by(|a, b| (&a.table, &a.pool).cmp(&(&b.table, &b.pool)));
        reports
    }

    /// Forgets what the sessions of a pool asked, which is dropped.
    pub(crate) fn forget_pool(&self, name: &str) {
        self.tables.lock().retain(|(_, pool), _| pool.as_deref() != Some(name));
    }
}

/// Forgets tables that are not in a version, unless queries of them still wait.
fn forget_dropped(scans: &mut HashMap<ScanKey, Arc<TableScan>>, version: &DatabaseVersion) {
    scans.retain(|(table, _), scan| version.table(*table).is_some() || Arc::strong_count(scan) > 1);
}
