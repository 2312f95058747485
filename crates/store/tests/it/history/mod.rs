//! Histories of sessions over a database, and the anomalies that are in them (`atoll_testkit::history`).

mod runs;
mod sessions;

use atoll_testkit::history::{
    Anomaly, Ending, HistoryKey, HistoryStep, HistoryTransaction, HistoryValue,
    NOT_COMMITTED_READS, NOT_SNAPSHOTS, anomalies,
};
