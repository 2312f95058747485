//! Runs in which nothing was counted.

use atoll_simulation::Counting;

use super::counts::{accesses, total};
use super::words::line;
use crate::record::RunRecord;

/// Why nothing was counted; None if something was.
pub(super) fn why_nothing(record: &RunRecord) -> Option<String> {
    let report = &record.report;
    if let Some(failure) = &report.calibration.failure {
        let failure = line(failure);
        return Some(format!("Nothing was counted, as the calibration failed: {failure}"));
    }
    if total(&accesses(&report.total)) > 0 {
        return None;
    }
    Some(match report.setup.counting {
        Counting::Region | Counting::Within if report.regions.is_empty() => {
            "Nothing was counted: the program opened no region. Open one around what is to be \
             counted (atoll_marker.h, crate atoll-marker), or count all with --count user."
                .to_owned()
        }
        _ => "Nothing was counted: the program made no access that counts.".to_owned(),
    })
}
