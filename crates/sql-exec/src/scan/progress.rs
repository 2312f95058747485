//! The progress of a query.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use parking_lot::Mutex;

use super::ScanExec;

/// The progress of a query's scans. It holds their counters and not their plan, whose hash tables would
/// live as long as a reader holds it.
#[derive(Clone, Debug, Default)]
pub struct ScanProgress {
    /// `None` if there is no plan.
    scans: Option<Arc<Mutex<Vec<ExecutionPlanMetricsSet>>>>,
    rows: u64,
    bytes: u64,
}

impl ScanProgress {
    /// The progress of the scans in a plan.
    pub fn for_plan(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let (mut rows, mut bytes) = (0, 0);
        for_each_scan(plan, &mut |scan| {
            rows += scan.table_rows() as u64;
            bytes += scan.table_bytes() as u64;
        });
        let progress = Self { scans: Some(Arc::default()), rows, bytes };
        progress.follow(plan);
        progress
    }

    /// Counts the scans of another plan of the same query from now on.
    pub fn follow(&self, plan: &Arc<dyn ExecutionPlan>) {
        let Some(known) = &self.scans else { return };
        let mut scans = Vec::new();
        for_each_scan(plan, &mut |scan| scans.push(scan.counts()));
        *known.lock() = scans;
    }

    /// Rows of placed tables read so far, and the most to be read. Both are 0 for a query without
    /// such tables.
    pub fn rows(&self) -> (u64, u64) {
        (self.counted("rows_scanned"), self.rows)
    }

    /// Bytes of placed tables read so far from memory of the reader's node, and from that of others.
    pub fn bytes(&self) -> (u64, u64) {
        (self.counted("bytes_local"), self.counted("bytes_remote"))
    }

    /// Most bytes of placed tables to be read: the columns that are read, all their rows.
    pub fn bytes_total(&self) -> u64 {
        self.bytes
    }

    fn counted(&self, name: &str) -> u64 {
        let counted = |scan: &ExecutionPlanMetricsSet| {
            let counted = scan.clone_inner().sum_by_name(name);
            counted.map_or(0, |value| value.as_usize() as u64)
        };
        self.scans.iter().map(|scans| scans.lock().iter().map(counted).sum::<u64>()).sum()
    }
}

fn for_each_scan(plan: &Arc<dyn ExecutionPlan>, visit: &mut impl FnMut(&ScanExec)) {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        visit(scan);
    }
    plan.children().into_iter().for_each(|child| for_each_scan(child, visit));
}
